"""The Gemma family's notation: bare keys, and strings between one delimiter that is a token of its own.

``{city:<|"|>Paris<|"|>,days:2,tags:[<|"|>a<|"|>],extra:{deep:true}}``

A string has no escapes: it may hold anything but what ends it, its delimiter in front of what may follow a string. Keys
that are not plain words are written as strings. Models write less than that now and then, which is read as far as it
has one meaning: quotes of JSON or Python, bare strings, ``=`` for the colon, a last brace forgotten, a closing
delimiter forgotten in front of the next key. Bare text is typed by the schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar, Final, NamedTuple

import regex

from isogloss._compiled import mypyc_attr
from isogloss.errors import UnrepresentableError
from isogloss.notations._containers import (
    COLON,
    FIRST_KEY,
    FIRST_VALUE,
    KEY,
    NEXT,
    STRING,
    VALUE,
    ContainerReader,
)
from isogloss.notations.json import JsonReader, parse
from isogloss.notations.json import write as write_json
from isogloss.notations.markup import json_string, same
from isogloss.schema.coercion import coerce
from isogloss.schema.view import SchemaView

NOT_CLOSED: Final = "the call was not closed before the next one"

_KEY = r"(?!\ufeff)[^\s,:={}\[\]<>\"'\ud800-\udfff]{1,128}"
"""Without delimiters. A byte order mark in front of a key is read as white space."""
_key = re.compile(_KEY).match
_is_key = re.compile(_KEY).fullmatch


class _Ends(NamedTuple):
    """What ends a string: where it may begin, and a match there that takes ``partial=True``."""

    candidate: Callable[..., re.Match[str] | None]
    match: Callable[..., regex.Match[str] | None]


class Delimiters:
    """How strings are delimited, and what ends a call: as they stand in the text that is read.

    ``is_certain``: the delimiter is a control token, which no string can hold.
    """

    def __init__(self, quote: str, call: str, call_close: str, *, is_certain: bool = False) -> None:
        self.quote = quote
        self.call_close = call_close
        delimiter, close = regex.escape(quote), regex.escape(call_close)
        key = rf"{_KEY}\s?[:=]"
        member = rf",\s{{0,8}}+(?:{key}|{delimiter}|[\"'}}]|{close})"
        forgotten = rf"(?P<forgotten>,\s{{0,8}}+{key}\s?{delimiter}(?=\s{{0,8}}+[^\s,}}\]]))"
        swallowed = rf"(?P<swallowed>{close}\s{{0,8}}+{regex.escape(call)})"
        seconds = "".join({re.escape(mark[1]) for mark in (quote, call_close)})
        first = rf"[{re.escape(quote[0])}{re.escape(call_close[0])}](?=[{seconds}]|\Z)"

        def ends(follows: str, first: str, *others: str) -> _Ends:
            ahead = "" if is_certain else rf"(?=\s{{0,8}}+(?:{follows}))"
            pattern = "|".join([rf"(?P<close>{delimiter}{ahead})", *others])
            return _Ends(re.compile(first).search, regex.compile(pattern).match)

        self.in_object = ends(rf"{member}|[}}\]]|{close}", f"{first}|,", forgotten, swallowed)
        self.in_array = ends(rf"[,\]}}]|{close}", first, swallowed)
        self.in_key = ends("[:=]", first, swallowed)
        self.bare_in_object = _Ends(
            re.compile(f"[,}}\\]{re.escape(call_close[0])}]").search,
            regex.compile(rf"(?P<end>,(?=\s{{0,8}}+(?:{key}|{delimiter}|[\"'}},]))|[}}\]]|{close})").match,
        )
        self.bare_in_array = _Ends(self.bare_in_object.candidate, regex.compile(rf"(?P<end>[,}}\]]|{close})").match)
        self.is_close = regex.compile(close).match


@lru_cache(maxsize=32)
def delimiters(quote: str, call: str, call_close: str, is_certain: bool = False) -> Delimiters:
    """The delimiters of a dialect, made once."""
    return Delimiters(quote, call, call_close, is_certain=is_certain)


@mypyc_attr(allow_interpreted_subclasses=True)
class GemmaReader(ContainerReader):
    """Reads the arguments of a call, an object. ``view`` is what they may be.

    When only the last brace is missing in front of the end of the call, the value is ``done`` there.
    """

    __slots__ = (
        "_counts",
        "_delimiters",
        "_ends",
        "_inner",
        "_is_bare",
        "_key_text",
        "_pieces",
        "_seek",
        "_streams",
        "_view",
        "_views",
    )

    colons: ClassVar[str] = ":="

    def __init__(self, delimiters: Delimiters, view: SchemaView | None) -> None:
        super().__init__()
        self._delimiters = delimiters
        self._view = view
        self._views: list[SchemaView | None] = []
        self._counts: list[int] = []
        self._key_text = ""
        self._inner: JsonReader | None = None
        self._is_bare = False
        self._streams = True
        self._pieces: list[str] = []
        self._ends = delimiters.in_object
        self._seek: Callable[..., re.Match[str] | None] | None = None
        """What finds the end of the string that streams now."""

    def read(self, text: str, pos: int) -> tuple[int, str]:
        """Read on from ``pos``: how far it got, and the JSON text that this settles."""
        seek = self._seek
        if seek is not None and seek(text, pos) is None:  # the fast path: a piece inside a string
            self.settled = len(text)
            return len(text), json_string(text[pos:])
        return super().read(text, pos)

    # Containers, with what the schema says of their members

    def _open(self, char: str, pos: int, out: list[str]) -> int:
        view = self._upcoming()
        step = super()._open(char, pos, out)
        if step:
            self._views.append(view)
            self._counts.append(0)
        return step

    def _upcoming(self) -> SchemaView | None:
        """What the value that begins here may be."""
        if not self._views:
            return self._view
        view = self._views[-1]
        if view is None:
            return None
        return view.member(self._key_text) if self._closers[-1] == "}" else view.item(self._counts[-1])

    def _close(self, char: str, pos: int, out: list[str]) -> int:
        step = super()._close(char, pos, out)
        if step:
            self._views.pop()
            self._counts.pop()
        return step

    def _next(self) -> int:
        step = super()._next()
        if step:
            self._counts[-1] += 1
        return step

    # Strings and bare text

    def _structure(self, text: str, pos: int, out: list[str]) -> int:
        if text[pos] == self._delimiters.quote[0]:
            if text.startswith(self._delimiters.quote, pos):
                return self._delimited(pos, out)
            if self._delimiters.quote.startswith(text[pos:]):
                return 0
        return super()._structure(text, pos, out)

    def _delimited(self, pos: int, out: list[str]) -> int:
        if self._expect not in (VALUE, FIRST_VALUE, KEY, FIRST_KEY):
            return self._misplaced(self._delimiters.quote)
        end = pos + len(self._delimiters.quote)
        self._begin_text(out, end)
        if self._streams:
            self._put(out, '"', end)
            self._seek = self._ends.candidate
        return end - pos

    def _quote(self, text: str, pos: int, out: list[str]) -> int:
        if self._expect not in (VALUE, FIRST_VALUE, KEY, FIRST_KEY):
            return self._misplaced(text[pos])
        self._begin_text(out, pos)
        self._inner = JsonReader()
        self._take(out, self._inner.read(text[pos], 0)[1], pos + 1)
        return 1

    def _bare(self, text: str, pos: int, out: list[str]) -> int:
        close = self._delimiters.is_close(text, pos, partial=True)
        if self._expect in (VALUE, FIRST_VALUE) and (close is None or close.partial):
            if close is not None:
                return 0
            self._begin_text(out, pos)
            self._is_bare = True
            self._streams = False
            self._ends = (
                self._delimiters.bare_in_object if self._closers[-1:] == ["}"] else self._delimiters.bare_in_array
            )
            return self._string(text, pos, out)
        if self._expect in (KEY, FIRST_KEY):
            key = _key(text, pos)
            if key is not None:
                if key.end() == len(text) and len(key.group()) < 128:
                    return 0
                self._key_text = key.group()
                self._put_item(out, write_json(self._key_text), key.end())
                self._expect = COLON
                return len(self._key_text)
        return self._without_brace(text, pos, out)

    def _without_brace(self, text: str, pos: int, out: list[str]) -> int:
        """The end of the call, its last brace forgotten."""
        close = self._delimiters.is_close(text, pos, partial=True)
        if close is None or self._closers != ["}"] or self._expect not in (NEXT, FIRST_KEY, KEY):
            return self._misplaced(text[pos])
        if not close.partial:
            self._put(out, "}", pos)
            self._closers.clear()
            self._value_ended()
        return 0

    def _begin_text(self, out: list[str], end: int) -> None:
        """A key or a value begins that is text, however it is delimited."""
        self._is_key = self._expect in (KEY, FIRST_KEY)
        self._pieces.clear()
        self._is_bare = False
        if self._is_key:
            self._streams = False
            self._ends = self._delimiters.in_key
        else:
            self._streams = _streams(self._upcoming())
            self._ends = self._delimiters.in_object if self._closers[-1:] == ["}"] else self._delimiters.in_array
        self._put_item(out, "", end)
        self._expect = STRING

    def _take(self, out: list[str], json_text: str, end: int) -> None:
        """A piece of the text that is JSON text already."""
        if self._streams:
            self._put(out, json_text, end)
        else:
            self._pieces.append(json_text)

    def _string(self, text: str, pos: int, out: list[str]) -> int:
        if self._inner is not None:
            return self._quoted(text, pos, out)
        at = pos
        while (place := self._ends.candidate(text, at)) is not None:
            at = place.start()
            match = self._ends.match(text, at, partial=True)
            if match is None:
                at += 1
                continue
            self._take_raw(out, text[pos:at], at)
            return at - pos if match.partial else self._text_ended(match, at, out) - pos
        self._take_raw(out, text[pos:], len(text))
        return len(text) - pos

    def _take_raw(self, out: list[str], raw: str, end: int) -> None:
        if raw:
            self._take(out, json_string(raw), end)

    def _text_ended(self, match: regex.Match[str], at: int, out: list[str]) -> int:
        """One of ``_ends`` was found at ``at``; where reading goes on."""
        kind = match.lastgroup
        if kind == "swallowed":
            self._refuse(NOT_CLOSED)
            return at
        end = match.end() if kind == "close" else at
        if not self._settle(out, end):
            return at
        if kind == "forgotten" or (kind == "end" and match.group() == ","):
            self._next()
            return at + 1
        if kind != "end":
            return end
        if match.group() in ("}", "]"):
            return at + self._close(match.group(), at, out)
        self._without_brace(match.string, at, out)
        return at

    def _quoted(self, text: str, pos: int, out: list[str]) -> int:
        """Inside the quotes of JSON or Python."""
        inner = self._inner
        assert inner is not None
        end, fragment = inner.read(text, pos)
        if fragment:
            self._take(out, fragment, inner.settled)
        if inner.done:
            self._settle(out, end)
        return end - pos

    def _settle(self, out: list[str], end: int) -> bool:
        """The key or value that is text is whole. False at a fault."""
        quoted = self._inner is not None
        self._inner = self._seek = None
        if self._streams:
            if not quoted:
                self._put(out, '"', end)
            self._value_ended()
            return True
        json_text = "".join(self._pieces)
        raw = str(parse(json_text if quoted else f'"{json_text}"'))
        if self._is_key:
            self._key_text = raw
            self._put(out, write_json(raw), end)
            self._expect = COLON
            return True
        if self._is_bare:
            raw = raw.strip()
            if not raw:
                self._refuse("nothing where a value was expected")
                return False
        self._put(out, write_json(coerce(self._upcoming(), raw)), end)
        self._value_ended()
        return True


def write(value: Any, view: SchemaView | None, delimiters: Delimiters, *, is_read_back: bool = True) -> list[str]:
    """The texts that the delimiters of strings part, where the schema is ``view``: every second one is a string.

    ``is_read_back``: raises `UnrepresentableError` when no text reads back as the value.
    """
    writer = _Writer(delimiters, is_read_back)
    writer.write(value, view, delimiters.in_object)
    return [*writer.texts, writer.text]


class _Writer:
    def __init__(self, delimiters: Delimiters, is_read_back: bool) -> None:
        self.texts: list[str] = []
        self.text = ""
        """What is written behind the last delimiter."""
        self._delimiters = delimiters
        self._is_read_back = is_read_back

    def write(self, value: Any, view: SchemaView | None, ends: _Ends) -> None:
        if isinstance(value, str):
            if self._is_read_back and not _streams(view) and coerce(view, value) != value:
                raise UnrepresentableError(f"The string {value[:80]!r} would not read back as itself under its schema")
            self._string(value, ends, "}")
        elif isinstance(value, dict):
            self._object(value, view)
        elif isinstance(value, (list, tuple)):
            self.text += "["
            for position, item in enumerate(value):
                if position:
                    self.text += ","
                self.write(item, None if view is None else view.item(position), self._delimiters.in_array)
            self.text += "]"
        else:
            text = write_json(value)
            if self._is_read_back and not same(coerce(view, text), value):
                raise UnrepresentableError(f"The text {text[:80]} would not read back as itself under its schema")
            self.text += text

    def _object(self, value: dict[str, Any], view: SchemaView | None) -> None:
        separator = "{"
        for key, member in value.items():
            self.text += separator
            separator = ","
            if _is_key(key):
                self.text += key
            else:
                self._string(key, self._delimiters.in_key, ":")
            self.text += ":"
            self.write(member, None if view is None else view.member(key), self._delimiters.in_object)
        self.text += "}" if value else "{}"

    def _string(self, text: str, ends: _Ends, behind: str) -> None:
        """A string, unless the reader would end it earlier."""
        if self._is_read_back:
            written = f"{text}{self._delimiters.quote}{behind}"
            at = 0
            while (place := ends.candidate(written, at)) is not None and place.start() < len(text):
                at = place.start()
                if ends.match(written, at) is not None:
                    raise UnrepresentableError(f"No delimiters can hold the string {text[:80]!r}")
                at += 1
        self.texts += (self.text, text)
        self.text = ""


def _streams(view: SchemaView | None) -> bool:
    """Whether text between delimiters is a string under the schema."""
    return view is None or "string" in view.types or not view.types
