"""Calls whose arguments are raw text between tags, one tag a parameter.

A closing tag inside a value closes it only where what follows is legal, which the dialect says with a look-ahead in its
``value_end`` lexicon; everything else between the tags is the value, whatever it spells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar

from isogloss.dialects._lexicon import Found, Lexicon
from isogloss.dialects._scanner import StreamScanner
from isogloss.messages import Tool
from isogloss.notations.json import write as write_json
from isogloss.notations.markup import MarkupReader
from isogloss.schema.view import SchemaView

NOT_CLOSED = "the call was not closed before the next one"
NO_NAME = "the call has no name"

_SPACE = re.compile(r"\s*").match


class TagCallScanner(StreamScanner):
    """Scans tagged parameters. A subclass opens a call with `_open`, names it with `_named`, and has one method
    ``_in_call_KIND`` for each kind of marker in ``between``."""

    between: Lexicon
    """What may stand between two parameters."""
    value_end: Lexicon
    """What ends a value."""
    faults: Lexicon
    """Where scanning goes on after what is no call."""
    framed: ClassVar[bool] = False
    """Whether one line break on either side of a value belongs to the markup."""

    def __init__(self, tools: Iterable[Tool] = (), starts_in: str = "text") -> None:
        super().__init__(tools, starts_in)
        self._view: SchemaView | None = None
        self._views: dict[str, SchemaView] = {}

    def _named(self, name: str, end: int, call_id: str = "") -> None:
        """The call's name is known: from here on it is a call."""
        tool = self.tools.get(name)
        if tool is not None and name not in self._views:
            self._views[name] = SchemaView(tool.parameters)
        self._view = self._views.get(name)
        self._separator = "{"
        self._start(name, call_id, end)
        self._state = self._between_parameters

    def _between_parameters(self) -> bool:
        text = self._text
        pos = self._pos = _SPACE(text, self._pos).end()  # type: ignore[union-attr]
        if pos == len(text):
            return False
        match = self.between.match(text, pos, partial=True)
        if match is not None and match.partial:
            if not self._final:
                return False
            match = None
        if match is None:
            self._fault(f"{text[pos : pos + 1]!r} where a parameter or the end of the call was expected")
            return True
        self._pos = match.end()
        getattr(self, "_in_call_" + match.lastgroup)(Found(match.lastgroup, pos, match.end(), match))
        return True

    def _parameter(self, key: str, end: int, *, is_string: bool | None = None) -> None:
        """The opening tag of a parameter. ``is_string`` where the tag itself says how the value is meant."""
        view = None if self._view is None else self._view.member(key)
        self._value = MarkupReader(view, is_string=is_string)
        self._delta(f"{self._separator}{write_json(key)}:{self._value.begin()}", end)
        self._separator = ","
        self._state = self._frame if self.framed else self._in_value

    def _frame(self) -> bool:
        """The line break behind an opening tag."""
        if self._pos == len(self._text):
            return False
        if self._text[self._pos] == "\n":
            self._pos += 1
        self._state = self._in_value
        return True

    def _in_value(self) -> bool:
        text = self._text
        pos = self._pos
        found: Found | int = len(text)
        if self.value_end.candidate(text, pos) is not None:
            found = self.value_end.find(text, pos, self._final)
        end = found if type(found) is int else found.start  # type: ignore[union-attr]
        if self.framed and end > pos and text[end - 1] == "\n":
            end -= 1  # it may be the line break in front of the closing tag
        if end > pos:
            json_text = self._value.read(text[pos:end])
            if json_text:
                self._delta(json_text, end)
            self._pos = end
        if type(found) is int:
            return False
        self._pos = found.end  # type: ignore[union-attr]
        self._delta(self._value.end(), self._pos)
        self._state = self._between_parameters
        return True

    def _call_closed(self, end: int) -> None:
        """The closing tag of the call."""
        self._delta("{}" if self._separator == "{" else "}", end)
        if self._end(end):
            self._enter(self.text_prose)
        else:
            self._fault("the arguments are no JSON object")

    def _fault(self, reason: str) -> None:
        self._discard(reason, self.faults)
