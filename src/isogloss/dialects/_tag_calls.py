"""Calls whose arguments are raw text between tags, one tag a parameter.

A closing tag inside a value closes it only where what follows is legal, which the dialect says with a look-ahead in its
``value_end`` lexicon; everything else between the tags is the value, whatever it spells. Two things that end a value
without closing it are told from text by the tools: the opening tag of another of the tool's parameters, and the opening
tag of the next call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, Final

from isogloss._compiled import mypyc_attr
from isogloss.dialects._lexicon import Found, Lexicon
from isogloss.dialects._tagged_json import TaggedJsonScanner
from isogloss.messages import Tool
from isogloss.notations.json import write as write_json
from isogloss.notations.markup import MarkupReader
from isogloss.notations.runs import run
from isogloss.schema.view import SchemaView, shared_view

NOT_CLOSED: Final = "the call was not closed before the next one"
NO_NAME: Final = "the call has no name"

_SPACE = run(r"\s*")


@mypyc_attr(allow_interpreted_subclasses=True)
class TagCallScanner(TaggedJsonScanner):
    """Scans tagged parameters. A subclass opens a call with `_open`, names it with `_named`, and has one method
    ``_in_call_KIND`` for each kind of marker in ``between``. Where a family writes JSON between the same tags as well,
    its `_body` tells which of the two it is; the others never get there."""

    between: Lexicon
    """What may stand between two parameters."""
    value_end: Lexicon
    """What ends a value. A kind ``next_parameter`` (group ``key``) ends it for the opening tag of a parameter that the
    tool has and the call does not, a kind ``next_call`` (group ``name``) for the opening tag of a call to one of the
    tools. A kind ``other_close`` is a closing tag of another name in front of a parameter (group ``next``) or of the
    end of the call."""
    final_value_end: Lexicon | None = None
    """The same where the output has come to its end of itself; `value_end` if it makes no difference."""
    framed: ClassVar[bool] = False
    """Whether one line break on either side of a value belongs to the markup."""

    def __init__(self, tools: Iterable[Tool] = (), starts_in: str = "text") -> None:
        super().__init__(tools, starts_in)
        self._view: SchemaView | None = None
        self._views: dict[str, SchemaView] = {}
        self._line_break = "\n"
        self._line_breaks = "\r\n" if self.framed else ""
        """Ends of a piece of a value that may be markup: they wait for what follows."""

    def _named(self, name: str, end: int, call_id: str = "") -> None:
        """The call's name is known: from here on it is a call."""
        self._view = self.view_of(name) if name in self.tools else None
        self._keys: set[str] = set()
        self._separator = "{"
        self._start(name, call_id, end)
        self._state = self._between_parameters

    def view_of(self, name: str) -> SchemaView:
        """The parameters of one of the tools."""
        if name not in self._views:
            self._views[name] = shared_view(self.tools[name].parameters)
        return self._views[name]

    def _between_parameters(self) -> bool:
        found = self._next_in(self.between)
        if found is None:
            return False
        if found.kind:
            self._pos = found.end
            getattr(self, "_in_call_" + found.kind)(found)
        else:
            char = self._text[found.start]
            self._fault(f"{char!r} where a parameter or the end of the call was expected")
        return True

    def _next_in(self, lexicon: Lexicon) -> Found | None:
        """What comes behind white space, of no kind if it is none of the lexicon's; ``None`` while that is open."""
        text = self._text
        pos = self._pos = _SPACE(text, self._pos).end()
        if pos == len(text):
            return None
        match = lexicon.match(text, pos)
        if match is None:
            return Found("", pos, pos, None)
        return None if match.partial else Found(str(match.lastgroup), pos, match.end(), match)

    def _parameter(self, key: str, end: int, *, is_string: bool | None = None) -> None:
        """The opening tag of a parameter. ``is_string`` where the tag itself says how the value is meant."""
        self._keys.add(key)
        view = None if self._view is None else self._view.member(key)
        self._value = MarkupReader(view, is_string=is_string)
        self._delta(f"{self._separator}{write_json(key)}:{self._value.begin()}", end)
        self._separator = ","
        self._state = self._begin_value if self.framed else self._in_value

    def _begin_value(self) -> bool:
        """The line break behind an opening tag."""
        line_break = self._text[self._pos : self._pos + 2]
        if line_break in ("", "\r") and not self._final:
            return False
        self._line_break = "\r\n" if line_break == "\r\n" else "\n"
        if line_break.startswith(self._line_break):
            self._pos += len(self._line_break)
        self._state = self._in_value
        return True

    def _before_line_break(self, pos: int, end: int, *, is_end: bool) -> int:
        """Where the value ends, but for the line break in front of its closing tag or what may become one: it is
        written as the one behind the opening tag is."""
        if not self._line_breaks:
            return end
        if self._text.endswith(self._line_break, pos, end):
            return end - len(self._line_break)
        is_half = not is_end and self._text.endswith(self._line_break[:1], pos, end)
        return end - 1 if is_half else end

    def _in_value(self) -> bool:
        text, ends = self._text, self.value_end
        if text[-1:] in self._line_breaks or (ends.lead in text and ends.candidate(text, self._pos) is not None):
            return self._near_value_end()
        if not self._final:  # else what is held back may be a piece of the closing tag
            self._read_value(len(text))
        return False

    def _near_value_end(self) -> bool:
        text, pos = self._text, self._pos
        found = self._find_value_end(text, pos)
        if isinstance(found, int):
            if not self._final:
                self._read_value(self._before_line_break(pos, found, is_end=False))
            return False
        self._read_value(self._before_line_break(pos, found.start, is_end=True))
        self._value_ended(found)
        return True

    def _read_value(self, end: int) -> None:
        if end > self._pos:
            json_text = self._value.read(self._text[self._pos : end])
            if json_text:
                self._delta(json_text, end)
            self._pos = end

    def _value_ended(self, found: Found) -> None:
        if found.kind in _FAULTS:
            _FAULTS[found.kind](self, found)
            return
        self._pos = found.end
        self._delta(self._value.end(), found.end)
        self._state = self._between_parameters

    def end_of_value(self, text: str, at: int, key: str) -> Found | int:
        """What may end the value of ``key`` that begins at ``at``, whatever the scanner has read before: nothing in
        front of it ends the value or is read otherwise than it is spelled. An offset where that is not settled."""
        return self.value_end.find(text, at, False)

    def _find_value_end(self, text: str, at: int) -> Found | int:
        lexicon = self.value_end
        if self._ended_of_itself and self.final_value_end is not None:
            lexicon = self.final_value_end
        while True:
            found = lexicon.find(text, at, self._final)
            if isinstance(found, int):
                return found
            ends = self._ends_value(found)
            if ends is not False:
                return found if ends else found.start
            at = found.start + 1

    def _ends_value(self, found: Found) -> bool | None:
        """Whether it ends the value; ``None`` while that depends on what follows."""
        if found.kind == "next_parameter":
            return self._misses(self.key_of(found))
        if found.kind == "other_close" and found.match["next"] is not None:
            return self._misses(self.key_of(found, "next"))
        if found.kind == "next_call":
            return not self.tools or self.name_of(found) in self.tools
        return True

    def _misses(self, key: str) -> bool:
        """Whether the call may go on with a parameter of that name."""
        return key not in self._keys and (self._view is None or key in self._view.properties)

    def key_of(self, found: Found, group: str = "key") -> str:
        """The key that an opening tag of a parameter has."""
        return str(found.match[group]).strip()

    def name_of(self, found: Found) -> str:
        """The name that an opening tag of a call has."""
        return str(found.match["name"]).strip()

    def _closed_by_other(self, found: Found) -> None:
        """What closes the value is no tag of the format's, or is a part of the value that nothing closes."""
        self._pos = found.start
        self._fault(f"a value that {found.match[0].strip()} closes")

    def _not_closed(self, end: int) -> None:
        """The model went on to the next call, which begins at ``end``."""
        self._malformed(NOT_CLOSED, end)
        self._pos = end
        self._enter(self.text_prose)

    def _call_closed(self, end: int) -> None:
        """The closing tag of the call."""
        if self._separator:
            self._delta("{}" if self._separator == "{" else "}", end)
        if self._end(end):
            self._enter(self.text_prose)
        else:
            self._fault("the arguments are no JSON object")


_FAULTS: dict[str, Callable[[TagCallScanner, Found], None]] = {
    "next_call": lambda scanner, found: scanner._not_closed(found.start),
    "other_close": TagCallScanner._closed_by_other,
}
"""Ends of a value that are ends of the call."""
