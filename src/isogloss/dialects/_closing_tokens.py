"""Which tokens of a vocabulary complete one of some texts, given what stands before them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isogloss.tokenizers import Tokenizer

_SEPARATOR = b"\xff"
"""In no token's text."""


class _Vocabulary:
    """The texts of all tokens but control tokens, to find those that begin with a text, or hold one."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        size = tokenizer.vocabulary_size
        special = (*tokenizer.special_tokens.values(), *tokenizer.end_tokens)
        self.special = frozenset([token for token in special if token < size])
        texts = sorted((tokenizer.token_bytes(token), token) for token in range(size) if token not in self.special)
        self._texts = [text for text, _ in texts]
        self._tokens = [token for _, token in texts]
        self._joined = _SEPARATOR.join(self._texts)
        self._ends: list[int] = []
        end = -1
        for text in self._texts:
            end += len(text) + 1
            self._ends.append(end)

    def beginning_with(self, text: bytes) -> list[int]:
        start = bisect_left(self._texts, text)
        return self._tokens[start : bisect_right(self._texts, text + b"\xff", start)]

    def holding(self, text: bytes) -> Iterator[int]:
        at = self._joined.find(text)
        while at >= 0:
            yield self._tokens[bisect_right(self._ends, at)]
            at = self._joined.find(text, at + 1)


@lru_cache(maxsize=8)
def _vocabulary(tokenizer: Any) -> _Vocabulary:
    return _Vocabulary(tokenizer)


class ClosingTokens:
    """Tokens by what they complete of the texts: a text that begins in front of a token is told by the text before."""

    def __init__(self, texts: Sequence[bytes], tokenizer: Tokenizer) -> None:
        self.longest = max(map(len, texts), default=1) - 1
        """So many bytes before a token matter."""
        self._texts = texts
        self._cuts = [(text[:cut], text[cut:]) for text in texts for cut in range(1, len(text))]
        self._token_bytes = tokenizer.token_bytes
        hashable: Any = tokenizer
        self._vocabulary = _vocabulary(hashable)
        self._whole = frozenset([token for text in texts for token in self._vocabulary.holding(text)])

    def behind(self, tail: bytes) -> set[int]:
        """The tokens that complete a text behind ``tail``, and all control tokens."""
        rests = [rest for before, rest in self._cuts if tail.endswith(before)]
        found = set(self._vocabulary.special | self._whole)
        return found.union(*map(self._vocabulary.beginning_with, rests))

    def completes(self, tail: bytes, token: int) -> bool:
        """Whether a token is one of those."""
        if token in self._vocabulary.special or token in self._whole:
            return True
        rests = [rest for before, rest in self._cuts if tail.endswith(before)]
        return bool(rests) and self._token_bytes(token).startswith(tuple(rests))
