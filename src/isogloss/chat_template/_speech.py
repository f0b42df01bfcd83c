"""Whose the parts of a rendered prompt are, and which of them the assistant said."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from isogloss.chat_template._input import Subject, TemplateInput
from isogloss.chat_template._marks import Piece

_BEYOND = 256
"""How far behind the length of a turn's opening the opening is looked for."""


_NOBODY = Subject("", -1, "")


class Part(msgspec.Struct, frozen=True, gc=False):
    """A run of a prompt: the message it belongs to (-1: none), whether it is content, whether the assistant said it."""

    text: str
    message: int
    is_content: bool
    is_assistant: bool


class Turns:
    """Tells the turns of a prompt apart.

    ``opening`` is what the template writes where the assistant is to speak; what a turn has of that is not said by the
    assistant, nor are the blanks behind a turn. ``units`` cuts markup into what may not be parted.
    """

    def __init__(self, given: TemplateInput, opening: str, units: re.Pattern[str]) -> None:
        self._given = given
        self._opening = [unit[0] for unit in units.finditer(opening)]
        self._longest_opening = len(opening) + _BEYOND
        self._units = units
        self._starts: dict[str, int] = {}
        """Where turns go on that begin with this markup: most begin alike."""

    def parts(self, pieces: Sequence[Piece]) -> list[Part]:
        """The pieces, cut where the assistant begins and ends."""
        owners = self._owners(pieces)
        if any(piece.is_generated for piece in pieces):
            return [
                Part(piece.text, owner, piece.subject >= 0, piece.is_generated)
                for piece, owner in zip(pieces, owners, strict=True)
            ]
        parts: list[Part] = []
        mixed = self._mixed(pieces, owners)
        bounds = [place for place, (one, other) in enumerate(pairwise(owners), 1) if one != other]
        for left, right in pairwise([0, *bounds, len(pieces)] if pieces else ()):
            turn, owner = pieces[left:right], owners[left]
            start, end = 0, 0
            if owner in self._given.assistants:
                first, last = _content_bounds(turn)
                start, end = first, last
                if owner not in mixed and all(piece.item >= 0 for piece in turn):
                    start = self._opened(turn) if self._opening else first
                    end = max(last, _length_without_blanks(turn))
            parts += _cut(turn, owner, start, end)
        return parts

    def _owners(self, pieces: Sequence[Piece]) -> list[int]:
        """The message of each piece: content knows it, the template's loop told it, or it lies between two of one."""
        owners = list(map(self._owner, pieces))
        last, waiting = -1, 0
        for place, owner in enumerate(owners):
            if owner < 0:
                waiting += 1
                continue
            if owner == last:
                owners[place - waiting : place] = [owner] * waiting
            last, waiting = owner, 0
        return owners

    def _owner(self, piece: Piece) -> int:
        number, item = piece.subject, piece.item
        if number < 0:
            return -1 if item < 0 else self._given.positions[item]
        subject = self._given.subjects[number] if number < len(self._given.subjects) else _NOBODY
        return subject.message if item < 0 or subject.is_prose else self._given.positions[item]

    def _mixed(self, pieces: Sequence[Piece], owners: Sequence[int]) -> set[int]:
        """The messages within which the template writes what another one said."""
        positions = self._given.positions
        return {
            positions[piece.item]
            for piece, owner in zip(pieces, owners, strict=True)
            if piece.item >= 0 and positions[piece.item] != owner
        }

    def _opened(self, turn: Sequence[Piece]) -> int:
        """Where the turn goes on behind what it has of the opening."""
        markup = ""
        for piece in turn:
            if piece.subject >= 0 or len(markup) > self._longest_opening:
                break
            markup += piece.text
        if markup not in self._starts:
            self._starts[markup] = self._behind_opening(markup)
        return self._starts[markup]

    def _behind_opening(self, markup: str) -> int:
        start = 0
        for unit, expected in zip(self._units.finditer(markup), self._opening, strict=False):
            if unit[0] != expected:
                break
            start = unit.end()
        return start


def _content_bounds(turn: Sequence[Piece]) -> tuple[int, int]:
    """From the first character of content to behind the last."""
    at, first, last = 0, -1, 0
    for piece in turn:
        if piece.subject >= 0:
            first = at if first < 0 else first
            last = at + len(piece.text)
        at += len(piece.text)
    return max(first, 0), last


def _length_without_blanks(turn: Sequence[Piece]) -> int:
    length = sum([len(piece.text) for piece in turn])
    for piece in reversed(turn):
        kept = len(piece.text.rstrip())
        length -= len(piece.text) - kept
        if kept:
            break
    return length


def _cut(turn: Sequence[Piece], owner: int, start: int, end: int) -> list[Part]:
    """The pieces of a turn, of which the assistant said the characters from ``start`` to ``end``."""
    if end == 0:
        return [Part(piece.text, owner, piece.subject >= 0, False) for piece in turn]
    parts = []
    at = 0
    for piece in turn:
        text, is_content, behind = piece.text, piece.subject >= 0, at + len(piece.text)
        if at < start < behind or at < end < behind:
            bounds = [at, *[bound for bound in (start, end) if at < bound < behind], behind]
            for left, right in pairwise(bounds):
                if left < right:
                    parts.append(Part(text[left - at : right - at], owner, is_content, start <= left < end))
        else:
            parts.append(Part(text, owner, is_content, start <= at < end))
        at = behind
    return parts
