"""Brackets, commas and colons: what the notations of nested values share.

A `ContainerReader` keeps the open brackets and what may come next, and writes JSON's punctuation. How strings and bare
words are written is each notation's own.
"""

from __future__ import annotations

from typing import ClassVar, Final

from isogloss._compiled import mypyc_attr
from isogloss.notations.runs import run

DEEPEST: Final = 256
"""Containers nested deeper than this are a fault: no schema asks for it, and recursion in readers downstream ends."""

VALUE, FIRST_VALUE, FIRST_KEY, KEY, COLON, NEXT, STRING, DONE, OTHER = range(9)
"""What comes next. ``OTHER`` and above are a notation's own."""

EXPECTED = {
    VALUE: "a value",
    FIRST_VALUE: "a value",
    FIRST_KEY: "a key",
    KEY: "a key",
    COLON: "a colon",
    NEXT: "a comma or a closing bracket",
    DONE: "nothing more",
}

_SPACE = run(r"[\s\ufeff]*")


@mypyc_attr(allow_interpreted_subclasses=True)
class ContainerReader:
    """Reads one value in pieces, each character once. ``done`` when it is whole, ``fault`` when it cannot be one."""

    __slots__ = ("_closers", "_comma", "_expect", "_is_key", "done", "fault", "settled")

    quotes: ClassVar[str] = "\"'"
    """Characters that open a string."""
    colons: ClassVar[str] = ":"
    """Characters that stand between a key and its value."""
    expected: ClassVar[dict[int, str]] = EXPECTED

    def __init__(self) -> None:
        self._closers: list[str] = []
        self._comma = ""
        self._expect = VALUE
        self._is_key = False
        self.done = False
        self.fault = ""
        self.settled = 0
        """Where the input ended that the last output of `read` came from."""

    def read(self, text: str, pos: int) -> tuple[int, str]:
        """Read on from ``pos``: how far it got, and the JSON text that this settles."""
        out: list[str] = []
        while not (self.done or self.fault):
            if self._expect == STRING:
                step = self._string(text, pos, out)
            else:
                pos = _SPACE(text, pos).end()
                if pos == len(text):
                    break
                step = self._structure(text, pos, out)
            if step == 0:
                break
            pos += step
        return pos, "".join(out)

    # What a notation gives: how many characters were read, 0 when more of the text is needed or at a fault

    def _string(self, text: str, pos: int, out: list[str]) -> int:
        """Inside a string."""
        raise NotImplementedError

    def _quote(self, text: str, pos: int, out: list[str]) -> int:
        """At a character of ``quotes``, where a string may begin."""
        raise NotImplementedError

    def _bare(self, text: str, pos: int, out: list[str]) -> int:
        """At anything but brackets, commas, colons and quotes."""
        raise NotImplementedError

    # What they share

    def _structure(self, text: str, pos: int, out: list[str]) -> int:
        char = text[pos]
        if char in self.quotes:
            return self._quote(text, pos, out)
        if char in "{[":
            return self._open(char, pos, out)
        if char in "}]":
            return self._close(char, pos, out)
        if char == ",":
            return self._next()
        if char in self.colons:
            return self._colon(char, pos, out)
        return self._bare(text, pos, out)

    def _put(self, out: list[str], fragment: str, end: int) -> None:
        if fragment:
            out.append(fragment)
            self.settled = end

    def _put_item(self, out: list[str], fragment: str, end: int) -> None:
        """The beginning of a key or a value, with the comma that is due."""
        self._put(out, self._comma + fragment, end)
        self._comma = ""

    def _begin_string(self, out: list[str], end: int) -> None:
        self._is_key = self._expect in (KEY, FIRST_KEY)
        self._put_item(out, '"', end)
        self._expect = STRING

    def _end_string(self, out: list[str], end: int) -> None:
        self._put(out, '"', end)
        if self._is_key:
            self._expect = COLON
        else:
            self._value_ended()

    def _open(self, char: str, pos: int, out: list[str]) -> int:
        if self._expect not in (VALUE, FIRST_VALUE):
            return self._misplaced(char)
        if len(self._closers) == DEEPEST:
            return self._refuse(f"nested deeper than {DEEPEST}")
        self._put_item(out, char, pos + 1)
        self._closers.append("}" if char == "{" else "]")
        self._expect = FIRST_KEY if char == "{" else FIRST_VALUE
        return 1

    def _close(self, char: str, pos: int, out: list[str]) -> int:
        if not self._closers or self._closers[-1] != char or not self._is_closable():
            return self._misplaced(char)
        self._closers.pop()
        self._comma = ""
        self._put(out, char, pos + 1)
        self._value_ended()
        return 1

    def _is_closable(self) -> bool:
        """A trailing comma leaves `KEY` in an object and `VALUE` behind a pending comma in an array."""
        expect = self._expect
        return expect in (NEXT, FIRST_KEY, KEY, FIRST_VALUE) or (expect == VALUE and self._comma != "")

    def _next(self) -> int:
        if self._expect != NEXT:
            return self._misplaced(",")
        self._comma = ","
        self._expect = KEY if self._closers[-1] == "}" else VALUE
        return 1

    def _colon(self, char: str, pos: int, out: list[str]) -> int:
        if self._expect != COLON:
            return self._misplaced(char)
        self._put(out, ":", pos + 1)
        self._expect = VALUE
        return 1

    def _value_ended(self) -> None:
        if self._closers:
            self._expect = NEXT
        else:
            self._expect = DONE
            self.done = True

    def _misplaced(self, token: str) -> int:
        return self._refuse(f"{token} where {self.expected[self._expect]} was expected")

    def _refuse(self, reason: str) -> int:
        self.fault = reason
        return 0
