"""llama.cpp's server as an engine: embedded (a child process that runs a GGUF file) or any one that is running, by URL.

The HTTP interface is described in ``tools/server/README.md`` of llama.cpp.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import msgspec

from isogloss.engines._endpoint_tokenizer import endpoint_tokenizer
from isogloss.engines._grammar_guard import GrammarGuard
from isogloss.engines._llama_generation import LlamaGeneration
from isogloss.engines._llama_server import LlamaServer, LlamaServerOptions
from isogloss.engines._llama_stream import FINAL_FIELDS, CompletionStream, Vocabulary
from isogloss.engines._model_file import HUB_PREFIX, model_file
from isogloss.engines._protocol import Chunk, GenerationRequest, ModelInfo, Sampling, Usage
from isogloss.engines._server_grammar import for_server
from isogloss.engines._stops import Stops
from isogloss.errors import EngineCapabilityError, EngineError, EngineTimeoutError, EngineUnavailableError

if TYPE_CHECKING:
    from isogloss.tokenizers import Tokenizer

CONNECT_WITHIN = 10.0
ANSWER_WITHIN = 10.0
"""Seconds; for questions that need no generation."""
OPTIONS = frozenset(
    {
        "cache_prompt",
        "dry_allowed_length",
        "dry_base",
        "dry_multiplier",
        "dry_penalty_last_n",
        "dry_sequence_breakers",
        "dynatemp_exponent",
        "dynatemp_range",
        "id_slot",
        "ignore_eos",
        "min_p",
        "mirostat",
        "mirostat_eta",
        "mirostat_tau",
        "repeat_last_n",
        "repeat_penalty",
        "samplers",
        "t_max_predict_ms",
        "top_k",
        "top_n_sigma",
        "typical_p",
        "xtc_probability",
        "xtc_threshold",
    }
)
"""What ``GenerationRequest.options`` may hold, by llama.cpp's names."""
NOT_RUNNING = "The engine has not been started, or has been closed"
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class _Props(msgspec.Struct):
    """``GET /props``."""

    model_path: str = ""
    model_alias: str = ""
    chat_template: str | None = None
    bos_token: str = ""
    eos_token: str = ""
    default_generation_settings: Mapping[str, Any] = {}


