"""JSON, as models write it.

Written compactly. Read incrementally, each character once: what comes out is strict JSON without white space, whatever
liberties the model took (single quotes, bare keys, Python's ``True``/``False``/``None``, trailing commas, raw line
breaks in strings, escapes that JSON does not know). What no liberty explains is a fault.
"""

from __future__ import annotations

import json
import re
from typing import Any

DEEPEST = 256
"""Containers nested deeper than this are a fault: no schema asks for it, and recursion in readers downstream ends."""

LONGEST_SCALAR = 1024
"""Longest number or bare word, in characters."""

_WORDS = {"true": "true", "True": "true", "false": "false", "False": "false", "null": "null", "None": "null"}
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?\Z").match
_BARE_KEY = re.compile(r"[A-Za-z_$][\w$.-]*\Z").match
_SPACE = re.compile(r"[\s\ufeff]*").match
_BARE = re.compile(r"[^\s{}\[\],:\"'\ufeff]*").match
# What may stand in a string as it is: escapes that JSON knows included, so that a piece is one match.
_ESCAPE = r"\\(?:[\"\\/bfnrt]|u[0-9a-fA-F]{4})"
_DOUBLE = re.compile(rf'[^"\\\x00-\x1f]*(?:{_ESCAPE}[^"\\\x00-\x1f]*)*').match
_SINGLE = re.compile(rf"[^'\"\\\x00-\x1f]*(?:{_ESCAPE}[^'\"\\\x00-\x1f]*)*").match
_HEX = re.compile(r"[0-9a-fA-F]{4}").match
_ESCAPES = frozenset('"\\/bfnrt')

_VALUE, _FIRST_VALUE, _FIRST_KEY, _KEY, _COLON, _NEXT, _STRING, _DONE = range(8)


