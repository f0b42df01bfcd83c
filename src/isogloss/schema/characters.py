"""Sets of characters, as patterns name them: a bit mask over ASCII and a class of the Rust syntax beyond it."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import msgspec

ASCII = (1 << 128) - 1
BEYOND_ASCII = r"[\x{80}-\x{10FFFF}]"


class Characters(msgspec.Struct, frozen=True):
    """A set of characters: a bit mask over ASCII and a bracketed class of the Rust syntax beyond it."""

    ascii: int
    beyond: str = ""

    def complement(self) -> Characters:
        if not self.beyond:
            beyond = BEYOND_ASCII
        elif self.beyond == BEYOND_ASCII:
            beyond = ""
        else:
            beyond = f"[{BEYOND_ASCII}&&[^{self.beyond}]]"
        return Characters(ASCII & ~self.ascii, beyond)

    def union(self, other: Characters) -> Characters:
        both = {self.beyond, other.beyond} - {""}
        if BEYOND_ASCII in both:
            beyond = BEYOND_ASCII
        else:
            beyond = "".join(sorted(both)) if len(both) < 2 else f"[{''.join(sorted(both))}]"
        return Characters(self.ascii | other.ascii, beyond)


def mask_of(text: str) -> int:
    """The bits of some ASCII characters."""
    return functools.reduce(lambda mask, char: mask | 1 << ord(char), text, 0)


DIGITS = Characters(mask_of("0123456789"))
WORD = Characters(mask_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"))
SPACE = Characters(
    mask_of("\t\n\v\f\r "),
    r"[\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}]",
)
LINE_ENDS = Characters(mask_of("\n\r"), r"[\x{2028}\x{2029}]")
ANY = Characters(ASCII, BEYOND_ASCII)


def single(code: int) -> Characters:
    """The set of one character, by its code."""
    return span(code, code)


def span(low: int, high: int) -> Characters:
    """The characters from one code to another, the last included."""
    mask = 0
    if low < 128:
        mask = (1 << (min(high, 127) + 1)) - (1 << low)
    if high < 128:
        return Characters(mask)
    low = max(low, 128)
    return Characters(mask, f"[\\x{{{low:X}}}-\\x{{{high:X}}}]" if low < high else f"[\\x{{{low:X}}}]")


def code_of(characters: Characters) -> int:
    """The one code of a singleton, -1 for anything else."""
    if not characters.beyond:
        mask = characters.ascii
        return mask.bit_length() - 1 if mask and mask & (mask - 1) == 0 else -1
    if characters.ascii or "-" in characters.beyond or not characters.beyond.startswith("[\\x{"):
        return -1
    digits = characters.beyond[4:-2]
    return int(digits, 16) if "x" not in digits else -1


def _class_member(code: int) -> str:
    char = chr(code)
    return char if char.isalnum() else f"\\x{code:02X}"


def _ranges(mask: int) -> Iterator[tuple[int, int]]:
    while mask:
        low = (mask & -mask).bit_length() - 1
        above = (mask >> low) + 1
        size = (above & -above).bit_length() - 1
        yield low, low + size - 1
        mask &= -1 << (low + size)


def bracketed(mask: int) -> str:
    """The inside of a character class of the Rust syntax for the ASCII characters of a mask."""
    return "".join(
        _class_member(low) if low == high else f"{_class_member(low)}-{_class_member(high)}"
        for low, high in _ranges(mask)
    )