class LlamaCppEngine:
    """Continues prompts given as token ids, under llguidance grammars."""

    name = "llamacpp"
    takes_grammar = True
    takes_messages = False
    takes_tools = False
    options = OPTIONS

    def __init__(
        self,
        target: str | Path,
        *,
        tokenizer: Tokenizer | None = None,
        api_key: str | None = None,
        model_id: str | None = None,
        options: Mapping[str, Any] | None = None,
        timeout: float = 600.0,
        **server: Any,
    ) -> None:
        """``target`` is the URL of a server, or the model that the embedded one runs: a path or
        ``hf:OWNER/REPOSITORY/FILE``. ``server`` are fields of `LlamaServerOptions`, for the embedded one only.

        ``options`` go with every request that has not its own. ``timeout``: seconds that may pass between two tokens,
        the reading of the prompt included. ``tokenizer`` is best given with a URL on another machine; without it, each
        encoding is a round trip to the server.
        """
        self.tokenizer = tokenizer
        self._is_embedded = not _is_url(str(target))
        self._target = str(target) if self._is_embedded else str(target).rstrip("/").removesuffix("/v1")
        self._api_key = api_key
        self._model_id = model_id
        self._options = options or {}
        self._timeout = timeout
        self._server_options = server
        self._server: LlamaServer | None = None
        self._client: httpx.AsyncClient | None = None
        self._questions: httpx.Client | None = None
        """The endpoint tokenizer's."""
        self._vocabulary: Vocabulary | None = None
        self._turns: contextlib.AbstractAsyncContextManager[Any] = contextlib.nullcontext()
        if server and not self._is_embedded:
            raise EngineCapabilityError(f"Only an embedded server takes these options: {', '.join(sorted(server))}")
        if unknown := sorted(server.keys() - set(LlamaServerOptions.__struct_fields__) | server.keys() & {"model"}):
            raise EngineCapabilityError(f"Unknown options of the embedded server: {', '.join(unknown)}")

    @staticmethod
    def accepts(target: str) -> bool:
        """A URL, a GGUF file, or a file on the hub."""
        return _is_url(target) or target.startswith(HUB_PREFIX) or target.endswith(".gguf")

    @classmethod
    def open(cls, target: str, **options: Any) -> LlamaCppEngine:
        """The same as the constructor."""
        return cls(target, **options)

    @property
    def url(self) -> str:
        """Where the server is. Of an embedded one: waits while it is starting, raises `EngineUnavailableError`."""
        return self._target if self._server is None else self._server.address()

    @property
    def api_key(self) -> str | None:
        """What the server wants to see; an embedded one makes its own."""
        return self._api_key if self._server is None else self._server.api_key

    @property
    def pid(self) -> int | None:
        """The embedded server's process, while it has one."""
        return None if self._server is None else self._server.pid

    async def start(self) -> None:
        """Bring the embedded server up, or greet the remote one. Raises `EngineUnavailableError`, and
        `EngineCapabilityError` when the remote one refuses."""
        if self._client is not None:
            return
        try:
            await self._start()
        except BaseException:
            await self.close()
            raise

    async def _start(self) -> None:
        if self._is_embedded:
            path = await asyncio.to_thread(model_file, self._target)
            self._server = LlamaServer(LlamaServerOptions(model=str(path), **self._server_options))
            await asyncio.to_thread(self._server.start)
            self._turns = asyncio.Semaphore(self._server.options.parallel)
        self._client = httpx.AsyncClient(**self._connection())
        props = await self._props()
        if self.tokenizer is None:
            self.tokenizer = await asyncio.to_thread(self._find_tokenizer, props)
        self._vocabulary = Vocabulary(self.tokenizer)
        await asyncio.to_thread(self.tokenizer.llguidance)  # takes a while, once

    async def close(self) -> None:
        """Close the connections; stop the embedded server."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()
        if self._questions is not None:
            self._questions.close()
        if self._server is not None:
            await asyncio.to_thread(self._server.stop)

    async def model(self) -> ModelInfo:
        """Raises `EngineUnavailableError`."""
        with _no_fault_of_a_turn():
            props = await self._props()
        name = self._model_id or Path(props.model_alias or props.model_path).name.removesuffix(".gguf")
        tokens = {"bos_token": props.bos_token, "eos_token": props.eos_token}
        context_length = props.default_generation_settings.get("n_ctx")
        settings = {} if self._server is None else self._server.options.told(context_length)
        return ModelInfo(name, context_length, props.chat_template, tokens, settings)

    async def health(self) -> None:
        """Raises `EngineUnavailableError` with the reason."""
        with _no_fault_of_a_turn():
            await self._get("/health")

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[Chunk, None]:
        """See `Engine.generate`. A prompt that is longer than the context is an `EngineCapabilityError` with the code
        ``context_length_exceeded``."""
        if self.tokenizer is None or self._vocabulary is None:
            raise EngineUnavailableError(NOT_RUNNING)
        ids = self._prompt(request, self.tokenizer)
        sampling = request.sampling
        if sampling.max_tokens == 0:
            yield Chunk(finish="length", usage=Usage(len(ids)))
            return
        grammar = None if request.grammar is None else for_server(request.grammar, self.tokenizer.special_tokens)
        guard = None if grammar is None else GrammarGuard(grammar, self.tokenizer, special_may_be_text=True)
        body = _body(request, ids, grammar, {**self._options, **request.options})
        stream = CompletionStream(self._vocabulary, sampling.logprobs)
        generation = LlamaGeneration(stream, Stops(sampling.stop, self.tokenizer.special_tokens), guard)
        async with self._turns:
            response = await self._open(body)
            try:
                async for data in response.aiter_bytes():
                    for chunk in generation.feed(data):
                        yield chunk
                    if generation.is_over:
                        return
            except httpx.TransportError as error:
                raise await self._lost(error, _origin(response)) from error
            finally:
                await response.aclose()
            raise await self._lost(None, _origin(response))

    def _prompt(self, request: GenerationRequest, tokenizer: Tokenizer) -> list[int]:
        if request.prompt_ids is not None:
            return list(request.prompt_ids)
        if request.messages is not None:
            raise EngineCapabilityError("The engine `llamacpp` takes a prompt, not messages")
        return tokenizer.encode(request.prompt)

    async def _open(self, body: bytes) -> httpx.Response:
        """Send a generation off. Raises `EngineError` when the server refuses it."""
        response = await self._send("POST", "/completion", content=body)
        if response.status_code == httpx.codes.OK:
            return response
        try:
            content = await response.aread()
        finally:
            await response.aclose()
        raise _refusal(response.status_code, content)

    async def _get(self, path: str) -> bytes:
        """The answer to a question. Raises `EngineUnavailableError`, and `EngineCapabilityError` when it is refused."""
        try:
            response = await self._send("GET", path, timeout=ANSWER_WITHIN)
            try:
                content = await response.aread()
            except httpx.TransportError as error:
                raise await self._lost(error, _origin(response)) from error
            finally:
                await response.aclose()
        except EngineTimeoutError as error:
            raise EngineUnavailableError(error.message) from error
        if response.status_code != httpx.codes.OK:
            refusal = _refusal(response.status_code, content)
            raise refusal if isinstance(refusal, EngineCapabilityError) else EngineUnavailableError(refusal.message)
        return content

    async def _send(self, method: str, path: str, *, is_retry: bool = False, **request: Any) -> httpx.Response:
        """A request whose answer has begun. An embedded server that is starting again is waited for; one that had died
        before it could be asked is asked again, once."""
        if self._client is None:
            raise EngineUnavailableError(NOT_RUNNING)
        url = self.url if self._server is None else await asyncio.to_thread(self._server.address)
        try:
            return await self._client.send(self._client.build_request(method, url + path, **request), stream=True)
        except httpx.TransportError as error:
            lost = await self._lost(error, url)
            if self._server is None or is_retry or not isinstance(error, httpx.ConnectError):
                raise lost from error
        return await self._send(method, path, is_retry=True, **request)

    async def _lost(self, error: httpx.TransportError | None, url: str) -> EngineError:
        """What to raise for a broken connection to the server at ``url``."""
        if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
            return EngineTimeoutError("llama.cpp's server did not answer in time")
        reason = str(error or "the answer ended before it was complete")
        if self._server is not None:
            reason = await asyncio.to_thread(self._server.why_lost, url) or reason
        return EngineUnavailableError(f"The connection to llama.cpp's server broke: {reason}")

    async def _props(self) -> _Props:
        content = await self._get("/props")
        try:
            return msgspec.json.decode(content, type=_Props)
        except msgspec.DecodeError as error:
            raise EngineUnavailableError(f"There is no llama.cpp server at `{_shown(self.url)}`: {error}") from error

    def _find_tokenizer(self, props: _Props) -> Tokenizer:
        """The model's file where this machine has it, else the server's own answers."""
        from isogloss.tokenizers import from_gguf

        path = Path(props.model_path)
        if self._is_embedded or (_is_loopback(self._target) and path.is_absolute() and path.is_file()):
            return from_gguf(path)
        self._questions = httpx.Client(base_url=self.url, **self._connection())
        return endpoint_tokenizer(self._questions, path.name, props.eos_token)

    def _connection(self) -> dict[str, Any]:
        """Connections are not kept: after a stream the server may close one that is about to be used again."""
        key = self.api_key
        return {
            "headers": {"Authorization": f"Bearer {key}"} if key else {},
            "limits": httpx.Limits(max_connections=None, max_keepalive_connections=0),
            "timeout": httpx.Timeout(self._timeout, connect=CONNECT_WITHIN),
            "trust_env": not self._is_embedded and not _is_loopback(self._target),
        }


ENGINE = LlamaCppEngine


def _body(request: GenerationRequest, ids: list[int], grammar: str | None, options: Mapping[str, Any]) -> bytes:
    if unknown := sorted(options.keys() - OPTIONS):
        raise EngineCapabilityError(f"The engine `llamacpp` does not know these options: {', '.join(unknown)}")
    body: dict[str, Any] = {
        "prompt": ids,
        "stream": True,
        "return_tokens": True,
        "return_progress": True,
        "response_fields": FINAL_FIELDS,
        "cache_prompt": True,
        **_sampling(request.sampling),
        **options,
    }
    if grammar is not None:
        body["grammar"] = grammar
    return msgspec.json.encode(body)


def _sampling(sampling: Sampling) -> dict[str, Any]:
    fields = {
        "n_predict": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "seed": sampling.seed,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "repeat_penalty": sampling.repetition_penalty,
        "n_probs": None if sampling.logprobs is None else max(1, sampling.logprobs),
        "logit_bias": [[token, bias] for token, bias in sampling.logit_bias.items()] or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


@contextlib.contextmanager
def _no_fault_of_a_turn() -> Iterator[None]:
    """A server that refuses what was fine when it was started with is as good as gone."""
    try:
        yield
    except EngineCapabilityError as error:
        raise EngineUnavailableError(error.message) from error


def _refusal(status: int, content: bytes) -> EngineError:
    """The error for an answer that is none."""
    try:
        error = msgspec.json.decode(content)["error"]
        kind, message = str(error.get("type")), str(error.get("message"))
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
        kind, message = "", content[:200].decode("utf-8", "replace")
    if kind == "exceed_context_size_error":
        counts = f"The prompt has {error.get('n_prompt_tokens')} tokens, the context holds {error.get('n_ctx')}"
        return EngineCapabilityError(counts, code="context_length_exceeded")
    said = f"llama.cpp's server answered {status}: {message}"
    if status in (401, 403, 404, 503):
        return EngineUnavailableError(said)
    return EngineCapabilityError(said) if 400 <= status < 500 else EngineError(said)


def _origin(response: httpx.Response) -> str:
    """The URL of the server that answered."""
    return str(response.request.url.copy_with(raw_path=b"")).rstrip("/")


def _is_url(target: str) -> bool:
    return target.startswith(("http://", "https://"))


def _is_loopback(url: str) -> bool:
    return httpx.URL(url).host in _LOOPBACK


def _shown(url: str) -> str:
    return str(httpx.URL(url).copy_with(userinfo=b""))
