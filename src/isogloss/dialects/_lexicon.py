"""Sets of markers, found in text that may be cut anywhere.

A lexicon is searched in two steps: one that jumps to the next place where a marker could begin, then a match there
that answers *this is the marker*, *this may become one*, or *no*. Patterns are bounded in length, and so is what may
become a marker.

A marker that the engine delivers as one control token is kept apart from text that spells it: in the scanner's buffer
its first character is replaced by a stand-in from the surrogate range, which decoded text never holds. Lengths and
offsets stay the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import regex

_STAND_IN = 0xD800
_FIRST_CHARACTERS = "".join(map(chr, range(128))) + "｜"
"""What control tokens begin with, in the vocabularies there are."""

_STAND_INS = re.compile(r"[\ud800-\ud880]")


class Found(NamedTuple):
    """A marker in the text: which one, and where."""

    kind: str
    start: int
    end: int
    match: Any
    """The match object, for groups of a pattern."""


class Lexicon:
    """Markers by kind. ``literals`` are spelled out; ``patterns`` are regular expressions, bounded in length, whose
    matches begin with one of ``first`` (one character, or two for a quicker search) or, where that says too little,
    where the pattern ``beginning`` matches. Of two kinds that match at one place the first listed wins. No two patterns
    may name a group alike."""

    def __init__(
        self,
        literals: Mapping[str, str | Iterable[str]],
        control: frozenset[str] = frozenset(),
        *,
        patterns: Mapping[str, str] | None = None,
        first: Iterable[str] = ("<",),
        beginning: str = "",
    ) -> None:
        branches: list[str] = []
        spelled: list[str] = []
        for kind, spellings in literals.items():
            own = [spell(marker, control) for marker in ((spellings,) if isinstance(spellings, str) else spellings)]
            branches.append(f"(?P<{kind}>{'|'.join(map(re.escape, own))})")
            spelled += own
        beginnings = _beginnings([*spelled, *(first if patterns and not beginning else ())])
        begins = "|".join(filter(None, (beginnings, beginning if patterns else "")))
        self.candidate = re.compile(begins).search
        self.lead: str = _lead(begins)
        """The character that all markers begin with, if it is one: a text without it needs no search."""
        if patterns:
            branches += [f"(?P<{kind}>{pattern})" for kind, pattern in patterns.items()]
            self.find = self._find_pattern
        else:
            self._whole_or_cut = re.compile("|".join([*branches, _cut(spelled)])).match
            self.find = self._find_literal
        self._pattern = "|".join(branches)
        self._match_at: Callable[..., regex.Match[str] | None] | None = None

    find: Callable[[str, int, bool], Found | int]
    """The first marker at or after an offset; else the offset from which the text may be the beginning of one. The
    last argument says that no more text will come."""

    def match(self, text: str, at: int) -> regex.Match[str] | None:
        """The marker at that place, or the beginning of one (``partial``) at the end of the text."""
        if self._match_at is None:  # made when it is first asked for: most lexicons of a dialect are not
            self._match_at = regex.compile(self._pattern).match
        return self._match_at(text, at, partial=True)

    def _find_literal(self, text: str, at: int, final: bool) -> Found | int:
        if self.lead not in text:
            return len(text)
        candidate = self.candidate
        while (place := candidate(text, at)) is not None:
            at = place.start()
            match = self._whole_or_cut(text, at)
            if match is not None:
                if match.lastgroup is not None:
                    return Found(match.lastgroup, at, match.end(), match)
                if not final:
                    return at
            at += 1
        return len(text)

    def _find_pattern(self, text: str, at: int, final: bool) -> Found | int:
        if self.lead not in text:
            return len(text)
        candidate = self.candidate
        while (place := candidate(text, at)) is not None:
            at = place.start()
            match = self.match(text, at)
            if match is None or (match.partial and final):
                at += 1
            elif match.partial:
                return at
            else:
                return Found(match.lastgroup, at, match.end(), match)
        return len(text)


def _beginnings(spelled: Iterable[str]) -> str:
    """A pattern for where a marker may begin: its first two characters, or its first at the end of the text.

    Each branch begins with a plain character, which lets the search skip to it in one loop.
    """
    seconds: dict[str, set[str]] = {}
    for marker in spelled:
        seconds.setdefault(marker[0], set()).add(marker[1:2])
    branches = []
    for char, following in seconds.items():
        ahead = "" if "" in following else f"(?=[{''.join(map(re.escape, sorted(following)))}]|\\Z)"
        branches.append(re.escape(char) + ahead)
    return "|".join(branches)


def _lead(pattern: str) -> str:
    """The one character that all branches of a pattern begin with, if they do so plainly; else nothing."""
    leads: set[str] = set()
    depth, branch = 0, 0
    for token in _TOKENS(pattern):
        text = token[0]
        if branch == 0:
            leads.add(text[-1] if _IS_PLAIN(text) else "")
        elif branch == 1 and text in "?*{":
            leads.add("")
        depth += {"(": 1, ")": -1}.get(text, 0)
        branch = 0 if text == "|" and depth == 0 else branch + 1
    return leads.pop() if len(leads) == 1 else ""


_TOKENS = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|.", re.DOTALL).finditer
_IS_PLAIN = re.compile(r"\\[^\w\s]|[^\\\[(.^$|]").fullmatch


def _cut(spelled: Iterable[str]) -> str:
    """A pattern for the beginning of any of the markers at the end of the text."""
    trie: dict[str, Any] = {}
    for marker in spelled:
        node = trie
        for char in marker[:-1]:
            node = node.setdefault(char, {})
    return f"(?:{_cut_branches(trie)})\\Z"


def _cut_branches(trie: dict[str, Any]) -> str:
    return "|".join(
        re.escape(char) + (f"(?:{_cut_branches(following)})?" if following else "") for char, following in trie.items()
    )


def spell(marker: str, control: frozenset[str]) -> str:
    """The marker as it stands in a scanner's buffer, where it or a part of it may be a control token."""
    if marker in control:
        return stand_in(marker)
    for token in control:
        if token in marker:
            marker = marker.replace(token, stand_in(token))
    return marker


def arrives_as_control(marker: str, control: frozenset[str]) -> bool:
    """Whether the engine delivers it, or a part of it, as a control token."""
    return any(token in marker for token in control)


def stand_in(marker: str) -> str:
    """The buffer's spelling of a control token."""
    place = _FIRST_CHARACTERS.find(marker[0]) if marker else -1
    return marker if place < 0 else chr(_STAND_IN + place) + marker[1:]


def without_forgeries(text: str) -> str:
    """The engine's text without the halves of characters that stand in for control tokens: no decoded text has any."""
    return text if text.isascii() else _STAND_INS.sub("\ufffd", text)


def without_stand_ins(text: str) -> str:
    """The text with control tokens spelled as the model's vocabulary spells them."""
    if text.isascii() or _STAND_INS.search(text) is None:
        return text
    return _STAND_INS.sub(lambda match: _FIRST_CHARACTERS[ord(match[0]) - _STAND_IN], text)
