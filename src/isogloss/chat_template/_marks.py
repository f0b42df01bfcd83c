"""Private-use characters that tell, within a rendered prompt, what was said by whom and what the template wrote itself.

They are put around what was said before a template renders it, and read off the prompt afterwards. Templates strip
white space and test for emptiness, so that the characters stand inside the blanks of a string, and blank strings stay
as they are.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import msgspec

PRIVATE_USE = re.compile("[\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd]")

_KINDS = 7
_WIDTH = _KINDS + 10
_BASES = (*range(0xE000, 0xF8FF - _WIDTH, _WIDTH), *range(0xF0000, 0xFFFFD - _WIDTH, _WIDTH))


class Piece(msgspec.Struct, frozen=True, gc=False):
    """A run of a prompt. ``subject``: the number of the string that it is (of), -1 for the template's own text.
    ``item``: the message that the template's loop was at, -1 outside. ``is_generated``: within ``{% generation %}``."""

    text: str
    subject: int = -1
    item: int = -1
    is_generated: bool = False


class Marks:
    """Characters that nothing in a conversation has."""

    def __init__(self, used: Collection[str]) -> None:
        """``used``: the private-use characters that the conversation and the template have. Raises `ValueError` when
        they leave none."""
        codes = {ord(character) for character in used}
        taken = {(code - first) // _WIDTH * _WIDTH + first for code in codes for first in (0xE000, 0xF0000)}
        base = next((base for base in _BASES if base not in taken), None)
        if base is None:
            raise ValueError("no private-use characters are left")
        self.open, self.close, self.item, self.enter, self.leave, self.generated, self.generated_end = (
            chr(base + kind) for kind in range(_KINDS)
        )
        first, last = chr(base + _KINDS), chr(base + _WIDTH - 1)
        self._digits = {ord("0") + digit: base + _KINDS + digit for digit in range(10)}
        self._mark = re.compile(f"([{chr(base)}-{chr(base + _KINDS - 1)}])([{first}-{last}]*)")
        self._plain_digits = {code: digit for digit, code in self._digits.items()}

    def number(self, number: int) -> str:
        """A number in characters of its own."""
        return str(number).translate(self._digits)

    def around(self, text: str, number: int) -> str:
        """``text`` marked as the string of that number."""
        said = text.strip()
        if not said:
            return text
        if len(said) == len(text):
            return f"{self.open}{self.number(number)}{said}{self.close}"
        start = text.index(said)
        return f"{text[:start]}{self.open}{self.number(number)}{said}{self.close}{text[start + len(said) :]}"

    def read(self, marked: str) -> list[Piece] | None:
        """The runs of a prompt, without the marks; ``None`` where the template tore a marked string apart."""
        parts = iter(self._mark.split(marked))
        text = next(parts)
        pieces = [Piece(text)] if text else []
        items: list[int] = []
        subject, item, is_generated = -1, -1, False
        for kind, digits, text in zip(parts, parts, parts, strict=True):
            if (subject >= 0) != (kind == self.close):
                return None
            if kind == self.close:
                subject = -1
            elif kind == self.open:
                subject = self._read_number(digits)
            elif kind == self.item:
                item = self._read_number(digits)
            elif kind == self.enter:
                items.append(item)
            elif kind == self.leave:
                item = items.pop() if items else -1
            else:
                is_generated = kind == self.generated
            if text:
                pieces.append(Piece(text, subject, item, is_generated))
        return None if subject >= 0 else pieces

    def _read_number(self, digits: str) -> int:
        return int(digits.translate(self._plain_digits) or -1)
