"""Tokens laid against events: which tokens, and which log probabilities, an event's text was made of."""

from __future__ import annotations

import codecs
from collections import deque

from isogloss.engines._protocol import Chunk, TokenLogprob
from isogloss.events import Event, ReasoningDelta, RefusalDelta, TextDelta
from isogloss.tokenizers import Tokenizer


class TokenSpans:
    """Keeps the tokens of an output in order until an event settles their characters.

    A token belongs to the event in which its first character lies.
    """

    def __init__(self, tokenizer: Tokenizer | None) -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._length = 0
        self._waiting: deque[tuple[int, int, TokenLogprob | None]] = deque()
        self.tokens = 0
        """How many tokens came so far."""
        self.reasoning_tokens = 0
        """How many of them belong to reasoning."""

    def extend(self, chunk: Chunk) -> None:
        """The tokens of a chunk, from the most exact of what the engine said about them."""
        if chunk.logprobs:
            for logprob in chunk.logprobs:
                self._add(len(self._decoder.decode(logprob.data or logprob.token.encode())), logprob)
        elif chunk.token_ids and self._tokenizer is not None:
            for token in chunk.token_ids:
                self._add(len(self._decoder.decode(self._tokenizer.token_bytes(token))), None)
        else:
            for piece in chunk.pieces:
                self._add(len(piece.text), None)

    def take(self, event: Event) -> tuple[TokenLogprob, ...]:
        """The log probabilities of the visible text of this event, which is the end of what it covers."""
        waiting = self._waiting
        if not waiting or waiting[0][0] >= event.end:
            return ()
        taken: list[TokenLogprob] = []
        said = event.text if isinstance(event, (TextDelta, ReasoningDelta, RefusalDelta)) else ""
        is_visible = isinstance(event, (TextDelta, RefusalDelta))
        begin = event.end - len(said)
        while waiting and waiting[0][0] < event.end:
            start, end, logprob = waiting.popleft()
            if isinstance(event, ReasoningDelta):
                self.reasoning_tokens += 1
            elif is_visible and logprob is not None and (start >= begin or end > begin):
                taken.append(logprob)
        return tuple(taken)

    def _add(self, length: int, logprob: TokenLogprob | None) -> None:
        start = self._length
        self._length = end = start + length
        self._waiting.append((start, end, logprob))
        self.tokens += 1
