"""Any OpenAI-compatible chat endpoint as an engine: tools are told in-band, or natively where it can call tools."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import httpx
import msgspec

from isogloss.engines._chat_request import chat_request
from isogloss.engines._chat_stream import ChatGeneration
from isogloss.engines._endpoint import Endpoint, EngineBusyError
from isogloss.engines._protocol import Chunk, GenerationRequest, ModelInfo, Usage
from isogloss.errors import EngineCapabilityError, EngineError, EngineUnavailableError
from isogloss.tokenizers import Tokenizer

TITLE = "the chat endpoint"
OPTIONS = frozenset(
    {
        "metadata",
        "min_p",
        "prompt_cache_key",
        "reasoning_effort",
        "repetition_penalty",
        "safety_identifier",
        "service_tier",
        "top_k",
        "user",
        "verbosity",
        "extra_body",
    }
)
"""What ``options`` may hold. The fields of ``extra_body`` are sent as they are."""
MOST_TRIES = 3
NOT_RUNNING = "The engine has not been started, or has been closed"
_LIMITS = ("max_tokens", "max_completion_tokens")


class _Model(msgspec.Struct):
    """An entry of ``GET /models``. The lengths are what vLLM, and what gateways, add."""

    id: str
    max_model_len: int | None = None
    context_length: int | None = None


class _Models(msgspec.Struct):
    data: list[_Model]


class ChatEngine:
    """Continues conversations.

    Of the stop strings the endpoint gets as many as it takes; nothing is cut on this side, where whoever reads the
    output knows better whether a string is markup or part of a value.
    """

    name = "chat"
    takes_grammar = False
    takes_messages = True
    options = OPTIONS - {"extra_body"}  # which can name another model
    tokenizer: Tokenizer | None = None

    def __init__(
        self,
        target: str,
        *,
        model_id: str | None = None,
        api_key: str | None = None,
        api_key_env: str | None = None,
        native: bool = False,
        limit_field: str = "max_tokens",
        options: Mapping[str, Any] | None = None,
        patience: float = 20.0,
        timeout: float = 600.0,
    ) -> None:
        """``target``: the endpoint's base URL, as ``https://example.org/v1``; ``/v1`` where it has no path.

        ``model_id`` may be left out where the endpoint has one model. ``api_key_env`` names the environment variable
        that holds the key. ``native``: pass tools and formats on instead of telling them in the messages.
        ``limit_field``: what the endpoint calls the limit of tokens, ``max_tokens`` or ``max_completion_tokens``.
        ``options`` go with every request that has not its own. ``patience``: seconds that may be waited in all where
        the endpoint asks to try again later; ``timeout``: seconds that may pass between two pieces.
        """
        if not self.accepts(target):
            raise EngineCapabilityError(f"Expected a URL, got `{target}`")
        if limit_field not in _LIMITS:
            raise EngineCapabilityError(f"Expected one of {', '.join(_LIMITS)} for limit_field, got `{limit_field}`")
        self.takes_tools = native
        self._url = _with_path(target)
        self._model_id = model_id
        self._api_key = api_key
        self._api_key_env = api_key_env
        self._limit_field = limit_field
        self._options = options or {}
        self._patience = patience
        self._timeout = timeout
        self._endpoint: Endpoint | None = None
        self._model: ModelInfo | None = None

    @staticmethod
    def accepts(target: str) -> bool:
        """A URL."""
        return target.startswith(("http://", "https://")) and "," not in target

    @classmethod
    def open(cls, target: str, **options: Any) -> ChatEngine:
        """The same as the constructor."""
        return cls(target, **options)

    async def start(self) -> None:
        """Find out which model is there. Raises `EngineUnavailableError`, and `EngineCapabilityError` where there are
        several and none is named, or the endpoint refuses."""
        if self._endpoint is not None:
            return
        self._endpoint = Endpoint(self._url, title=TITLE, api_key=self._key(), timeout=self._timeout)
        try:
            self._model = await self._find_model(self._endpoint)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Close the connections."""
        endpoint, self._endpoint = self._endpoint, None
        if endpoint is not None:
            await endpoint.close()

    async def model(self) -> ModelInfo:
        """Raises `EngineUnavailableError`."""
        if self._model is None:
            raise EngineUnavailableError(NOT_RUNNING)
        return self._model

    async def health(self) -> None:
        """Raises `EngineUnavailableError` with the reason."""
        if self._endpoint is None:
            raise EngineUnavailableError(NOT_RUNNING)
        try:
            await self._find_model(self._endpoint)
        except EngineCapabilityError as error:  # no fault of who asks for a turn
            raise EngineUnavailableError(error.message) from error

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[Chunk, None]:
        """See `Engine.generate`. Where the endpoint is busy, or out of reach, it is asked again before anything has
        come, as long as patience lasts."""
        if self._endpoint is None or self._model is None:
            raise EngineUnavailableError(NOT_RUNNING)
        body = self._body(request, self._model.id)
        if request.sampling.max_tokens == 0:
            yield Chunk(finish="length", usage=Usage())
            return
        patience = self._patience
        for tries in range(1, MOST_TRIES + 1):
            said = False
            try:
                async with aclosing(self._ask(self._endpoint, body)) as chunks:
                    async for chunk in chunks:
                        said = True
                        yield chunk
                return
            except EngineUnavailableError as error:
                wait = error.retry_after if isinstance(error, EngineBusyError) else 0.0
                wait = float(tries) if wait is None else wait
                if said or tries == MOST_TRIES or wait > patience:
                    raise
                patience -= wait
            await asyncio.sleep(wait)

    async def _ask(self, endpoint: Endpoint, body: Mapping[str, Any]) -> AsyncGenerator[Chunk, None]:
        generation = ChatGeneration(is_native=self.takes_tools)
        async with aclosing(endpoint.stream("/chat/completions", body)) as pieces:
            async for piece in pieces:
                for chunk in generation.feed(piece):
                    yield chunk
                if generation.is_over:
                    return
        for chunk in generation.finish():
            yield chunk
        if not generation.is_over:
            raise endpoint.ended_early()

    def _body(self, request: GenerationRequest, model: str) -> dict[str, Any]:
        options = {**self._options, **request.options}
        if unknown := sorted(options.keys() - OPTIONS):
            raise EngineCapabilityError(f"The engine `chat` does not know these options: {', '.join(unknown)}")
        if request.grammar is not None:
            raise EngineCapabilityError("The engine `chat` takes no grammar")
        extra = options.pop("extra_body", {})
        return {**chat_request(request, model, self._limit_field), **options, **extra}

    async def _find_model(self, endpoint: Endpoint) -> ModelInfo:
        try:
            content = await endpoint.ask("GET", "/models")
            models = msgspec.json.decode(content, type=_Models).data
        except (EngineError, msgspec.DecodeError) as error:
            if self._model_id is not None and _has_no_list(error):
                return ModelInfo(self._model_id)
            if isinstance(error, EngineCapabilityError):
                raise
            raise EngineUnavailableError(
                error.message
                if isinstance(error, EngineError)
                else f"There is no chat endpoint at `{endpoint.shown}`: {error}"
            ) from error
        if self._model_id is None and len(models) != 1:
            names = ", ".join(f"`{model.id}`" for model in models[:20]) or "none"
            raise EngineCapabilityError(f"Name the model by model_id; the chat endpoint has these: {names}")
        found = next((model for model in models if self._model_id in (None, model.id)), None)
        if found is None:
            return ModelInfo(str(self._model_id))
        return ModelInfo(found.id, found.max_model_len or found.context_length)

    def _key(self) -> str | None:
        if self._api_key is not None or self._api_key_env is None:
            return self._api_key
        key = os.environ.get(self._api_key_env)
        if not key:
            raise EngineUnavailableError(
                f"The environment variable {self._api_key_env}, which should hold the endpoint's key, is not set"
            )
        return key


ENGINE = ChatEngine


def _has_no_list(error: Exception) -> bool:
    """Whether the endpoint is there but does not list its models."""
    return isinstance(error, EngineError) and any(f" answered {status}:" in error.message for status in (404, 405, 501))


def _with_path(target: str) -> str:
    url = httpx.URL(target)
    return target.rstrip("/") if url.path.strip("/") else str(url.copy_with(path="/v1"))
