"""What llama.cpp's server streams from ``POST /completion``, turned into chunks.

One event tells one token: ``content`` (text), ``tokens`` (its id), ``tokens_predicted`` (how many so far) and
``completion_probabilities``. Tokens that end inside a character have no event: their bytes come with the ``content`` of
the token that completes it, and only ``tokens_predicted`` shows that they were there. The source of the format is
``tools/server/README.md`` of llama.cpp.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from isogloss.engines._protocol import Chunk, TokenLogprob, Usage
from isogloss.errors import EngineCapabilityError, EngineError
from isogloss.events import Piece

if TYPE_CHECKING:
    from isogloss.tokenizers import Tokenizer

LEAST_LOGPROB = -9999.0
"""Stands for the logarithm of zero, as in OpenAI's API."""
_MOST_SPLIT = 8
"""A character, and text glued to its first byte, split over more tokens than this keeps its text but not their ids."""
_FINISH = {"eos": "stop", "word": "stop", "limit": "length"}


class TokenProbability(msgspec.Struct, frozen=True):
    """An entry of ``completion_probabilities`` or of its ``top_logprobs``."""

    id: int
    token: str = ""
    bytes: list[int] = []
    logprob: float | None = None
    top_logprobs: list[TokenProbability] = []


class Timings(msgspec.Struct, frozen=True):
    """``timings`` of the last event. ``cache_n`` tokens of the prompt were reused."""

    cache_n: int = 0


class PromptProgress(msgspec.Struct, frozen=True):
    """``prompt_progress`` of the events that come while the prompt is read."""

    cache: int = 0


class CompletionEvent(msgspec.Struct, frozen=True):
    """One ``data:`` line."""

    content: str = ""
    tokens: list[int] = []
    stop: bool = False
    stop_type: str | None = None
    tokens_predicted: int = 0
    tokens_evaluated: int = 0
    completion_probabilities: list[TokenProbability] = []
    prompt_progress: PromptProgress | None = None
    timings: Timings | None = None
    error: Mapping[str, Any] | None = None


FINAL_FIELDS = ("content", "stop", "stop_type", "timings", "tokens", "tokens_evaluated", "tokens_predicted")
"""``response_fields``: what is read of the last event, which otherwise repeats the prompt and the grammar."""

_decode = msgspec.json.Decoder(CompletionEvent).decode


class Vocabulary:
    """What of a tokenizer the stream is read with; made once an engine."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.control = {token: text for text, token in tokenizer.special_tokens.items()}

    @cached_property
    def ids(self) -> dict[bytes, int]:
        """Ordinary tokens by their bytes."""
        ordinary = (token for token in range(self.tokenizer.vocabulary_size) if token not in self.control)
        return {self.tokenizer.token_bytes(token): token for token in ordinary}

    def data(self, token: int) -> bytes:
        return self.control[token].encode() if token in self.control else self.tokenizer.token_bytes(token)

    def split(self, data: bytes, count: int) -> list[int]:
        """Ids of ``count`` tokens that make up ``data``, which ends inside a character; none when there are none."""
        if not 0 < count <= _MOST_SPLIT:
            return []
        if count == 1:
            return [self.ids[data]] if data in self.ids else []
        for end in range(len(data) - count + 1, 0, -1):
            if data[:end] in self.ids:
                rest = self.split(data[end:], count - 1)
                if rest:
                    return [self.ids[data[:end]], *rest]
        return []


class CompletionStream:
    """Reads the events of one generation in order."""

    def __init__(self, vocabulary: Vocabulary, logprobs: int | None) -> None:
        self._vocabulary = vocabulary
        self._logprobs = logprobs
        self.knows_every_token = True
        """Whether the ids so far are all that there were."""
        self._predicted = 0
        self._evaluated = 0
        self._cached = 0

    @property
    def usage(self) -> Usage:
        """The counts so far."""
        return Usage(self._evaluated, self._predicted, self._cached)

    def read(self, data: bytes | str) -> Chunk | None:
        """The chunk of one event, if it says anything. Raises `EngineError` when it says that something failed."""
        try:
            event = _decode(data)
        except msgspec.DecodeError as error:
            raise EngineError(f"llama.cpp's server sent what is no completion event: {error}") from error
        if event.error is not None:
            raise EngineError(f"llama.cpp's server failed: {event.error.get('message', event.error)}")
        self._evaluated = event.tokens_evaluated or self._evaluated
        if event.prompt_progress is not None:
            self._cached = event.prompt_progress.cache
            return None
        missing = event.tokens_predicted - self._predicted - len(event.tokens)
        self._predicted = event.tokens_predicted
        if event.timings is not None:
            self._cached = event.timings.cache_n
        if event.stop:
            return Chunk(finish=_FINISH.get(event.stop_type or "", event.stop_type or "stop"), usage=self.usage)
        if not event.tokens:
            raise EngineCapabilityError("llama.cpp's server is too old: it reports no token ids in its stream")
        return self._chunk(event, missing)

    def _chunk(self, event: CompletionEvent, missing: int) -> Chunk:
        token = event.tokens[-1]
        spelling = self._vocabulary.control.get(token)
        text = event.content if spelling is None else event.content.removesuffix(spelling)
        pieces = [Piece(text)] if text else []
        if spelling is not None:
            pieces.append(Piece(spelling, is_control=True))
        ids = event.tokens
        if missing > 0:
            data = event.content.encode().removesuffix(self._vocabulary.data(token))
            recovered = self._vocabulary.split(data, missing)
            self.knows_every_token &= len(recovered) == missing
            ids = [*recovered, *ids]
        return Chunk(tuple(pieces), tuple(ids), self._probabilities(event))

    def _probabilities(self, event: CompletionEvent) -> tuple[TokenLogprob, ...]:
        if self._logprobs is None:
            return ()
        return tuple(
            self._logprob(entry, tuple(self._top(each) for each in entry.top_logprobs[: self._logprobs]))
            for entry in event.completion_probabilities
        )

    def _logprob(self, entry: TokenProbability, top: tuple[tuple[str, float, bytes], ...]) -> TokenLogprob:
        return TokenLogprob(*self._top(entry), top)

    def _top(self, entry: TokenProbability) -> tuple[str, float, bytes]:
        data = bytes(entry.bytes) or self._vocabulary.data(entry.id)
        logprob = LEAST_LOGPROB if entry.logprob is None else max(entry.logprob, LEAST_LOGPROB)
        return data.decode("utf-8", "replace"), logprob, data
