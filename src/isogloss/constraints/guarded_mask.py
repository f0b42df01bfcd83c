"""Which tokens a guard takes from a mask.

A token is looked at only where it may close something that a guard has a word on, so most steps look at none. What the
vocabulary has of such tokens is indexed once.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from isogloss.schema.json_watch import JsonWatch

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from isogloss.tokenizers import Tokenizer

_OPENING = b' \t\r\n:,{["'


class TokenIndex:
    """Tokens of one vocabulary by what they may close. A head is what stands before a token's first quote."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        import numpy

        self._tokenizer = tokenizer
        special = set(tokenizer.special_tokens.values())
        quoted, several, opening, numeric, escaping = [], [], [], [], []
        self.by_head: dict[bytes, list[int]] = {}
        """Tokens by their head, where it has no backslash."""
        escaped_heads = []
        plain = []
        for token in range(tokenizer.vocabulary_size):
            if token in special:
                continue
            data = tokenizer.token_bytes(token)
            if not data:
                continue
            if data[0] in b"0123456789.eE+-":
                numeric.append(token)
            if b"\\" in data:
                escaping.append(token)
            position = data.find(b'"')
            if position < 0:
                plain.append(token)
                continue
            quoted.append(token)
            if data.find(b'"', position + 1) >= 0:
                several.append(token)
            elif not data[:position].strip(_OPENING):
                opening.append(token)
            head = data[:position]
            if b"\\" in head:
                escaped_heads.append(token)
            else:
                self.by_head.setdefault(head, []).append(token)

        def ids(tokens: list[int]) -> NDArray[numpy.int64]:
            return numpy.array(tokens, dtype=numpy.int64)

        self.quoted = ids(quoted)
        """With a quote."""
        self.several_quotes = ids(several)
        """With two quotes or more: one may hold a whole key or string."""
        self.opening = ids(opening)
        """Whose one quote can only open a string, outside of one."""
        self.numeric = ids(numeric)
        """That may go on with a number."""
        self.escaping = ids(escaping)
        """With a backslash."""
        self.escaped_heads = ids(escaped_heads)
        """Whose head has a backslash."""
        self.all = ids(sorted(quoted + plain))

    def bytes_of(self, token: int) -> bytes:
        return self._tokenizer.token_bytes(token)


def token_index(tokenizer: Tokenizer) -> TokenIndex:
    """The index of a vocabulary, made once."""
    return _token_index(_ByIdentity(tokenizer))


class _ByIdentity:
    """A tokenizer as a key, whatever it says of equality."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    def __hash__(self) -> int:
        return id(self.tokenizer)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and other.tokenizer is self.tokenizer


@functools.lru_cache(maxsize=8)
def _token_index(key: _ByIdentity) -> TokenIndex:
    return TokenIndex(key.tokenizer)


class GuardedMask:
    """A mask from which the guards of a value take tokens."""

    def __init__(self, words: NDArray[numpy.int32], watch: JsonWatch, index: TokenIndex) -> None:
        self._words = words
        self._watch = watch
        self._index = index

    def narrow(self) -> None:
        """Take away every token that a guard forbids."""
        guards, place = self._watch.guards, self._watch.place
        index = self._index
        if guards.open_keys:
            self._take_repeated_keys()
        if not guards.escaped_keys:
            if place.mode == "key" and place.escaped:
                self._take(index.all)
            else:
                self._take(index.escaping)
        if guards.open_numbers and self._watch.number_length():
            self._take(index.numeric)
        if self._watch.is_guarded():
            self._take_closing()

    def _take_repeated_keys(self) -> None:
        watch, index = self._watch, self._index
        self._take(index.several_quotes)
        if watch.place.mode != "key" or not watch.earlier_keys():
            return
        self._take(index.escaped_heads)
        written = watch.open_text()
        if b"\\" in written:
            self._take(index.quoted)
            return
        for head in self._repeating_heads(written):
            self._take_heads(head)

    def _repeating_heads(self, written: bytes) -> list[bytes]:
        """Heads that would end the key at hand as one that came before."""
        watch, by_head = self._watch, self._index.by_head
        keys = watch.earlier_keys() or {}
        if len(keys) <= len(by_head):
            found = (key.encode("utf-8", "surrogatepass") for key in keys)
            return [key[len(written) :] for key in found if key.startswith(written) and key[len(written) :] in by_head]
        return [head for head in by_head if (written + head).decode("utf-8", "replace") in keys]

    def _take_heads(self, head: bytes) -> None:
        tokens = self._index.by_head[head]
        if not self._watch.allows(head + b'"'):
            for token in tokens:
                self.remove(token)

    def _take_closing(self) -> None:
        index, place = self._index, self._watch.place
        if place.mode in ("string", "key"):
            if place.mode == "key" or place.escaped:
                self._take(index.several_quotes if place.mode == "key" else index.quoted)
                return
            self._take(index.escaped_heads)
            self._take(index.several_quotes)
            for head, tokens in index.by_head.items():
                some = [token for token in tokens if self._allowed(token)]
                if not some:
                    continue
                if not self._watch.allows(head + b'"'):
                    for token in some:
                        self.remove(token)
                else:
                    for token in some:
                        if len(index.bytes_of(token)) > len(head) + 1:
                            self._check(token)
            return
        import numpy

        self._take(numpy.setdiff1d(index.all, index.opening, assume_unique=True))

    def _take(self, tokens: NDArray[numpy.int64]) -> None:
        """Look at the tokens that the mask still has."""
        if not len(tokens):
            return
        bits = (self._words[tokens >> 5] >> (tokens & 31)) & 1
        for token in tokens[bits != 0].tolist():
            self._check(token)

    def _check(self, token: int) -> None:
        if not self._watch.allows(self._index.bytes_of(token)):
            self.remove(token)

    def _allowed(self, token: int) -> bool:
        return bool((int(self._words[token >> 5]) >> (token & 31)) & 1)

    def remove(self, token: int) -> None:
        """Take one token away."""
        import numpy

        unsigned = self._words.view(numpy.uint32)
        unsigned[token >> 5] &= ~numpy.uint32(1 << (token & 31))
