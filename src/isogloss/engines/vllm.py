"""vLLM's server as an engine: one by its URL, or several replicas of one model by all of theirs.

The HTTP interface is that of ``vllm/entrypoints/openai/completion``; prompts go out and turns come back as token ids.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from isogloss.engines import _vllm_grammar
from isogloss.engines._endpoint import Endpoint
from isogloss.engines._grammar_guard import GrammarGuard
from isogloss.engines._protocol import Chunk, GenerationRequest, ModelInfo, Sampling, Usage
from isogloss.engines._replicas import Replicas
from isogloss.engines._server_grammar import for_server
from isogloss.engines._stops import Stops
from isogloss.engines._tokenizer_files import chat_template_beside, find_tokenizer
from isogloss.engines._vllm_stream import VllmGeneration
from isogloss.errors import EngineCapabilityError, EngineError, EngineUnavailableError

if TYPE_CHECKING:
    from isogloss.tokenizers import Tokenizer

TITLE = "vLLM's server"
OPTIONS = frozenset(
    {
        "allowed_token_ids",
        "bad_words",
        "cache_salt",
        "ignore_eos",
        "kv_transfer_params",
        "length_penalty",
        "min_p",
        "min_tokens",
        "priority",
        "repetition_detection",
        "repetition_penalty",
        "request_id",
        "session_id",
        "stream_interval",
        "thinking_token_budget",
        "top_k",
        "vllm_xargs",
    }
)
"""What ``GenerationRequest.options`` may hold, by vLLM's names."""
NOT_RUNNING = "The engine has not been started, or has been closed"
_SAMPLE = 'Is ögloss 42?\n\tif x == "{<b>}": é日本🦊'


class _Model(msgspec.Struct):
    """An entry of ``GET /v1/models``. ``root`` is where the server has its files from."""

    id: str
    root: str | None = None
    max_model_len: int | None = None


class _Models(msgspec.Struct):
    data: list[_Model]


class _Detokenized(msgspec.Struct):
    prompt: str


