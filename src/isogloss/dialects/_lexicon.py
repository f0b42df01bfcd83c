"""Sets of markers, found in text that may be cut anywhere.

A lexicon is searched in two steps: a character class that jumps to the next place where a marker could begin, then one
partial match there, which answers *this is the marker*, *this may become one*, or *no*. Patterns are bounded, so what
may become a marker is never longer than `LONGEST_MARKER`.

A marker that the engine delivers as one control token is kept apart from text that spells it: in the scanner's buffer
its first character is replaced by a stand-in from the surrogate range, which decoded text never holds. Lengths and
offsets stay the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import regex

LONGEST_MARKER = 512
"""No pattern of a lexicon matches more characters than this."""

_STAND_IN = 0xD800
_STAND_INS = re.compile("[\ud800-\ud87f]")


class Found(NamedTuple):
    """A marker in the text: which one, and where."""

    kind: str
    start: int
    end: int
    match: regex.Match[str]


class Lexicon:
    """Markers by kind. ``literals`` are spelled out; ``patterns`` are regular expressions that begin with one of
    ``first`` characters and are bounded in length. Of two kinds that match at one place the first listed wins."""

    def __init__(
        self,
        literals: Mapping[str, str | Iterable[str]],
        control: frozenset[str] = frozenset(),
        *,
        patterns: Mapping[str, str] | None = None,
        first: str = "<",
    ) -> None:
        branches: list[str] = []
        starts: set[str] = set(first) if patterns else set()
        for kind, spellings in literals.items():
            spelled = [spell(m, control) for m in ((spellings,) if isinstance(spellings, str) else spellings)]
            starts.update(marker[0] for marker in spelled)
            branches.append(f"(?P<{kind}>{'|'.join(map(re.escape, spelled))})")
        for kind, pattern in (patterns or {}).items():
            branches.append(f"(?P<{kind}>{pattern})")
        self.candidate = re.compile(f"[{re.escape(''.join(sorted(starts)))}]").search
        self.match = regex.compile("|".join(branches)).match

    def find(self, text: str, at: int, final: bool) -> Found | int:
        """The first marker at or after ``at``; else the offset from which the text may be the beginning of one."""
        candidate = self.candidate
        while (place := candidate(text, at)) is not None:
            at = place.start()
            match = self.match(text, at, partial=True)
            if match is None or (match.partial and final):
                at += 1
            elif match.partial:
                return at
            else:
                return Found(match.lastgroup, at, match.end(), match)
        return len(text)


def spell(marker: str, control: frozenset[str]) -> str:
    """The marker as it stands in a scanner's buffer."""
    return stand_in(marker) if marker in control else marker


def stand_in(marker: str) -> str:
    """The buffer's spelling of a control token."""
    return chr(_STAND_IN + ord(marker[0])) + marker[1:] if marker[:1].isascii() and marker else marker


def without_stand_ins(text: str) -> str:
    """The text with control tokens spelled as the model's vocabulary spells them."""
    if text.isascii() or _STAND_INS.search(text) is None:
        return text
    return _STAND_INS.sub(lambda match: chr(ord(match[0]) - _STAND_IN), text)
