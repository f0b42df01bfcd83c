"""Whether running text, read in pieces, is in code: in a fence of three or more backticks, or in a span on its line.

A run of backticks is a fence only at the beginning of a line; anywhere else it opens or closes a span.
"""

from __future__ import annotations

import re

LONGEST_INDENT = 3
"""Blanks that may stand in front of a fence."""

_RUNS = re.compile(r"`+|\n").finditer
_LINE_START = re.compile(rf"(?:\A|\n) {{0,{LONGEST_INDENT}}}\Z").search


class CodeMarks:
    """Counts backticks. ``pending``: text without any may still change what is known."""

    __slots__ = ("_fences", "_run", "_run_begins_line", "_spans", "pending")

    def __init__(self) -> None:
        self._fences = 0
        self._spans = 0
        self._run = 0
        """The backticks at the end of what was read: more of them may follow."""
        self._run_begins_line = False
        self.pending = False

    @property
    def in_fence(self) -> bool:
        return (self._fences + self._is_fence) % 2 == 1

    @property
    def in_span(self) -> bool:
        return (self._spans + (self._run > 0 and not self._is_fence)) % 2 == 1

    @property
    def _is_fence(self) -> bool:
        return self._run > 2 and self._run_begins_line

    def after(self, text: str, before: str) -> CodeMarks:
        """What it would be after more text."""
        marks = CodeMarks()
        for name in self.__slots__:
            setattr(marks, name, getattr(self, name))
        marks.read(text, before)
        return marks

    def read(self, text: str, before: str) -> None:
        """Go on with more text. ``before`` ends what was read until now; only its last characters matter, and nothing
        is the beginning of a line."""
        if not text:
            return
        if text[0] != "`":
            self._settle()
        for match in _RUNS(text):
            if match[0] == "\n":
                self._spans = 0
                continue
            if not self._run:
                self._run_begins_line = _begins_line(text, match.start(), before)
            self._run += len(match[0])
            if match.end() < len(text):
                self._settle()
        self.pending = self._run > 0 or self._spans > 0

    def _settle(self) -> None:
        if self._is_fence:
            self._fences += 1
        elif self._run:
            self._spans += 1
        self._run = 0


def _begins_line(text: str, place: int, before: str) -> bool:
    first = place - LONGEST_INDENT - 1
    return _LINE_START((before if first < 0 else "") + text[max(0, first) : place]) is not None and (
        first < 0 or "\n" in text[first:place]
    )
