"""What vLLM's server streams from ``POST /v1/completions``, turned into chunks.

Only the ids are read (``return_token_ids``), never the text: the text of an event lags behind its ids where a
character is split over tokens, and does not tell a control token from text that spells it. Tokens are named by their
ids in log probabilities too (``return_tokens_as_token_ids``). The source of the format is
``vllm/entrypoints/openai/completion/protocol.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from isogloss.engines._endpoint import error_in
from isogloss.engines._event_lines import EventLines, event_data
from isogloss.engines._grammar_guard import GrammarGuard, Role
from isogloss.engines._protocol import Chunk, TokenLogprob, Usage
from isogloss.engines._stops import Stops
from isogloss.engines._token_text import TokenText
from isogloss.errors import EngineCapabilityError, EngineError
from isogloss.events import Piece

if TYPE_CHECKING:
    from isogloss.tokenizers import Tokenizer

LEAST_LOGPROB = -9999.0
_TOKEN = "token_id:"
_DONE = b"[DONE]"


class _Logprobs(msgspec.Struct, frozen=True):
    tokens: list[str] = []
    token_logprobs: list[float | None] = []
    top_logprobs: list[dict[str, float] | None] | None = None


class _Choice(msgspec.Struct, frozen=True):
    token_ids: list[int] | None = None
    logprobs: _Logprobs | None = None
    finish_reason: str | None = None
    text: str = ""


class _PromptDetails(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int = 0
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None


class CompletionEvent(msgspec.Struct, frozen=True):
    """One ``data:`` line."""

    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: Mapping[str, Any] | None = None


_decode = msgspec.json.Decoder(CompletionEvent).decode


class VllmGeneration:
    """Reads the stream of one generation, holds it against the grammar and ends it at a stop string.

    ``prompt_tokens`` is what is counted where the server has not counted yet.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        stops: Stops,
        guard: GrammarGuard | None,
        *,
        prompt_tokens: int,
        logprobs: int | None,
    ) -> None:
        self.is_over = False
        """Whether the last chunk has gone out; what the server sends afterwards is of no use."""
        self._lines = EventLines()
        self._tokenizer = tokenizer
        self._text = TokenText(tokenizer)
        self._stops = stops
        self._guard = guard
        self._logprobs = logprobs
        self._usage = Usage(prompt_tokens)
        self._finish: str | None = None

    def feed(self, data: bytes) -> Iterator[Chunk]:
        """The chunks that these bytes settle. Raises `EngineError`."""
        for event in filter(None, map(event_data, self._lines.feed(data))):
            if not self.is_over:
                yield from self._read(event)

    def _read(self, data: bytes) -> Iterator[Chunk]:
        if data == _DONE:
            if self._finish is not None:
                yield from self._end(self._finish)
            return
        try:
            event = _decode(data)
        except msgspec.DecodeError as error:
            raise EngineError(f"vLLM's server sent what is no completion event: {error}") from error
        if event.error is not None:
            raise EngineError(f"vLLM's server failed: {error_in(data)[0]}")
        for choice in event.choices:
            yield from self._choice(choice)
        if event.usage is not None and not event.choices and not self.is_over:
            details = event.usage.prompt_tokens_details
            completion = event.usage.completion_tokens
            self._usage = Usage(
                event.usage.prompt_tokens,
                self._usage.completion_tokens if completion is None else completion,
                (details and details.cached_tokens) or 0,
            )

    def _choice(self, choice: _Choice) -> Iterator[Chunk]:
        if choice.token_ids is None and choice.text:
            raise EngineCapabilityError("vLLM's server is too old: it reports no token ids in its stream")
        if choice.finish_reason in ("abort", "error"):
            raise EngineError(f"vLLM's server ended the generation: {choice.finish_reason}")
        ids = choice.token_ids or []
        self._usage = msgspec.structs.replace(
            self._usage, completion_tokens=(self._usage.completion_tokens or 0) + len(ids)
        )
        for position, token in enumerate(ids):
            for chunk in self._text.feed(token, self._logprob(choice.logprobs, position)):
                yield from self._pass_on(chunk)
                if self.is_over:
                    return
        self._finish = choice.finish_reason or self._finish

    def _pass_on(self, chunk: Chunk) -> Iterator[Chunk]:
        guarded = chunk if self._guard is None else _guarded(chunk, self._guard)
        if guarded.token_ids:
            yield from self._stops.feed(guarded)
        if self._stops.found:
            self.is_over = True
            yield Chunk(finish="stop", usage=self._usage)

    def _end(self, finish: str) -> Iterator[Chunk]:
        for chunk in self._text.finish():
            yield from self._pass_on(chunk)
        if not self.is_over:
            self.is_over = True
            yield from self._stops.finish()
            yield Chunk(finish=finish, usage=self._usage)

    def _logprob(self, logprobs: _Logprobs | None, position: int) -> TokenLogprob | None:
        if self._logprobs is None or logprobs is None or position >= len(logprobs.tokens):
            return None
        tops = (logprobs.top_logprobs or ())[position : position + 1]
        ranked = sorted((tops[0] if tops and tops[0] else {}).items(), key=lambda entry: -entry[1])
        top = tuple(self._entry(token, logprob) for token, logprob in ranked[: self._logprobs])
        return TokenLogprob(*self._entry(logprobs.tokens[position], logprobs.token_logprobs[position]), top)

    def _entry(self, token: str, logprob: float | None) -> tuple[str, float, bytes]:
        number = token.removeprefix(_TOKEN)
        data = self._tokenizer.token_bytes(int(number)) if number.isdigit() and number != token else token.encode()
        return data.decode("utf-8", "replace"), LEAST_LOGPROB if logprob is None else max(logprob, LEAST_LOGPROB), data


def _guarded(chunk: Chunk, guard: GrammarGuard) -> Chunk:
    """The chunk as the grammar sees it: without a token that closes a turn which was complete, and with a special token
    that is only text to the grammar as text."""
    roles = [guard.take(token) for token in chunk.token_ids]
    if roles[-1] is Role.CLOSING:
        return Chunk()
    if roles[-1] is Role.TEXT and chunk.pieces and chunk.pieces[-1].is_control:
        return msgspec.structs.replace(chunk, pieces=(Piece(chunk.pieces[-1].text),))
    return chunk
