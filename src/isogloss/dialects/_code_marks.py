"""Whether running text, read in pieces, is in code: in a fence of three or more backticks, or in a span on its line.

A run of backticks is a fence only at the beginning of a line; anywhere else it opens or closes a span. Models write
fences in fences of one length: a fence that names a language opens one more, a bare one closes the innermost.
"""

from __future__ import annotations

import re
from typing import Final

from isogloss._compiled import mypyc_attr

LONGEST_INDENT: Final = 3
"""Blanks that may stand in front of a fence."""

LONGEST_LANGUAGE: Final = 32

WRAPPERS = frozenset(
    {"json", "python", "tool", "tool_call", "tool_calls", "tool_code", "tool_use", "function_call", "function_calls"}
)
"""Languages of fences that models put around what they mean as a call."""

_PARTS = re.compile(r"`+|\n|[^`\n]+").finditer
_LINE_START = re.compile(rf"(?:\A|\n) {{0,{LONGEST_INDENT}}}\Z").search


@mypyc_attr(allow_interpreted_subclasses=True)
class CodeMarks:
    """Follows the backticks of a text. ``pending``: text without any may still change what is known."""

    def __init__(self) -> None:
        self.fence = 0
        """The backticks of the outermost fence; 0 outside of one."""
        self._depth = 0
        self._line = 0
        """The backticks of a fence whose line is not at its end."""
        self._language = ""
        """What the line of the last fence says."""
        self._is_first = False
        """Whether nothing stood in front of the last fence."""
        self._is_fresh = False
        """Whether the fence holds nothing yet."""
        self._wraps_all = False
        self._span = 0
        """The backticks that opened a span of code; 0 outside of one."""
        self.is_quote = False
        """Whether the span holds a marker: it goes on over line breaks, up to its end or an empty line."""
        self._is_blank = False
        self._run = 0
        """The backticks at the end of what was read: more of them may follow."""
        self._begins = False
        """Whether they begin a line."""
        self.pending = False

    @property
    def is_open(self) -> bool:
        """Whether more text may be in code, though it had no backtick."""
        return self._depth > 0 or self._run > 0 or self._line > 0 or self.is_quote

    @property
    def in_fence(self) -> bool:
        """Whether more text would be in a fence."""
        run = self._line or (self._run if self._is_fence else 0)
        if not run or run < self.fence or self._language_so_far:
            return self._depth > 0 or run > 0
        return self._depth != 1

    @property
    def wraps(self) -> bool:
        """Whether a call that stands here is what the fence was opened for: it is the first thing in a fence that
        nothing stands in front of, or that is labelled as models label the calls that they mean."""
        is_open = self._depth > 0 and not self._line and not self._is_fence
        if is_open and not self._is_fresh:
            return False
        language = self._language if is_open else self._language_so_far
        return self._is_first or self._wraps_all or language.strip().lower() in WRAPPERS

    @property
    def in_span(self) -> bool:
        """Whether more text would be in a span of code."""
        if not self._run or self._is_fence:
            return self._span > 0
        return self._span != self._run

    @property
    def _is_fence(self) -> bool:
        return self._run > 2 and self._begins

    @property
    def _language_so_far(self) -> str:
        return self._language if self._line else ""

    def after(self, text: str, before: str) -> CodeMarks:
        """What it would be after more text."""
        marks = CodeMarks()
        marks.fence, marks._depth, marks._line, marks._language = self.fence, self._depth, self._line, self._language
        marks._is_first, marks._is_fresh, marks._wraps_all = self._is_first, self._is_fresh, self._wraps_all
        marks._span, marks.is_quote, marks._is_blank = self._span, self.is_quote, self._is_blank
        marks._run, marks._begins, marks.pending = self._run, self._begins, self.pending
        marks.read(text, before)
        return marks

    def behind_call(self) -> CodeMarks:
        """What it is behind a call: a fence around the call is still open, and later ones are as it was."""
        marks = CodeMarks()
        if self.in_fence:
            marks._depth = 1
            marks.fence = self.fence or self._line or self._run
            marks._is_fresh = marks._wraps_all = marks.pending = True
        return marks

    def quote(self) -> None:
        """A marker stands in the span that is open, if one is."""
        self.is_quote = self._span > 0
        self._is_blank = False

    def read(self, text: str, before: str) -> None:
        """Go on with more text. ``before`` ends what was read until now; only its last characters matter, and nothing
        is the beginning of a line."""
        if not text:
            return
        if text[0] != "`":
            self._settle()
        for match in _PARTS(text):
            part = match[0]
            if part[0] == "`":
                if not self._run:
                    self._run_begins(text, match.start(), before)
                self._run += len(part)
                if match.end() < len(text):
                    self._settle()
            elif part == "\n":
                self._line_ends()
            else:
                self._says(part)
        self.pending = self._run > 0 or self._span > 0 or self._line > 0 or (self._depth > 0 and self._is_fresh)

    def _run_begins(self, text: str, place: int, before: str) -> None:
        first = max(0, place - LONGEST_INDENT - 1)
        head = (before if first == 0 else "") + text[first:place]
        self._begins = _LINE_START(head) is not None and (first == 0 or "\n" in head)
        if self._begins and not self._depth:
            self._is_first = first == 0 and len(head) <= LONGEST_INDENT and not head.strip()

    def _settle(self) -> None:
        """The run of backticks is whole."""
        run, self._run = self._run, 0
        if not run:
            return
        if run > 2 and self._begins:
            self._line = run
            self._language = ""
            return
        self._is_fresh = self._is_blank = False
        if self._line:
            self._line = 0 if run == self._line else self._line  # no fence after all, but code between two runs
        elif not self._span:
            self._span = run
        elif self._span == run:
            self._span = 0
            self.is_quote = False

    def _line_ends(self) -> None:
        if self._line:
            self._fence_line(self._line)
            self._line = 0
        if not self.is_quote or self._is_blank:
            self._span = 0
            self.is_quote = False
        self._is_blank = True

    def _fence_line(self, run: int) -> None:
        if not self._depth:
            self.fence = run
            self._depth = 1
            self._is_fresh = True
        elif run >= self.fence and self._language:
            self._depth += 1
            self._is_fresh = True
        elif run >= self.fence:
            self._depth -= 1
            self.fence = self.fence if self._depth else 0
            self._is_fresh = False

    def _says(self, text: str) -> None:
        if self._line:
            self._language = (self._language + text).lstrip()[:LONGEST_LANGUAGE]
        elif not text.isspace():
            self._is_fresh = self._is_blank = False
