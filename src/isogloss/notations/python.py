"""Python's literals, as models write them in calls.

`ArgumentsReader` reads what stands between the parentheses of a call, each character once, and gives one JSON object:
keyword arguments, ``**{...}``, positional ones by the order of the parameters. Every literal that JSON has a value for
is read: strings in all quotes with all prefixes, side by side too; numbers in all bases; lists, dicts, tuples (which
are arrays); ``True``, ``None`` and JSON's own words. An expression is a fault, and so is an f-string that would have to
be computed.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import isfinite
from typing import Any, ClassVar, Final

from isogloss._compiled import mypyc_attr
from isogloss.notations._containers import (
    COLON,
    DEEPEST,
    EXPECTED,
    FIRST_KEY,
    FIRST_VALUE,
    KEY,
    NEXT,
    OTHER,
    STRING,
    VALUE,
    ContainerReader,
)
from isogloss.notations.json import CODE, LONE_HALF, LONGEST_SCALAR, may_be_half_pair
from isogloss.notations.json import write as write_json
from isogloss.notations.markup import json_string
from isogloss.notations.runs import Run, run

_ARGUMENT, _FIRST_ARGUMENT, _EQUALS, _STARRED, _JOINED = range(OTHER, OTHER + 5)

_WORDS = {"True": "true", "true": "true", "False": "false", "false": "false", "None": "null", "null": "null"}
_WORD = run(r"[^\s\ufeff()\[\]{},:=#\"'\\*]*")
_PREFIX = re.compile(r"[rR]?[bBfF]|[bBfF]?[rR]|[uU]").fullmatch
_INTEGER = re.compile(r"[+-]?(?:0(?:_?0)*|[1-9](?:_?[0-9])*)").fullmatch
_RADIX = re.compile(r"[+-]?0(?:[xX](?:_?[0-9a-fA-F])+|[oO](?:_?[0-7])+|[bB](?:_?[01])+)").fullmatch
_DIGITS: Final = "[0-9](?:_?[0-9])*"
_FLOAT = re.compile(
    rf"(?P<sign>[+-]?)(?P<whole>{_DIGITS})?(?P<point>\.(?P<part>{_DIGITS})?)?(?P<power>[eE][+-]?{_DIGITS})?"
).fullmatch
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_HEX = {letter: run(rf"[0-9a-fA-F]{{0,{digits}}}") for letter, digits in _HEX_DIGITS.items()}
_OCTAL = run(r"[0-7]{0,3}")
_UNESCAPED = run(r"[^'\\\x00-\x1f]*")
_ESCAPES = {"'": "'", "a": "\\u0007", "v": "\\u000b", "\n": ""}

_MOST_CODE_POINT = 0x10FFFF


@mypyc_attr(allow_interpreted_subclasses=True)
class ArgumentsReader(ContainerReader):
    """Reads from behind the opening parenthesis of a call up to the closing one.

    ``names`` are the tool's parameters in order, for arguments without a keyword.
    """

    __slots__ = ("_held", "_in_comment", "_mark", "_names", "_positions", "_prefix", "_run", "_undecided", "_word")

    expected: ClassVar[dict[int, str]] = {
        **EXPECTED,
        _ARGUMENT: "an argument",
        _FIRST_ARGUMENT: "an argument",
        _EQUALS: "an equals sign",
        _STARRED: "a dict",
        _JOINED: "a comma or a closing bracket",
    }

    def __init__(self, names: Sequence[str] = ()) -> None:
        super().__init__()
        self._names = names
        self._positions = 0
        self._closers = ["call"]
        self._comma = "{"
        self._expect = _FIRST_ARGUMENT
        self._in_comment = False
        self._word = self._mark = self._prefix = ""
        self._run = _plain("'", "")
        self._held: list[str] = []
        self._undecided: list[int] = []

    def read(self, text: str, pos: int) -> tuple[int, str]:
        """Read on from ``pos``: how far it got, and the JSON text that this settles."""
        if self._expect == STRING and not self._undecided:  # the fast path: a piece inside a string
            end = self._run(text, pos).end()
            if end == len(text):
                self.settled = end
                return end, text[pos:]
            if self._mark[0] == "'" and "f" not in self._prefix and _UNESCAPED(text, pos).end() == len(text):
                self.settled = len(text)
                return len(text), text[pos:].replace('"', '\\"')
        if self._in_comment:
            end = text.find("\n", pos)
            if end < 0:
                return len(text), ""
            self._in_comment = False
            pos = end + 1
        return super().read(text, pos)

    def _put(self, out: list[str], fragment: str, end: int) -> None:
        """Inside a parenthesis that may yet be a tuple or just a value, output waits."""
        if self._undecided:
            self._held.append(fragment)
        else:
            super()._put(out, fragment, end)

    # Outside strings

    def _structure(self, text: str, pos: int, out: list[str]) -> int:
        char = text[pos]
        if char == "#":
            end = text.find("\n", pos)
            self._in_comment = end < 0
            return len(text) - pos if end < 0 else end + 1 - pos
        if char == "\\":
            return self._continued_line(text, pos)
        if self._expect == _JOINED:
            return self._behind_string(text, pos, out)
        if self._expect == _EQUALS:
            return self._behind_word(char, text, pos, out)
        if char == "*":
            return self._star(text, pos)
        if self._expect in (_ARGUMENT, _FIRST_ARGUMENT) and char in "\"'[{(" and not self._positional(out, pos):
            return 0
        step = _STEPS.get(char)
        return step(self, char, pos, out) if step is not None else super()._structure(text, pos, out)

    def _continued_line(self, text: str, pos: int) -> int:
        if text[pos + 1 : pos + 2] in ("", "\n"):
            return 2 if pos + 1 < len(text) else 0
        return self._misplaced("\\")

    def _behind_string(self, text: str, pos: int, out: list[str]) -> int:
        """A string right behind a string continues it."""
        end = _WORD(text, pos).end()
        if end == len(text) and end - pos <= 2:
            return 0
        if text[end : end + 1] in ("'", '"') and (end == pos or _PREFIX(text[pos:end])):
            return self._open_quotes(text, pos, end, out)
        self._end_string(out, pos)
        return self._structure(text, pos, out)

    def _behind_word(self, char: str, text: str, pos: int, out: list[str]) -> int:
        """A word where an argument begins: its keyword, or the whole of a positional one."""
        if char == "=" and self._word.isidentifier():
            self._put_item(out, f'"{self._word}":', pos + 1)
            self._expect = VALUE
            return 1
        if char not in ",)":
            return self._misplaced(char)
        if not self._positional(out, pos):
            return 0
        if not self._scalar(self._word, out, pos):
            return 0
        return self._structure(text, pos, out)

    def _positional(self, out: list[str], end: int) -> bool:
        if self._positions == len(self._names):
            self._refuse("an argument without a name")
            return False
        self._put_item(out, f"{write_json(self._names[self._positions])}:", end)
        self._positions += 1
        self._expect = VALUE
        return True

    def _scalar(self, word: str, out: list[str], end: int) -> bool:
        written = _WORDS.get(word) or _number(word)
        if written is None:
            self._refuse(f"{word[:40]!r} where a literal was expected")
            return False
        self._put_item(out, written, end)
        self._value_ended()
        return True

    def _bare(self, text: str, pos: int, out: list[str]) -> int:
        end = _WORD(text, pos).end()
        if end - pos > LONGEST_SCALAR:
            return self._refuse("a number or word without end")
        if end == len(text):
            return 0
        word = text[pos:end]
        expect = self._expect
        if text[end] in "\"'" and _PREFIX(word):
            if expect in (_ARGUMENT, _FIRST_ARGUMENT) and not self._positional(out, pos):
                return 0
            return self._open_quotes(text, pos, end, out)
        if expect in (VALUE, FIRST_VALUE) and word:
            return end - pos if self._scalar(word, out, end) else 0
        if expect in (KEY, FIRST_KEY) and word:
            key = _number(word) or word
            self._put_item(out, write_json(key), end)
            self._expect = COLON
        elif expect in (_ARGUMENT, _FIRST_ARGUMENT) and word:
            self._word = word
            self._expect = _EQUALS
        else:
            return self._misplaced(repr(word[:40]) if word else text[pos])
        return end - pos

    # Brackets

    def _close_dict(self, char: str, pos: int, out: list[str]) -> int:
        if self._closers[-1] != "**":
            return self._close(char, pos, out)
        if self._expect not in (NEXT, FIRST_KEY, KEY):
            return self._misplaced(char)
        self._closers.pop()
        self._expect = NEXT
        return 1

    def _open_dict(self, char: str, pos: int, out: list[str]) -> int:
        if self._expect != _STARRED:
            return self._open(char, pos, out)
        self._closers.append("**")
        self._expect = FIRST_KEY
        return 1

    def _open_parenthesis(self, char: str, pos: int, out: list[str]) -> int:
        if self._expect not in (VALUE, FIRST_VALUE):
            return self._misplaced(char)
        if len(self._closers) == DEEPEST:
            return self._refuse(f"nested deeper than {DEEPEST}")
        self._put_item(out, "", pos + 1)
        self._undecided.append(len(self._held))
        self._held.append("")
        self._closers.append("(")
        self._expect = FIRST_VALUE
        return 1

    def _close_parenthesis(self, char: str, pos: int, out: list[str]) -> int:
        closer = self._closers[-1]
        expect = self._expect
        if closer == "call" and expect in (NEXT, _ARGUMENT, _FIRST_ARGUMENT):
            self._closers.pop()
            self._put(out, "{}" if self._comma == "{" else "}", pos + 1)
        elif closer == "(" and expect in (NEXT, FIRST_VALUE):
            self._closers.pop()
            if expect == FIRST_VALUE:
                self._held += ("[", "]")
            self._decide("", pos + 1, out)
        elif closer == ")" and self._is_closable():
            self._closers.pop()
            self._comma = ""
            self._put(out, "]", pos + 1)
        else:
            return self._misplaced(char)
        self._value_ended()
        return 1

    def _decide(self, bracket: str, end: int, out: list[str]) -> None:
        """The innermost undecided parenthesis is a tuple, or not."""
        self._held[self._undecided.pop()] = bracket
        if not self._undecided:
            self._put(out, "".join(self._held), end)
            self._held.clear()

    def _comma_behind(self, char: str, pos: int, out: list[str]) -> int:
        if self._expect != NEXT:
            return self._misplaced(char)
        closer = self._closers[-1]
        if closer == "(":
            self._closers[-1] = ")"
            self._decide("[", pos + 1, out)
        if closer not in ("call", "**") or self._comma != "{":
            self._comma = ","
        self._expect = _ARGUMENT if closer == "call" else KEY if closer in ("}", "**") else VALUE
        return 1

    def _star(self, text: str, pos: int) -> int:
        if self._expect not in (_ARGUMENT, _FIRST_ARGUMENT):
            return self._misplaced("*")
        if pos + 1 == len(text):
            return 0
        if text[pos + 1] != "*":
            return self._misplaced("*")
        self._expect = _STARRED
        return 2

    # Strings

    def _quote(self, text: str, pos: int, out: list[str]) -> int:
        return self._open_quotes(text, pos, pos, out)

    def _open_quotes(self, text: str, start: int, quote: int, out: list[str]) -> int:
        """A string begins: its prefix at ``start``, its quotes at ``quote``."""
        if self._expect not in (VALUE, FIRST_VALUE, KEY, FIRST_KEY, _JOINED):
            return self._misplaced(text[quote])
        char = text[quote]
        following = text[quote + 1 : quote + 3]
        if following in ("", char) and quote + 1 + len(following) == len(text):
            return 0  # one quote, or an empty string, or three quotes
        self._mark = char * 3 if following == char * 2 else char
        self._prefix = text[start:quote].lower()
        self._run = _plain(char, self._prefix)
        if self._expect == _JOINED:
            self._expect = STRING
        else:
            self._begin_string(out, quote + len(self._mark))
        return quote + len(self._mark) - start

    def _string(self, text: str, pos: int, out: list[str]) -> int:
        start = pos
        end = self._run(text, pos).end()
        if end > pos:
            self._put(out, text[pos:end], end)
            pos = end
        if pos == len(text):
            return pos - start
        return pos - start + self._special(text, pos, out)

    def _special(self, text: str, pos: int, out: list[str]) -> int:
        """A character inside a string that JSON writes otherwise; how many characters were read."""
        char = text[pos]
        if char == self._mark[0]:
            return self._closing(text, pos, out)
        if char == "\\":
            return self._raw(text, pos, out) if "r" in self._prefix else self._escape(text, pos, out)
        if char in "{}" and "f" in self._prefix:
            if pos + 1 == len(text):
                return 0
            if text[pos + 1] != char:
                return self._refuse("an f-string that would have to be computed")
            self._put(out, char, pos + 2)
            return 2
        self._put(out, json_string(char), pos + 1)
        return 1

    def _closing(self, text: str, pos: int, out: list[str]) -> int:
        mark = self._mark
        if text.startswith(mark, pos):
            self._expect = _JOINED
            return len(mark)
        if len(text) - pos < len(mark) and mark.startswith(text[pos:]):
            return 0
        self._put(out, json_string(mark[0]), pos + 1)
        return 1

    def _raw(self, text: str, pos: int, out: list[str]) -> int:
        """A backslash that means itself, and keeps a quote behind it from ending the string."""
        if pos + 1 == len(text):
            return 0
        self._put(out, json_string(text[pos : pos + 2]), pos + 2)
        return 2

    def _escape(self, text: str, pos: int, out: list[str]) -> int:
        if pos + 1 == len(text):
            return 0
        letter = text[pos + 1]
        if letter in "01234567":
            digits = _OCTAL(text, pos + 1).group()
            return self._code(text, pos, 1, digits, 3, int(digits, 8), out)
        if letter in _HEX_DIGITS and not ("b" in self._prefix and letter in "uU"):
            digits = _HEX[letter](text, pos + 2).group()
            wanted = _HEX_DIGITS[letter]
            if len(digits) == wanted or pos + 2 + len(digits) == len(text):
                return self._code(text, pos, 2, digits, wanted, int(digits or "0", 16), out)
        elif letter == "N" and text[pos + 2 : pos + 3] in ("", "{"):
            return self._refuse("a character by its name") if pos + 2 < len(text) else 0
        elif letter == "\r":
            return 0 if pos + 2 == len(text) else 3 if text[pos + 2] == "\n" else 2
        # JSON's escape, in JSON's quotes: what the grammar of Python does not hold to a schema is written as JSON.
        written = "/" if letter == "/" and self._mark == '"' else _ESCAPES.get(letter)
        self._put(out, json_string(text[pos : pos + 2]) if written is None else written, pos + 2)
        return 2

    def _code(self, text: str, pos: int, ahead: int, digits: str, most: int, code: int, out: list[str]) -> int:
        """A character by its number; fewer digits than ``most`` at the end of the text may go on."""
        end = pos + ahead + len(digits)
        if len(digits) < most and end == len(text):
            return 0
        if code > _MOST_CODE_POINT:
            return self._refuse(f"{text[pos:end]} is no character")
        if may_be_half_pair(text, pos):
            return 0
        self._put(out, LONE_HALF if 0xD800 <= code < 0xE000 else json_string(chr(code)), end)
        return end - pos


_STEPS: dict[str, Callable[[ArgumentsReader, str, int, list[str]], int]] = {
    "{": ArgumentsReader._open_dict,
    "}": ArgumentsReader._close_dict,
    "(": ArgumentsReader._open_parenthesis,
    ")": ArgumentsReader._close_parenthesis,
    ",": ArgumentsReader._comma_behind,
}


@lru_cache(maxsize=64)
def _plain(quote: str, prefix: str) -> Run:
    """Matches what stands in a string as it does in JSON, escapes that both know included."""
    special = f'{quote}"\\\\\\x00-\\x1f{"{}" if "f" in prefix else ""}'
    escapes = "" if "r" in prefix else r"\\[\"\\bfnrt]" if "b" in prefix else rf"\\(?:[\"\\bfnrt]|{CODE})"
    pattern = f"[^{special}]*(?:{escapes}[^{special}]*)*" if escapes else f"[^{special}]*"
    return run(pattern)


def _number(word: str) -> str | None:
    """JSON text of a number as Python writes it."""
    if _INTEGER(word):
        digits = word.replace("_", "").lstrip("+")
        return digits if digits.lstrip("-0") else "0"
    if _RADIX(word):
        return str(int(word, 0))
    parts = _FLOAT(word)
    if parts is None or not (parts["whole"] or parts["part"]) or not (parts["point"] or parts["power"]):
        return None
    sign = "-" if parts["sign"] == "-" else ""
    whole = (parts["whole"] or "").replace("_", "").lstrip("0") or "0"
    part = f".{parts['part'] or '0'}" if parts["point"] else ""
    written = f"{sign}{whole}{part}{parts['power'] or ''}".replace("_", "")
    return written if isfinite(float(written)) else None


# Writing

PYTHON_WORDS = {True: "True", False: "False", None: "None"}
JSON_WORDS = {True: "true", False: "false", None: "null"}


def write(value: Any, quote: str = '"', words: Mapping[bool | None, str] = PYTHON_WORDS) -> str:
    """The literal of a JSON value: strings in ``quote``, the three words as ``words`` has them."""
    if isinstance(value, str):
        return _write_string(value, quote)
    if value is None or isinstance(value, bool):
        return words[value]
    if isinstance(value, dict):
        members = [f"{_write_string(key, quote)}: {write(member, quote, words)}" for key, member in value.items()]
        return f"{{{', '.join(members)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join([write(item, quote, words) for item in value])}]"
    return write_json(value)


def write_arguments(
    arguments: dict[str, Any], quote: str = '"', words: Mapping[bool | None, str] = PYTHON_WORDS
) -> str:
    """The inside of a call's parentheses. Keys that are no keywords of a call stand in a ``**{...}``."""
    written = [
        f"{key}={write(value, quote, words)}" if is_keyword(key) else f"**{write({key: value}, quote, words)}"
        for key, value in arguments.items()
    ]
    return ", ".join(written)


def is_keyword(key: str) -> bool:
    """Whether a call can name an argument so."""
    return key.isascii() and key.isidentifier() and not keyword.iskeyword(key)


_SWAP = str.maketrans("\"'", "'\"")


def _write_string(text: str, quote: str) -> str:
    """JSON's escapes mean the same in Python; single quotes trade places with double ones."""
    if quote == '"':
        return write_json(text)
    return write_json(text.translate(_SWAP)).translate(_SWAP)
