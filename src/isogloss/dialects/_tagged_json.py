"""JSON calls between an opening and a closing tag, as hermes and its descendants write them."""

from __future__ import annotations

import re
from typing import Final

from isogloss._compiled import mypyc_attr
from isogloss.dialects._json_calls import JsonCallScanner
from isogloss.dialects._lexicon import Found, Lexicon
from isogloss.notations.runs import run

STRAY_CLOSERS: Final = "closing brackets without an opening one"

_FENCE = run(r"[`A-Za-z\s]*")
_CLOSERS = re.compile(r"[}\])\"',;]+").match


@mypyc_attr(allow_interpreted_subclasses=True)
class TaggedJsonScanner(JsonCallScanner):
    """``call`` opens a body of one or more envelopes, perhaps in a code fence, and ``call_close`` ends it.

    A call is whole with its last brace: what follows up to the closer is markup or, if it is stray brackets,
    malformed; a missing closer does no harm.
    """

    faults: Lexicon
    """Where scanning goes on after a body that is no call."""
    tails: Lexicon
    """``call_close`` alone."""

    def _on_call(self, found: Found) -> None:
        self._open(found.start)
        self._state = self._body

    def _on_call_close(self, found: Found) -> None:
        """A closer without an opener: markup that says nothing."""
        self._enter(self.text_prose)

    def _body(self) -> bool:
        char = self._next_char()
        if char == "":
            return False
        self._state = self._fence if char == "`" else self._envelope
        return True

    def _fence(self) -> bool:
        """The opening line of a code fence around the body."""
        self._pos = _FENCE(self._text, self._pos).end()
        if self._pos == len(self._text):
            return False
        self._state = self._envelope
        return True

    def _envelope_done(self) -> None:
        self._state = self._tail

    def _fault(self, reason: str) -> None:
        self._discard(reason, self.faults)

    def _tail(self) -> bool:
        """Between the last brace and the closing tag."""
        char = self._next_char()
        if char == "":
            return False
        if char in "{[":
            self._open(self._pos)
            self._state = self._envelope
        elif char == "`":
            self._pos += 1
        elif _CLOSERS(char):
            self._open(self._pos)
            self._state = self._stray_closers
        else:
            found = self.tails.match(self._text, self._pos)
            if found is not None and found.partial and not self._final:
                return False
            if found is not None and not found.partial:
                self._pos = found.end()
            self._enter(self.text_prose)
        return True

    def _stray_closers(self) -> bool:
        run = _CLOSERS(self._text, self._pos)
        if run is not None:
            self._pos = run.end()
        if self._pos == len(self._text) and not self._final:
            return False
        self._malformed(STRAY_CLOSERS, self._pos)
        self._state = self._tail
        return True
