"""What a constraint lets come next after a text, as characters: for people who look into a grammar."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from isogloss.tokenizers import byte_level

if TYPE_CHECKING:
    from isogloss.constraints.constraint import Constraint
    from isogloss.constraints.matcher import Matcher

MOST_BEGINNINGS = 32
"""First bytes of long characters that are followed; free text allows 51."""
MOST_LOOKS = 256
"""Masks that are looked at behind them."""

_LONG_CHARACTERS = ((0xC2, 0xE0, 0x80), (0xE0, 0xF0, 0x800), (0xF0, 0xF5, 0x10000))
"""First bytes (end exclusive) of characters of two, three and four bytes, and the first such character."""

Range = tuple[int, int]
"""Code points from the first to the last, both included."""


class Continuation(NamedTuple):
    """Where a text stands in a grammar.

    ``offset``, in characters, is where the text was refused, its length where it was not; the rest describes the place
    there. ``is_exact``: where it is false some of the characters beyond ASCII that ``characters`` names are not
    allowed. ``forced`` is the text that has to come next, whatever the model says.
    """

    offset: int
    is_complete: bool
    characters: tuple[Range, ...]
    is_exact: bool
    forced: str


def continuation(constraint: Constraint, text: str) -> Continuation:
    """What may follow ``text``, every marker being text. Raises `GrammarError` when the grammar does not compile."""
    matcher = constraint.matcher(byte_level())
    data = text.encode()
    accepted = matcher.accept_all(list(data))
    whole = data[:accepted].decode("utf-8", "ignore")
    matcher.rollback(accepted - len(whole.encode()))
    characters, is_exact = _characters(matcher)
    forced = bytes(token for token in matcher.forced_tokens() if token < 256).decode("utf-8", "ignore")
    return Continuation(len(whole), matcher.is_complete, _joined(characters), is_exact, forced)


def _characters(matcher: Matcher) -> tuple[list[Range], bool]:
    """What may come next, and whether that is exact."""
    first = _allowed(matcher)
    ascii_characters = [(byte, byte) for byte in first if byte < 0x80]
    long = [byte for byte in first if byte >= 0x80]
    looks = _Looks(matcher, MOST_LOOKS if len(long) <= MOST_BEGINNINGS else 0)
    characters = ascii_characters + [part for byte in long for part in looks.behind((byte,))]
    return characters, not looks.is_over


class _Looks:
    """Follows the bytes of long characters, as long as it may."""

    def __init__(self, matcher: Matcher, most: int) -> None:
        self._matcher = matcher
        self._left = most
        self.is_over = False

    def behind(self, begun: tuple[int, ...]) -> list[Range]:
        """The characters that begin with these bytes. The matcher stands in front of the last of them."""
        if len(begun) == _length(begun[0]):
            return [_span(begun)]
        if self._left == 0:
            self.is_over = True
            return [_span(begun)]
        self._left -= 1
        self._matcher.accept(begun[-1])
        found = [part for byte in _allowed(self._matcher) for part in self.behind((*begun, byte))]
        self._matcher.rollback(1)
        return found


def _allowed(matcher: Matcher) -> list[int]:
    words = matcher.mask()
    return [byte for byte in range(256) if words[byte >> 5] >> (byte & 31) & 1]


def _length(first: int) -> int:
    return next(length for length, (_, end, _) in enumerate(_LONG_CHARACTERS, 2) if first < end)


def _span(begun: tuple[int, ...]) -> Range:
    """The code points whose encoding begins with these bytes."""
    length = _length(begun[0])
    low = begun[0] & (0x7F >> length)
    for byte in begun[1:]:
        low = low << 6 | byte & 0x3F
    open_bits = 6 * (length - len(begun))
    low <<= open_bits
    high = min(low | (1 << open_bits) - 1, 0x10FFFF)
    return max(low, _LONG_CHARACTERS[length - 2][2]), high


def _joined(ranges: list[Range]) -> tuple[Range, ...]:
    return tuple(_joining(sorted(ranges)))


def _joining(ranges: list[Range]) -> Iterator[Range]:
    """Neighbours as one range."""
    if not ranges:
        return
    low, high = ranges[0]
    for start, end in ranges[1:]:
        if start > high + 1:
            yield low, high
            low = start
        high = end
    yield low, high
