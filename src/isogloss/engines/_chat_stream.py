"""What chat endpoints stream from ``POST /chat/completions``, turned into chunks.

The format is that of OpenAI's API, ``chat.completion.chunk``, with the fields for reasoning that other servers add.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from isogloss.engines._endpoint import error_in
from isogloss.engines._event_lines import EventLines, event_data
from isogloss.engines._protocol import Chunk, NativePiece, TokenLogprob, Usage
from isogloss.errors import EngineError
from isogloss.events import Piece

LEAST_LOGPROB = -9999.0
_DONE = b"[DONE]"
_FINISH = {"tool_calls": "stop", "function_call": "stop"}
"""That calls were made is seen by the calls."""


class _Function(msgspec.Struct, frozen=True):
    name: str | None = None
    arguments: str | None = None


class _Call(msgspec.Struct, frozen=True):
    index: int = 0
    id: str | None = None
    function: _Function = _Function()


class _Delta(msgspec.Struct, frozen=True):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Top(msgspec.Struct, frozen=True):
    token: str
    logprob: float | None = None
    bytes: list[int] | None = None


class _Logprob(_Top, frozen=True):
    top_logprobs: list[_Top] = []


class _Logprobs(msgspec.Struct, frozen=True):
    content: list[_Logprob] | None = None


class _Choice(msgspec.Struct, frozen=True):
    delta: _Delta = _Delta()
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _PromptDetails(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None


class CompletionChunk(msgspec.Struct, frozen=True):
    """One ``data:`` line."""

    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: Mapping[str, Any] | str | None = None


_decode = msgspec.json.Decoder(CompletionChunk).decode


class ChatGeneration:
    """Reads the stream of one turn. ``is_native``: text and calls come as pieces that the endpoint took apart."""

    def __init__(self, *, is_native: bool) -> None:
        self.is_over = False
        """Whether the last chunk has gone out."""
        self._is_native = is_native
        self._lines = EventLines()
        self._usage: Usage | None = None
        self._finish: str | None = None
        self._named: set[int] = set()
        self._last_call = -1

    def feed(self, data: bytes) -> Iterator[Chunk]:
        """The chunks that these bytes settle. Raises `EngineError`."""
        for event in filter(None, map(event_data, self._lines.feed(data))):
            if not self.is_over:
                yield from self._read(event)

    def finish(self) -> Iterator[Chunk]:
        """The last chunk, where the stream ended without saying so."""
        if not self.is_over and self._finish is not None:
            self.is_over = True
            yield Chunk(finish=self._finish, usage=self._usage)

    def _read(self, data: bytes) -> Iterator[Chunk]:
        if data == _DONE:
            yield from self.finish()
            return
        try:
            event = _decode(data)
        except msgspec.DecodeError as error:
            raise EngineError(f"The chat endpoint sent what is no chat completion chunk: {error}") from error
        if event.error is not None:
            raise EngineError(f"The chat endpoint failed: {error_in(data)[0]}")
        if event.usage is not None:
            details = event.usage.prompt_tokens_details
            self._usage = Usage(
                event.usage.prompt_tokens or 0,
                event.usage.completion_tokens or 0,
                (details and details.cached_tokens) or 0,
            )
        for choice in event.choices:
            pieces = tuple(self._pieces(choice.delta))
            if pieces:
                yield Chunk(pieces, logprobs=_logprobs(choice.logprobs))
            if choice.finish_reason is not None:
                self._finish = _FINISH.get(choice.finish_reason, choice.finish_reason)

    def _pieces(self, delta: _Delta) -> Iterator[Piece]:
        reasoning = delta.reasoning_content or delta.reasoning
        if reasoning:
            yield NativePiece(reasoning, kind="reasoning")
        if delta.refusal:
            yield NativePiece(delta.refusal, kind="refusal")
        if delta.content:
            yield NativePiece(delta.content, kind="text") if self._is_native else Piece(delta.content)
        for call in delta.tool_calls or ():
            yield self._call(call)

    def _call(self, call: _Call) -> NativePiece:
        if not self._is_native:
            raise EngineError("The chat endpoint made a tool call of its own: open the engine with native=true")
        text = call.function.arguments or ""
        if call.index in self._named:
            if call.index != self._last_call:
                raise EngineError("The chat endpoint went on with a tool call after it had begun another")
            return NativePiece(text, kind="call", call=call.index)
        if not call.function.name:
            raise EngineError("The chat endpoint sent a tool call without a name")
        self._named.add(call.index)
        self._last_call = call.index
        return NativePiece(text, kind="call", call=call.index, call_id=call.id or "", name=call.function.name)


def _logprobs(logprobs: _Logprobs | None) -> tuple[TokenLogprob, ...]:
    if logprobs is None:
        return ()
    return tuple(
        TokenLogprob(*_entry(entry), tuple(_entry(top) for top in entry.top_logprobs))
        for entry in logprobs.content or ()
    )


def _entry(entry: _Top) -> tuple[str, float, bytes]:
    data = entry.token.encode() if entry.bytes is None else bytes(entry.bytes)
    return entry.token, LEAST_LOGPROB if entry.logprob is None else max(entry.logprob, LEAST_LOGPROB), data
