"""Calls in XTML: arguments between tags that say their types, or all of them as one JSON object."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar

import regex

from isogloss.dialects._invoke_calls import InvokeCallScanner, syntax
from isogloss.dialects._lexicon import Found, spell
from isogloss.dialects._markers import Markers
from isogloss.dialects._scanner import Prose
from isogloss.dialects._xtml import END, tags_of
from isogloss.events import ReasoningDelta
from isogloss.messages import Tool
from isogloss.notations.json import JsonReader

_TYPE = re.compile(r'\btype="(\w+)"').search


class XtmlCallScanner(InvokeCallScanner):
    """Scans one turn."""

    framed_by_tokens: ClassVar[bool] = True
    also_in_text: ClassVar[tuple[str, ...]] = ("response", "response_close")

    def __init__(self, markers: Markers, tools: Iterable[Tool], starts_in: str, control: frozenset[str]) -> None:
        super().__init__(syntax(tags_of(control), markers, control), markers, tools, starts_in, control)
        thinking = Prose(ReasoningDelta, markers.lexicon(("think_close", "response", "turn_end"), control))
        if self._mode is self.reasoning_prose:
            self._mode = thinking
        self.reasoning_prose = thinking
        self._whole_close = regex.compile(tags_of(control).closing("json")).match
        self._message_end = spell(END, control)

    def _on_response(self, found: Found) -> None:
        self._enter(self.text_prose)

    def _on_response_close(self, found: Found) -> None:
        self._enter(self.text_prose)

    def _after_turn(self) -> bool:
        """The end of the message may be written as its closing tag and a token of its own."""
        rest = self._text[self._pos :].lstrip()
        self._pos = len(self._text) - len(rest)
        if len(rest) < len(self._message_end) and self._message_end.startswith(rest) and not self._final:
            return False
        if rest.startswith(self._message_end):
            self._pos += len(self._message_end)
            return True
        return super()._after_turn()

    def says_string(self, found: Found) -> bool | None:
        said = _TYPE(found.match[0])
        return None if said is None else said[1] == "string"

    # -- all arguments as one JSON object

    def _in_call_whole(self, found: Found) -> None:
        self._reader = JsonReader()
        self._state = self._in_whole

    def _in_whole(self) -> bool:
        reader = self._reader
        self._pos, fragment = reader.read(self._text, self._pos)
        if fragment:
            self._delta(fragment, reader.settled)
        if reader.fault:
            self._fault(reader.fault)
            return True
        if reader.done:
            self._separator = ""
            self._state = self._behind_whole
        return reader.done

    def _behind_whole(self) -> bool:
        match = self._whole_close(self._text, self._pos, partial=True)
        if match is not None and match.partial:
            return False
        if match is None:
            self._fault("the arguments were not closed")
        else:
            self._pos = match.end()
            self._state = self._between_parameters
        return True