class VllmEngine:
    """Continues prompts given as token ids, under grammars."""

    name = "vllm"
    takes_grammar = True
    takes_messages = False
    takes_tools = False
    options = OPTIONS

    def __init__(
        self,
        target: str,
        *,
        tokenizer: Tokenizer | str | Path | None = None,
        api_key: str | None = None,
        model_id: str | None = None,
        grammar: str = "auto",
        options: Mapping[str, Any] | None = None,
        timeout: float = 600.0,
    ) -> None:
        """``target``: the URL of a server, or those of several that serve the same model, with commas between.

        ``tokenizer``: a tokenizer, a model's folder, a ``tokenizer.json``, a GGUF file or ``hf:OWNER/REPOSITORY``.
        Without it the server's own folder or the hub's cache is looked into, where this machine has them.
        ``grammar``: what the server constrains output with: ``guidance``, ``xgrammar``, or ``auto`` to find out. With
        ``none`` it gets no grammars, and what a request binds is verified instead. ``options`` go with every request
        that has not its own. ``timeout``: seconds that may pass between two tokens, the reading of the prompt included.
        """
        urls = [url.strip().rstrip("/").removesuffix("/v1") for url in target.split(",") if url.strip()]
        if not urls or not all(map(_is_url, urls)):
            raise EngineCapabilityError(f"Expected a URL, or several with commas between, got `{target}`")
        if grammar not in ("auto", "guidance", "xgrammar", "none"):
            raise EngineCapabilityError(
                f"Expected `auto`, `guidance`, `xgrammar` or `none` for grammar, got `{grammar}`"
            )
        self.tokenizer: Tokenizer | None = None
        self.takes_grammar = grammar != "none"
        self._given_tokenizer = tokenizer
        self._api_key = api_key
        self._model_id = model_id
        self._grammar = grammar
        self._options = options or {}
        self._timeout = timeout
        self._urls = urls
        self._replicas: Replicas | None = None
        self._model: _Model | None = None
        self._template: str | None = None
        self._template_tokens: dict[str, str] = {}

    @staticmethod
    def accepts(target: str) -> bool:
        """A URL, or several with commas between."""
        return all(_is_url(url.strip()) for url in target.split(","))

    @classmethod
    def open(cls, target: str, **options: Any) -> VllmEngine:
        """The same as the constructor."""
        return cls(target, **options)

    async def start(self) -> None:
        """Greet the servers, find out what they constrain output with, and read the vocabulary.

        Raises `EngineUnavailableError`, and `EngineCapabilityError` for servers that serve different models or would
        ignore a grammar.
        """
        if self._replicas is not None:
            return
        endpoints = [Endpoint(url, title=TITLE, api_key=self._api_key, timeout=self._timeout) for url in self._urls]
        self._replicas = Replicas(endpoints, self._greet)
        try:
            await self._replicas.start()
            await self._read_vocabulary(self._replicas.first_up())
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Close the connections."""
        replicas, self._replicas = self._replicas, None
        if replicas is not None:
            await replicas.close()

    async def model(self) -> ModelInfo:
        """Raises `EngineUnavailableError`."""
        if self._model is None:
            raise EngineUnavailableError(NOT_RUNNING)
        settings = {"replicas": len(self._urls), "grammar": self._grammar}
        return ModelInfo(self._model.id, self._model.max_model_len, self._template, self._template_tokens, settings)

    async def health(self) -> None:
        """Return when one of the servers answers. Raises `EngineUnavailableError` with the reason of the last."""
        failure: EngineError = EngineUnavailableError(NOT_RUNNING)
        for endpoint in self._in_turn():
            try:
                await endpoint.ask("GET", "/health")
            except EngineError as error:
                failure = error
                self._failed(endpoint, error)
            else:
                return
        raise EngineUnavailableError(failure.message)

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[Chunk, None]:
        """See `Engine.generate`. A server that fails before the first token is replaced by the next one. A prompt that
        is longer than the context is an `EngineCapabilityError` with the code ``context_length_exceeded``."""
        if self.tokenizer is None or self._model is None or self._replicas is None:
            raise EngineUnavailableError(NOT_RUNNING)
        ids = self._prompt(request, self.tokenizer)
        limit = self._model.max_model_len
        if limit is not None and len(ids) >= limit:
            counts = f"The prompt has {len(ids)} tokens, the context holds {limit}"
            raise EngineCapabilityError(counts, code="context_length_exceeded")
        body = self._body(request, ids, limit)
        if request.sampling.max_tokens == 0:
            yield Chunk(finish="length", usage=Usage(len(ids)))
            return
        failure: EngineError = EngineUnavailableError(NOT_RUNNING)
        for endpoint in self._in_turn():
            said = 0
            try:
                async with aclosing(self._ask(endpoint, request, body, len(ids))) as chunks:
                    async for chunk in chunks:
                        said += len(chunk.token_ids)
                        yield chunk
                self._replicas.answered(endpoint)
                return
            except EngineUnavailableError as error:
                self._failed(endpoint, error)
                if said:
                    raise EngineUnavailableError(f"{error.message}; {said} tokens had come") from error
                failure = error
        raise failure

    async def _ask(
        self, endpoint: Endpoint, request: GenerationRequest, body: Mapping[str, Any], prompt_tokens: int
    ) -> AsyncGenerator[Chunk, None]:
        """One generation by one of the servers."""
        assert self.tokenizer is not None
        sampling = request.sampling
        generation = VllmGeneration(
            self.tokenizer,
            Stops(sampling.stop, self.tokenizer.special_tokens),
            self._guard(request, self.tokenizer),
            prompt_tokens=prompt_tokens,
            logprobs=sampling.logprobs,
        )
        async with aclosing(endpoint.stream("/v1/completions", body)) as pieces:
            async for piece in pieces:
                for chunk in generation.feed(piece):
                    yield chunk
                if generation.is_over:
                    return
        raise endpoint.ended_early()

    def _prompt(self, request: GenerationRequest, tokenizer: Tokenizer) -> list[int]:
        if request.prompt_ids is not None:
            return list(request.prompt_ids)
        if request.messages is not None:
            raise EngineCapabilityError("The engine `vllm` takes a prompt, not messages")
        return tokenizer.encode(request.prompt)

    def _body(self, request: GenerationRequest, ids: list[int], limit: int | None) -> dict[str, Any]:
        assert self.tokenizer is not None
        assert self._model is not None
        options = {**self._options, **request.options}
        if unknown := sorted(options.keys() - OPTIONS):
            raise EngineCapabilityError(f"The engine `vllm` does not know these options: {', '.join(unknown)}")
        special = self.tokenizer.special_tokens
        body: dict[str, Any] = {
            "model": self._model.id,
            "prompt": ids,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_token_ids": True,
            "return_tokens_as_token_ids": True,
            "skip_special_tokens": False,
            "spaces_between_special_tokens": False,
            "stop_token_ids": [special[text] for text in request.sampling.stop if text in special],
            **_sampling(request.sampling, len(ids), limit),
            **options,
        }
        if request.grammar is not None:
            body["structured_outputs"] = self._constrained(request, special)
        return body

    def _constrained(self, request: GenerationRequest, special: Mapping[str, int]) -> dict[str, str]:
        if self._grammar == "guidance" and request.grammar is not None:
            return {"grammar": for_server(request.grammar, special)}
        if self._grammar == "xgrammar":
            return {"structural_tag": _vllm_grammar.structural_tag_of(request, special)}
        raise EngineCapabilityError("This engine was opened with grammar=none: it takes no grammar")

    def _guard(self, request: GenerationRequest, tokenizer: Tokenizer) -> GrammarGuard | None:
        if request.grammar is None:
            return None
        return GrammarGuard(
            request.grammar, tokenizer, special_may_be_text=True, is_binding=self._grammar == "guidance"
        )

    async def _greet(self, endpoint: Endpoint) -> None:
        """Find out what this server serves and how it constrains output; it must be as with those before."""
        content = await endpoint.ask("GET", "/v1/models")
        try:
            models = msgspec.json.decode(content, type=_Models).data
        except msgspec.DecodeError as error:
            raise EngineUnavailableError(f"There is no {TITLE} at `{endpoint.shown}`: {error}") from error
        wanted = self._model_id if self._model is None else self._model.id
        model = next((model for model in models if wanted in (None, model.id)), None)
        if model is None:
            names = ", ".join(f"`{model.id}`" for model in models) or "nothing"
            raise EngineCapabilityError(f"{TITLE} at `{endpoint.shown}` does not serve `{wanted}`; it serves {names}")
        backend = self._grammar
        if backend == "auto":
            backend = await _vllm_grammar.backend_of(endpoint, model.id)
        elif backend != "none":
            await _vllm_grammar.check_backend(endpoint, model.id, backend)
        if self._model is None:
            self._model, self._grammar = model, backend

    async def _read_vocabulary(self, endpoint: Endpoint) -> None:
        assert self._model is not None
        root = self._model.root or self._model.id
        tokenizer = await asyncio.to_thread(find_tokenizer, self._given_tokenizer, root, endpoint.is_loopback)
        await self._check_vocabulary(endpoint, tokenizer)
        await asyncio.to_thread(tokenizer.llguidance)  # takes a while, once
        self.tokenizer = tokenizer
        found = chat_template_beside(self._given_tokenizer, root, endpoint.is_loopback)
        self._template, self._template_tokens = found

    async def _check_vocabulary(self, endpoint: Endpoint, tokenizer: Tokenizer) -> None:
        """The server must read our ids as we mean them: with another model's vocabulary it would answer nonsense."""
        assert self._model is not None
        body = {"model": self._model.id, "tokens": tokenizer.encode(_SAMPLE)}
        try:
            content = await endpoint.ask("POST", "/detokenize", body)
            read = msgspec.json.decode(content, type=_Detokenized).prompt
        except (EngineCapabilityError, msgspec.DecodeError) as error:
            raise EngineUnavailableError(f"{TITLE} cannot read the ids of the tokenizer: {error}") from error
        if read.strip() != _SAMPLE:
            raise EngineUnavailableError(
                f"The tokenizer `{tokenizer.name}` is not that of the model `{self._model.id}`: "
                f"the server reads its ids as {read[:100]!r}"
            )

    def _in_turn(self) -> Iterator[Endpoint]:
        return iter(()) if self._replicas is None else self._replicas.in_turn()

    def _failed(self, endpoint: Endpoint, error: EngineError) -> None:
        if self._replicas is not None:
            self._replicas.failed(endpoint, error)


ENGINE = VllmEngine


def _sampling(sampling: Sampling, prompt_tokens: int, limit: int | None) -> dict[str, Any]:
    """vLLM generates 16 tokens where no limit is given, and refuses one that is beyond the context."""
    room = None if limit is None else limit - prompt_tokens
    bounds = [bound for bound in (sampling.max_tokens, room) if bound is not None]
    fields = {
        "max_tokens": min(bounds) if bounds else None,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "seed": sampling.seed,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "repetition_penalty": sampling.repetition_penalty,
        "logprobs": sampling.logprobs,
        "logit_bias": {str(token): bias for token, bias in sampling.logit_bias.items()} or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _is_url(target: str) -> bool:
    return target.startswith(("http://", "https://"))
