"""Which tokens a guard takes from a mask.

A token is looked at only where it may close something that a guard has a word on, so most steps look at a handful or at
none. What the vocabulary has of such tokens is indexed once.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from isogloss.schema.json_watch import LONGEST_NUMBER, JsonWatch

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from isogloss.tokenizers import Tokenizer

_OPENING = b' \t\r\n:,{["'
_NUMERIC = b"0123456789.eE+-"
_LONGEST_DIGITS = 32
"""Digits that one token may have."""


class WholeKeys:
    """Tokens that may hold whole keys, by each text between two of their quotes."""

    def __init__(self, tokens: list[int], bytes_of: Callable[[int], bytes]) -> None:
        self.by_key: dict[bytes, list[int]] = {}
        self.unclear: list[int] = []
        """Those that hold an escape, or quotes enough to repeat a key of their own."""
        for token in tokens:
            data = bytes_of(token)
            if b"\\" in data or data.count(b'"') > 3:
                self.unclear.append(token)
                continue
            for text in data.split(b'"')[1:-1]:
                self.by_key.setdefault(text, []).append(token)

    def repeating(self, watch: JsonWatch) -> Iterator[int]:
        """Those that may hold a key that came before, in any object that is open."""
        yield from self.unclear
        for known in watch.known_names():
            if len(known) > len(self.by_key):
                for text, tokens in self.by_key.items():
                    if text.decode("utf-8", "surrogatepass") in known:
                        yield from tokens
            else:
                for name in known:
                    yield from self.by_key.get(name.encode("utf-8", "surrogatepass"), ())


class TokenIndex:
    """Tokens of one vocabulary by what they may close. A head is what stands before a token's first quote."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.special = frozenset(tokenizer.special_tokens.values())
        self.by_head: dict[bytes, list[int]] = {}
        """Tokens with a quote by their head, where that has no backslash."""
        self.escaped_heads: list[int] = []
        """Those whose head has a backslash."""
        self.two_quotes: list[int] = []
        """With two quotes or more."""
        self.three_quotes: list[int] = []
        """With three or more."""
        self.closing_after_quote: list[int] = []
        """That end a string and then what it is in."""
        self.opening: set[int] = set()
        """Whose one quote can only open a string, outside of one."""
        self.escapes: list[int] = []
        """That begin a numeric escape in the string or key at hand."""
        self.escapes_with_quote: list[int] = []
        """That may do so in a key that they open themselves."""
        self.exponents: list[int] = []
        """That bring the exponent of a number and digits of it."""
        for token in range(tokenizer.vocabulary_size):
            if token not in self.special:
                self._add(token, tokenizer.token_bytes(token))
        self.keys_outside = WholeKeys(self.two_quotes, tokenizer.token_bytes)
        """Tokens that may hold a whole key where they begin outside of strings."""
        self.keys_inside = WholeKeys(self.three_quotes, tokenizer.token_bytes)
        """Those that may do so where they begin inside of one."""

    def _add(self, token: int, data: bytes) -> None:
        if b'"' in data:
            head, _, rest = data.partition(b'"')
            if b"\\" in head:
                self.escaped_heads.append(token)
            else:
                self.by_head.setdefault(head, []).append(token)
            if b'"' in rest:
                self.two_quotes.append(token)
                if rest.count(b'"') > 1:
                    self.three_quotes.append(token)
            elif not head.strip(_OPENING):
                self.opening.add(token)
            if b"}" in rest or b"]" in rest:
                self.closing_after_quote.append(token)
        if b"\\u" in data:
            if _begins_escape(data):
                self.escapes.append(token)
            if b'"' in data:
                self.escapes_with_quote.append(token)
        if data[:1] in (b"e", b"E") and data[1:2] in b"+-0123456789" and len(data) > 1:
            self.exponents.append(token)

    def bytes_of(self, token: int) -> bytes:
        return self._tokenizer.token_bytes(token)

    @functools.cached_property
    def inert_in_number(self) -> NDArray[numpy.int32]:
        """Tokens that close nothing where a number is at hand, as a mask: those that go on with it.

        Not those that begin with ``e``, which may end a word.
        """
        numeric = (t for t in self._starting_with(b"0123456789.+-") if not self.bytes_of(t).strip(_NUMERIC))
        return self._words([*self.special, *numeric])

    @functools.cached_property
    def inert(self) -> NDArray[numpy.int32]:
        """Tokens that close nothing where no string or number is at hand, as a mask."""
        return self.inert_in_number | self._words(self.opening)

    def _words(self, tokens: Iterable[int]) -> NDArray[numpy.int32]:
        import numpy

        bits = numpy.zeros(-(-self._tokenizer.vocabulary_size // 32) * 32, dtype=numpy.uint8)
        bits[[token for token in tokens if token < len(bits)]] = 1  # some vocabularies name tokens beyond their size
        return numpy.packbits(bits, bitorder="little").view(numpy.int32)

    @functools.cached_property
    def quoted(self) -> NDArray[numpy.int32]:
        """Tokens with a quote of which the head has no backslash."""
        import numpy

        size = self._tokenizer.vocabulary_size
        return numpy.array([t for tokens in self.by_head.values() for t in tokens if t < size], dtype=numpy.int32)

    @functools.cached_property
    def numeric(self) -> list[int]:
        """That may go on with a number."""
        return self._starting_with(_NUMERIC)

    @functools.cached_property
    def after_backslash(self) -> list[int]:
        """That make a backslash before them a numeric escape."""
        return self._starting_with(b"u")

    def _starting_with(self, first: bytes) -> list[int]:
        size = self._tokenizer.vocabulary_size
        starts = tuple(bytes((byte,)) for byte in first)
        return [token for token in range(size) if token not in self.special and self.bytes_of(token).startswith(starts)]


def _rest_of_string(canonical: str, written: bytes) -> bytes | None:
    """What the string at hand lacks to be one that came before, given as canonical JSON."""
    if not canonical.startswith('"'):
        return None
    text = (json.loads(canonical) if "\\" in canonical else canonical[1:-1]).encode("utf-8", "surrogatepass")
    return text[len(written) :] if text.startswith(written) else None


def _begins_escape(data: bytes) -> bool:
    """Whether a numeric escape begins before the first quote, where the bytes are in a string."""
    at = 0
    while at < len(data) - 1 and data[at] != 0x22:
        if data[at] == 0x5C:
            if data[at + 1] == 0x75:
                return True
            at += 1
        at += 1
    return False


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
        self._bits = words.data.cast("B").cast("I")
        self._watch = watch
        self._index = index

    def narrow(self) -> None:
        """Take away every token that a guard forbids."""
        guards, place = self._watch.guards, self._watch.place
        index = self._index
        if guards.open_keys:
            if place.mode == "key":
                self._take_repeated_keys()
                self._take(index.three_quotes)  # one may repeat the key at hand
            else:
                holding = index.keys_inside if place.mode == "string" else index.keys_outside
                self._take(holding.repeating(self._watch))
        if not guards.escaped_keys:
            self._take(index.escapes_with_quote)
            if place.mode == "key":
                for token in index.after_backslash if place.escaped else index.escapes:
                    self.remove(token)
        if guards.open_numbers and place.mode == "number":
            self._take_digits()
        if guards.plan:
            self._take_closing()

    def remove(self, token: int) -> None:
        """Take one token away."""
        self._bits[token >> 5] &= ~(1 << (token & 31)) & 0xFFFFFFFF

    def _take_repeated_keys(self) -> None:
        """Tokens by which the key at hand would end as one that came before."""
        watch, index = self._watch, self._index
        keys = watch.earlier_keys()
        if not keys:
            return
        if watch.may_repeat_by_escapes():
            self._take(index.escaped_heads)
        written = watch.open_text()
        if b"\\" in written or watch.place.escaped:
            for tokens in index.by_head.values():
                self._take(tokens)
            return
        for head in self._repeating_heads(written, keys):
            if not watch.allows(head + b'"'):
                for token in index.by_head[head]:
                    self.remove(token)

    def _repeating_heads(self, written: bytes, keys: dict[str, int]) -> list[bytes]:
        by_head = self._index.by_head
        if len(keys) > len(by_head):
            return [head for head in by_head if (written + head).decode("utf-8", "replace") in keys]
        rests = [
            encoded[len(written) :]
            for key in keys
            if (encoded := key.encode("utf-8", "surrogatepass")).startswith(written)
        ]
        return [rest for rest in rests if rest in by_head]

    def _take_digits(self) -> None:
        length = self._watch.number_length()
        if length > LONGEST_NUMBER - _LONGEST_DIGITS or self._watch.has_exponent():
            self._take(self._index.numeric)
        else:
            self._take(self._index.exponents)

    def _take_closing(self) -> None:
        """Tokens that would close a value with a guard of its own, or one of those around it."""
        watch, index = self._watch, self._index
        mode = watch.place.mode
        scalar, around = watch.guarded_scalar(), watch.guarded_around()
        if mode in ("string", "key"):
            if scalar and mode == "string":
                self._take_ends_of_string()
            elif around:
                self._take(index.closing_after_quote)
            return
        if scalar or around:
            self._take(self._allowed(index.inert_in_number if mode == "number" else index.inert))

    def _take_ends_of_string(self) -> None:
        watch, index = self._watch, self._index
        self._take(index.escaped_heads)
        earlier = watch.earlier_items_only()
        if earlier is not None and not watch.place.escaped and b"\\" not in watch.open_text():
            self._take(index.two_quotes)
            heads = [head for name in earlier if (head := _rest_of_string(name, watch.open_text())) in index.by_head]
            self._take(token for head in heads for token in index.by_head[head])
            return
        if watch.place.escaped:
            for tokens in index.by_head.values():
                self._take(tokens)
            return
        closing: dict[bytes, list[int]] = {}
        for token in self._having(index.quoted):
            closing.setdefault(index.bytes_of(token).partition(b'"')[0], []).append(token)
        for head, tokens in closing.items():
            if watch.allows(head + b'"'):
                self._take(token for token in tokens if len(index.bytes_of(token)) > len(head) + 1)
            else:
                for token in tokens:
                    self.remove(token)

    def _having(self, tokens: NDArray[numpy.int32]) -> list[int]:
        """Those of some tokens that the mask still has."""
        found: list[int] = tokens[self._words[tokens >> 5] >> (tokens & 31) & 1 != 0].tolist()
        return found

    def _allowed(self, inert: NDArray[numpy.int32]) -> list[int]:
        """Every token that the mask still has, without the inert ones."""
        import numpy

        words = self._words & ~inert
        filled = numpy.flatnonzero(words)
        bits = numpy.unpackbits(words[filled].view(numpy.uint8), bitorder="little").reshape(-1, 32)
        rows, columns = bits.nonzero()
        tokens: list[int] = (filled[rows] * 32 + columns).tolist()
        return tokens

    def _take(self, tokens: Iterable[int]) -> None:
        """Look at the tokens that the mask still has."""
        bits, watch, index = self._bits, self._watch, self._index
        for token in tokens:
            if bits[token >> 5] >> (token & 31) & 1 and not watch.allows(index.bytes_of(token)):
                self.remove(token)
