"""JSON, as models write it.

Written compactly. Read incrementally, each character once: what comes out is strict JSON without white space, whatever
liberties the model took (single quotes, bare keys, Python's ``True``/``False``/``None``, trailing commas, raw line
breaks in strings, escapes that JSON does not know). What no liberty explains is a fault.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from math import isfinite
from typing import Any, Final

from isogloss._compiled import mypyc_attr
from isogloss.errors import UnrepresentableError
from isogloss.notations._containers import COLON, FIRST_KEY, FIRST_VALUE, KEY, NEXT, STRING, VALUE, ContainerReader
from isogloss.notations.runs import run

LONGEST_SCALAR: Final = 1024
"""Longest number or bare word, in characters."""

_WORDS = {"true": "true", "True": "true", "false": "false", "False": "false", "null": "null", "None": "null"}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<inexact>(?:\.[0-9]+)?[eE][+-]?[0-9]+|\.[0-9]+)?\Z").match
_BARE_KEY = re.compile(r"[A-Za-z_$][\w$.-]*\Z").match
_BARE = run(r"[^\s{}\[\],:\"'\ufeff]*")
CODE = r"u(?:(?![dD][89a-fA-F])[0-9a-fA-F]{4}|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
"""An escape behind its backslash that is a character by its number, or both halves of one."""
LONE_HALF: Final = "\\ufffd"
"""What half a character becomes: alone it has no UTF-8 form, which all that comes later wants."""
# What may stand in a string as it is: escapes that JSON knows included, so that a piece is one match.
_ESCAPE = rf"\\(?:[\"\\/bfnrt]|{CODE})"
_DOUBLE = run(rf'[^"\\\x00-\x1f]*(?:{_ESCAPE}[^"\\\x00-\x1f]*)*')
_SINGLE = run(rf"[^'\"\\\x00-\x1f]*(?:{_ESCAPE}[^'\"\\\x00-\x1f]*)*")
_HEX = re.compile(r"[0-9a-fA-F]{4}").match
_MAYBE_HEX = re.compile(r"[0-9a-fA-F]{0,3}\Z").match
_HALF = re.compile(r"\\u[dD][89a-fA-F]").match
_HALF_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u(?:[dD](?:[c-fC-F][0-9a-fA-F]?)?)?)?)?\Z").match
_ESCAPES = frozenset('"\\/bfnrt')


@mypyc_attr(allow_interpreted_subclasses=True)
class JsonReader(ContainerReader):
    """Reads one value. ``done`` when it is whole, ``fault`` when it cannot be one."""

    __slots__ = ("_mark",)

    def __init__(self) -> None:
        super().__init__()
        self._mark = '"'

    def read(self, text: str, pos: int) -> tuple[int, str]:
        """Read on from ``pos``: how far it got, and the JSON text that this settles."""
        if self._expect == STRING:  # the fast path: a piece inside a string
            end = len(text)
            # What certainly stands there as it is takes less to find out than what the pattern knows.
            is_plain = '"' not in text and self._mark not in text and "\\" not in text and text.isprintable()
            if is_plain or (_DOUBLE if self._mark == '"' else _SINGLE)(text, pos).end() == end:
                self.settled = end
                return end, text[pos:]
        return super().read(text, pos)

    def _quote(self, text: str, pos: int, out: list[str]) -> int:
        if self._expect in (COLON, NEXT):
            return self._misplaced(text[pos])
        self._mark = text[pos]
        self._begin_string(out, pos + 1)
        return 1

    def _bare(self, text: str, pos: int, out: list[str]) -> int:
        end = _BARE(text, pos).end()
        if end - pos > LONGEST_SCALAR:
            return self._refuse("a number or word without end")
        if end == len(text):
            return 0
        word = text[pos:end]
        if self._expect in (KEY, FIRST_KEY):
            if _BARE_KEY(word) is None:
                return self._misplaced(repr(word[:40]))
            self._put_item(out, f'"{word}"', end)
            self._expect = COLON
            return end - pos
        written = word if _is_number(word) else _WORDS.get(word)
        if written is None or self._expect not in (VALUE, FIRST_VALUE):
            return self._misplaced(repr(word[:40]))
        self._put_item(out, written, end)
        self._value_ended()
        return end - pos

    def _string(self, text: str, pos: int, out: list[str]) -> int:
        """What follows inside a string; how many characters it took."""
        start = pos
        end = (_DOUBLE if self._mark == '"' else _SINGLE)(text, pos).end()
        if end > pos:
            self._put(out, text[pos:end], end)
            pos = end
        if pos == len(text):
            return pos - start
        char = text[pos]
        if char == self._mark:
            self._end_string(out, pos + 1)
            return pos + 1 - start
        if char != "\\":  # a raw control character, or a double quote in single ones
            self._put(out, '\\"' if char == '"' else json.dumps(char)[1:-1], pos + 1)
            return pos + 1 - start
        if pos + 1 == len(text):
            return pos - start
        escaped = text[pos + 1]
        if escaped == "u":
            if _HEX(text, pos + 2):
                if may_be_half_pair(text, pos):
                    return pos - start
                self._put(out, LONE_HALF if _HALF(text, pos) else text[pos : pos + 6], pos + 6)
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


def may_be_half_pair(text: str, pos: int) -> bool:
    """Whether the text ends with the escape at ``pos`` and may go on with the other half of its character."""
    return _HALF_PAIR(text, pos) is not None


def _is_number(word: str) -> bool:
    """Whether it is a number that is not too large for one."""
    match = _NUMBER(word)
    return match is not None and (match["inexact"] is None or isfinite(float(word)))


def write(value: Any, separators: tuple[str, str] = (",", ":")) -> str:
    """Compact JSON, non-ASCII as it is. Raises `UnrepresentableError` for what JSON has no way to write: NaN, a set."""
    try:
        return _encoder(separators)(value)
    except (TypeError, ValueError) as error:
        raise UnrepresentableError(f"JSON cannot carry this value: {error}") from None


@lru_cache(maxsize=8)
def _encoder(separators: tuple[str, str]) -> Callable[[Any], str]:
    return json.JSONEncoder(ensure_ascii=False, separators=separators, allow_nan=False).encode


def parse(text: str) -> Any:
    """The value of strict JSON text. Raises `ValueError` for anything else, ``NaN`` included."""
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
