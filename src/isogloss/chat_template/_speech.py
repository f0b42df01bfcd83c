"""Whose the parts of a rendered prompt are, and which of them the assistant said."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from isogloss.chat_template._input import TemplateInput
from isogloss.chat_template._marks import Piece

_BEYOND = 256
"""How far behind the length of a turn's opening the opening is looked for."""


class Part(NamedTuple):
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
        self._opening = opening
        self._units = units

    def parts(self, pieces: Sequence[Piece]) -> Iterator[Part]:
        """The pieces, cut where the assistant begins and ends."""
        owners = self._owners(pieces)
        if any(piece.is_generated for piece in pieces):
            for piece, owner in zip(pieces, owners, strict=True):
                yield Part(piece.text, owner, piece.subject >= 0, piece.is_generated)
            return
        mixed = self._mixed(pieces, owners)
        for owner, run in groupby(zip(pieces, owners, strict=True), key=lambda pair: pair[1]):
            turn = [piece for piece, _ in run]
            start, end = 0, 0
            if owner in self._given.assistants:
                first, last = _content_bounds(turn)
                start, end = first, last
                if owner not in mixed and all(piece.item >= 0 for piece in turn):
                    start = self._opened(turn) if self._opening else first
                    end = max(last, _length_without_blanks(turn))
            yield from _cut(turn, owner, start, end)

    def _owners(self, pieces: Sequence[Piece]) -> list[int]:
        """The message of each piece: content knows it, the template's loop told it, or it lies between two of one."""
        owners = [self._owner(piece) for piece in pieces]
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
        subjects = self._given.subjects
        subject = subjects[piece.subject] if 0 <= piece.subject < len(subjects) else None
        if subject is not None and subject.is_prose:
            return subject.message
        if piece.item >= 0:
            return self._given.positions[piece.item]
        return -1 if subject is None else subject.message

    def _mixed(self, pieces: Sequence[Piece], owners: Sequence[int]) -> set[int]:
        """The messages within which the template writes what another one said."""
        visited = (
            (self._given.positions[piece.item], owner)
            for piece, owner in zip(pieces, owners, strict=True)
            if piece.item >= 0
        )
        return {message for message, owner in visited if message != owner}

    def _opened(self, turn: Sequence[Piece]) -> int:
        """Where the turn goes on behind what it has of the opening."""
        markup = ""
        for piece in turn:
            if piece.subject >= 0 or len(markup) > len(self._opening) + _BEYOND:
                break
            markup += piece.text
        start = 0
        for unit, expected in zip(self._units.finditer(markup), self._units.finditer(self._opening), strict=False):
            if unit[0] != expected[0]:
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
    length = sum(len(piece.text) for piece in turn)
    for piece in reversed(turn):
        kept = len(piece.text.rstrip())
        length -= len(piece.text) - kept
        if kept:
            break
    return length


def _cut(turn: Sequence[Piece], owner: int, start: int, end: int) -> Iterator[Part]:
    """The pieces of a turn, of which the assistant said the characters from ``start`` to ``end``."""
    at = 0
    for piece in turn:
        text, is_content, behind = piece.text, piece.subject >= 0, at + len(piece.text)
        if at < start < behind or at < end < behind:
            bounds = [at, *[bound for bound in (start, end) if at < bound < behind], behind]
            for left, right in pairwise(bounds):
                if left < right:
                    yield Part(text[left - at : right - at], owner, is_content, start <= left < end)
        else:
            yield Part(text, owner, is_content, start <= at < end)
        at = behind
