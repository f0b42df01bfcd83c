"""Calls whose name stands in a header of its own, in front of arguments that are one JSON object."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, ClassVar, Final

import regex

from isogloss._compiled import mypyc_attr
from isogloss.dialects._json_calls import NOT_AN_OBJECT, JsonCallScanner
from isogloss.dialects._lexicon import Found, Lexicon
from isogloss.notations.json import JsonReader
from isogloss.notations.markup import spaced

NOT_CLOSED: Final = "the call was not closed"
NO_HEADER: Final = "no name and no arguments behind the opening token"

_STAND_IN = re.compile(r"[\ud800-\ud880]").search
_SPACE = r"\s{0,64}+"


@mypyc_attr(allow_interpreted_subclasses=True)
class NamedJsonScanner(JsonCallScanner):
    """Scans calls between control tokens. A subclass names a call with `_named` once it knows what its header says.

    A call is whole with its last brace: a missing closing token does no harm. A control token within the arguments
    says that the model never closed them.
    """

    framed_by_tokens: ClassVar[bool] = True
    faults: Lexicon
    """Where scanning goes on behind what is no call."""
    header: Any
    """Matches what stands between the opening token and the arguments."""
    ends: Lexicon
    """What stands right behind a header without arguments."""
    tail: Any
    """Matches the closing token with the white space in front of it."""

    def _open_call(self, found: Found) -> None:
        """The opening token."""
        self._open(found.start)
        self._state = self._in_header

    def _in_header(self) -> bool:
        match = self.header(self._text, self._pos, partial=True)
        if match is not None and match.partial:
            return False
        if match is None:
            self._fault(NO_HEADER)
        else:
            self._pos = match.end()
            self._header_read(match)
        return True

    def _header_read(self, match: regex.Match[str]) -> None:
        """Name the call, as its header does."""
        raise NotImplementedError

    def _named(self, name: str, call_id: str, end: int, *, is_fenced: bool = False) -> None:
        """The header is whole. ``is_fenced``: a code fence is open around the arguments."""
        self._name = name
        self._has_arguments = False
        self._is_fenced = is_fenced
        self._start(name, call_id, end)
        self._reader = JsonReader()
        self._state = self._arguments_begin

    def _arguments_begin(self) -> bool:
        char = self._next_char()
        if char == "":
            return False
        end = self.ends.match(self._text, self._pos)
        if end is None:
            return super()._arguments_begin()
        if end.partial:
            return False
        self._member_done()
        return True

    def _in_arguments(self) -> bool:
        text = self._text
        if self._has_controls and not text.isascii() and (token := _STAND_IN(text, self._pos)) is not None:
            return self._cut_off(token.start())
        if not self._name:
            return super()._in_arguments()
        reader = self._reader
        self._pos, fragment = reader.read(self._text, self._pos)
        if fragment:
            self._delta(fragment, reader.settled)
        return self._value_done() if reader.done or reader.fault else False

    def _cut_off(self, end: int) -> bool:
        """A control token stands at ``end``: the arguments are whole before it, or never."""
        reader = self._reader
        self._pos, fragment = reader.read(self._text[:end], self._pos)
        if fragment and self._name:
            self._delta(fragment, reader.settled)
        elif fragment:
            self._waiting.append(fragment)
        if reader.done or reader.fault:
            return self._value_done()
        self._fault(NOT_CLOSED)
        return True

    def _member_done(self) -> None:
        """The arguments are whole."""
        if not self._has_arguments:
            self._delta("{}", self._pos)
        if self._end(self._pos):
            self._state = self._fence_end if self._is_fenced else self._tail
        else:
            self._fault(NOT_AN_OBJECT)

    def _fence_end(self) -> bool:
        return self._skip(_FENCE_END, self._tail)

    def _tail(self) -> bool:
        return self._skip(self.tail, self._call_closed)

    def _skip(self, pattern: Any, then: Any) -> bool:
        """Pass over what the pattern matches, if it does, and go on with ``then``."""
        match = pattern(self._text, self._pos, partial=True)
        if match is not None and match.partial and not self._final:
            return False
        if match is not None and not match.partial:
            self._pos = match.end()
        self._state = then
        return True

    def _call_closed(self) -> bool:
        """Behind the call and its closing token, if it had one."""
        self._enter(self.text_prose)
        return True

    def _fault(self, reason: str) -> None:
        self._discard(reason, self.faults)

    def _on_call_close(self, found: Found) -> None:
        """A closer without an opener: markup that says nothing."""


@lru_cache(maxsize=64)
def tail(*spelled: str) -> Any:
    """Matches any of the closing tokens, with the white space in front."""
    return regex.compile(rf"{_SPACE}(?:{'|'.join(map(regex.escape, spelled))})").match


_FENCE_END: Any = regex.compile(rf"{_SPACE}```").match


def write_arguments(arguments: dict[str, Any]) -> str:
    """JSON as templates write it; readers that look for tokens before they look at strings find none."""
    return spaced(arguments).replace("<|", "\\u003c|").replace("<｜", "\\u003c｜")