class JsonReader:
    """Reads one value. ``done`` when it is whole, ``fault`` when it cannot be one."""

    __slots__ = ("_closers", "_comma", "_expect", "_is_key", "_quote", "done", "fault", "settled")

    def __init__(self) -> None:
        self._closers: list[str] = []
        self._comma = ""
        self._expect = _VALUE
        self._is_key = False
        self._quote = '"'
        self.done = False
        self.fault = ""
        self.settled = 0
        """Where the input ended that the last output of `read` came from."""

    def read(self, text: str, pos: int) -> tuple[int, str]:
        """Read on from ``pos``: how far it got, and the JSON text that this settles."""
        if self._expect == _STRING:  # the fast path: a piece inside a string
            end = (_DOUBLE if self._quote == '"' else _SINGLE)(text, pos).end()  # type: ignore[union-attr]
            if end == len(text):
                self.settled = end
                return end, text[pos:]
        out: list[str] = []
        while not (self.done or self.fault):
            if self._expect == _STRING:
                step = self._string(text, pos, out)
            else:
                pos = _SPACE(text, pos).end()  # type: ignore[union-attr]
                if pos == len(text):
                    break
                step = self._structure(text, pos, out)
            if step == 0:
                break
            pos += step
        return pos, "".join(out)

    def _put(self, out: list[str], fragment: str, end: int) -> None:
        out.append(fragment)
        self.settled = end

    def _structure(self, text: str, pos: int, out: list[str]) -> int:
        """One token outside strings; how many characters it took, 0 when it may go on in the next piece."""
        char = text[pos]
        expect = self._expect
        if char in "\"'":
            if expect in (_COLON, _NEXT):
                return self._refuse(f"{char} where {_EXPECTED[expect]} was expected")
            self._is_key = expect in (_KEY, _FIRST_KEY)
            self._quote = char
            self._put(out, self._comma + '"', pos + 1)
            self._comma = ""
            self._expect = _STRING
        elif char in "{[":
            if expect not in (_VALUE, _FIRST_VALUE):
                return self._refuse(f"{char} where {_EXPECTED[expect]} was expected")
            if len(self._closers) == DEEPEST:
                return self._refuse(f"nested deeper than {DEEPEST}")
            self._put(out, self._comma + char, pos + 1)
            self._comma = ""
            self._closers.append("}" if char == "{" else "]")
            self._expect = _FIRST_KEY if char == "{" else _FIRST_VALUE
        elif char in "}]":
            # A trailing comma leaves _KEY in an object and _VALUE behind a pending comma in an array.
            closable = expect in (_NEXT, _FIRST_KEY, _KEY, _FIRST_VALUE) or (expect == _VALUE and self._comma != "")
            if not self._closers or self._closers[-1] != char or not closable:
                return self._refuse(f"{char} where {_EXPECTED[expect]} was expected")
            self._closers.pop()
            self._comma = ""
            self._put(out, char, pos + 1)
            self._value_ended()
        elif char == ",":
            if expect != _NEXT:
                return self._refuse(f", where {_EXPECTED[expect]} was expected")
            self._comma = ","
            self._expect = _KEY if self._closers[-1] == "}" else _VALUE
        elif char == ":":
            if expect != _COLON:
                return self._refuse(f": where {_EXPECTED[expect]} was expected")
            self._put(out, ":", pos + 1)
            self._expect = _VALUE
        else:
            return self._bare(text, pos, out)
        return 1

    def _bare(self, text: str, pos: int, out: list[str]) -> int:
        end = _BARE(text, pos).end()  # type: ignore[union-attr]
        if end - pos > LONGEST_SCALAR:
            return self._refuse("a number or word without end")
        if end == len(text):
            return 0
        word = text[pos:end]
        if self._expect in (_KEY, _FIRST_KEY):
            if _BARE_KEY(word) is None:
                return self._refuse(f"{word!r} where a key was expected")
            self._put(out, f'{self._comma}"{word}"', end)
            self._comma = ""
            self._expect = _COLON
            return end - pos
        written = word if _NUMBER(word) else _WORDS.get(word)
        if written is None or self._expect not in (_VALUE, _FIRST_VALUE):
            return self._refuse(f"{word[:40]!r} where {_EXPECTED[self._expect]} was expected")
        self._put(out, self._comma + written, end)
        self._comma = ""
        self._value_ended()
        return end - pos

    def _string(self, text: str, pos: int, out: list[str]) -> int:
        """What follows inside a string; how many characters it took."""
        start = pos
        end = (_DOUBLE if self._quote == '"' else _SINGLE)(text, pos).end()  # type: ignore[union-attr]
        if end > pos:
            self._put(out, text[pos:end], end)
            pos = end
        if pos == len(text):
            return pos - start
        char = text[pos]
        if char == self._quote:
            self._put(out, '"', pos + 1)
            if self._is_key:
                self._expect = _COLON
            else:
                self._value_ended()
            return pos + 1 - start
        if char != "\\":  # a raw control character, or a double quote in single ones
            self._put(out, '\\"' if char == '"' else json.dumps(char)[1:-1], pos + 1)
            return pos + 1 - start
        if pos + 1 == len(text):
            return pos - start
        escaped = text[pos + 1]
        if escaped == "u":
            if _HEX(text, pos + 2):
                self._put(out, text[pos : pos + 6], pos + 6)
                return pos + 6 - start
            if len(text) < pos + 6 and _MAYBE_HEX(text[pos + 2 :]):
                return pos - start
        if escaped in _ESCAPES:
            self._put(out, text[pos : pos + 2], pos + 2)
        elif escaped == "'":
            self._put(out, "'", pos + 2)
        elif escaped < " ":  # a backslash at the end of a line
            self._put(out, json.dumps(escaped)[1:-1], pos + 2)
        else:
            self._put(out, "\\\\" + escaped, pos + 2)
        return pos + 2 - start

    def _value_ended(self) -> None:
        if self._closers:
            self._expect = _NEXT
        else:
            self._expect = _DONE
            self.done = True

    def _refuse(self, reason: str) -> int:
        self.fault = reason
        return 0


_MAYBE_HEX = re.compile(r"[0-9a-fA-F]{0,3}\Z").match
_EXPECTED = {
    _VALUE: "a value",
    _FIRST_VALUE: "a value",
    _FIRST_KEY: "a key",
    _KEY: "a key",
    _COLON: "a colon",
    _NEXT: "a comma or a closing bracket",
    _DONE: "nothing more",
}


def write(value: Any) -> str:
    """Compact JSON, non-ASCII as it is."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def parse(text: str) -> Any:
    """The value of strict JSON text. Raises `ValueError` for anything else, ``NaN`` and endless numbers included."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def parse_object(text: str) -> dict[str, Any] | None:
    """The object that strict JSON text spells, or ``None``."""
    try:
        value = parse(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
