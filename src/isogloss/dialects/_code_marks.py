"""Whether running text, read in pieces, is in code: in a fence of three or more backticks, or in a span on its line."""

from __future__ import annotations

import re

_RUNS = re.compile(r"`+|\n").finditer


class CodeMarks:
    """Counts backticks. ``pending``: text without any may still change what is known."""

    __slots__ = ("_fences", "_run", "_spans", "pending")

    def __init__(self, fences: int = 0, spans: int = 0, run: int = 0) -> None:
        self._fences = fences
        self._spans = spans
        self._run = run
        """The backticks at the end of what was read: more of them may follow."""
        self.pending = False

    @property
    def in_fence(self) -> bool:
        return (self._fences + (self._run > 2)) % 2 == 1

    @property
    def in_span(self) -> bool:
        return (self._spans + (0 < self._run < 3)) % 2 == 1

    def after(self, text: str) -> CodeMarks:
        """What it would be after more text."""
        marks = CodeMarks(self._fences, self._spans, self._run)
        marks.read(text)
        return marks

    def read(self, text: str) -> None:
        """Go on with more text."""
        if not text:
            return
        if text[0] != "`":
            self._settle()
        for match in _RUNS(text):
            if match[0] == "\n":
                self._spans = 0
            else:
                self._run += len(match[0])
                if match.end() < len(text):
                    self._settle()
        self.pending = self._run > 0 or self._spans > 0

    def _settle(self) -> None:
        if self._run > 2:
            self._fences += 1
        elif self._run:
            self._spans += 1
        self._run = 0
