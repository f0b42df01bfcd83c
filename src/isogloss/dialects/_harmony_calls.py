"""The bodies of calls in harmony: a JSON object, or free text where the tool takes that."""

from __future__ import annotations

from typing import Final

from isogloss._compiled import mypyc_attr
from isogloss.dialects._harmony_builtins import PYTHON
from isogloss.dialects._harmony_header import CONSTRAIN, Header
from isogloss.dialects._json_calls import NO_NAME, NOT_AN_OBJECT
from isogloss.dialects._lexicon import Found, Lexicon
from isogloss.dialects._scanner import StreamScanner
from isogloss.events import CUT_SHORT
from isogloss.messages import Tool
from isogloss.notations.json import JsonReader, write
from isogloss.notations.markup import json_string

FUNCTIONS: Final = "functions."
"""The namespace of the caller's own tools."""

INPUT: Final = "input"
"""The argument that carries free text."""

AFTER_ARGUMENTS: Final = "text after the arguments"


@mypyc_attr(allow_interpreted_subclasses=True)
class HarmonyCallScanner(StreamScanner):
    """Scans the body of a call once its header is read; `_end_message` goes on with the marker that ends it."""

    frame: Lexicon
    ends: Lexicon
    has_control: bool
    """Whether markers arrive as control tokens; where they do not, one inside a JSON string is text."""

    def _end_message(self, kind: str, start: int, end: int) -> None:
        """A marker, at ``start`` to ``end`` of the buffer, ends the message, be it that the next one begins."""
        raise NotImplementedError

    def _misplaced(self, start: int, end: int) -> None:
        """A marker that has no place here is skipped."""
        raise NotImplementedError

    def _repair(self, reason: str, raw: str) -> None:
        """Note what was put right at the current place."""
        raise NotImplementedError

    def _begin_call(self, header: Header) -> None:
        recipient = header.recipient or ""
        name = self._tool_name(recipient)
        if not name:
            self._discard(NO_NAME, self.ends)
            return
        self._start(name, "", self._pos)
        tool = self.tools.get(name)
        content_type = (header.content_type or "").removeprefix(CONSTRAIN)
        takes_text = recipient == PYTHON.name if tool is None else tool.is_custom
        self._key = ""
        self._state = self._before_arguments
        if takes_text and content_type != "json":
            self._key = INPUT
            self._state = self._in_text
        elif tool is not None and content_type == "code":
            self._key = _only_string(tool)

    def _tool_name(self, recipient: str) -> str:
        name = recipient.removeprefix(FUNCTIONS)
        known = name.removesuffix("json")
        if name not in self.tools and known in self.tools:
            self._repair("the recipient and the type of the content were written as one word", recipient)
            return known
        return name

    # -- JSON

    def _before_arguments(self) -> bool:
        text = self._text
        self._pos = pos = len(text) - len(text[self._pos :].lstrip())
        if pos == len(text):
            return False
        if text[pos] == "{":
            self._reader = JsonReader()
            self._state = self._in_arguments
            return True
        found = self.ends.match(text, pos)
        if found is not None and found.partial and not self._final:
            return False
        if found is not None and not found.partial and found.lastgroup != "start":
            self._repair("a call with an empty body was read as one without arguments", "")
            self._delta("{}", pos)
            self._end(pos)
            self._state = self._after_arguments
        elif self._key:
            self._state = self._in_text
        else:
            self._discard(NOT_AN_OBJECT, self.ends)
        return True

    def _in_arguments(self) -> bool:
        text, reader = self._text, self._reader
        stop: Found | int = len(text)
        if self.has_control:
            stop = self.ends.find(text, self._pos, self._final)
            text = text[: stop if isinstance(stop, int) else stop.start]
        self._pos, fragment = reader.read(text, self._pos)
        if fragment:
            self._delta(fragment, reader.settled)
        if reader.done and self._end(self._pos):
            self._state = self._after_arguments
        elif reader.done or reader.fault:
            self._discard(reader.fault or NOT_AN_OBJECT, self.ends)
        elif type(stop) is int:
            return False
        else:
            self._discard(CUT_SHORT, self.ends)
        return True

    def _after_arguments(self) -> bool:
        """Between the last brace and the marker that ends the message."""
        text = self._text
        self._pos = pos = len(text) - len(text[self._pos :].lstrip())
        if pos == len(text):
            return False
        found = self.frame.match(text, pos)
        if found is not None and found.partial:
            if not self._final:
                return False
            found = None
        if found is None:
            self._open(pos)
            self._discard(AFTER_ARGUMENTS, self.ends)
        elif found.lastgroup in ("message", "constrain"):
            self._misplaced(pos, found.end())
            self._pos = found.end()
        else:
            self._end_message(found.lastgroup, pos, found.end())
        return True

    # -- free text

    def _in_text(self) -> bool:
        text, pos = self._text, self._pos
        found = self.ends.find(text, pos, self._final)
        end = found if isinstance(found, int) else found.start
        opening = "" if self._json else "{" + write(self._key) + ':"'
        if end > pos:
            self._delta(opening + json_string(text[pos:end]), end)
            self._pos = end
            opening = ""
        if type(found) is int:
            return False
        self._delta(opening + '"}', end)
        self._end(end)
        self._state = self._after_arguments
        return True


def _only_string(tool: Tool) -> str:
    """The one parameter of a tool whose whole input is one string, else nothing."""
    properties = tool.parameters.get("properties")
    if not isinstance(properties, dict) or len(properties) != 1:
        return ""
    ((name, schema),) = properties.items()
    return name if isinstance(schema, dict) and schema.get("type") == "string" else ""
