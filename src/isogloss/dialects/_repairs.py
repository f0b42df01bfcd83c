"""What a scanner put right in a model's output without losing any of it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import msgspec


class Repair(msgspec.Struct, frozen=True, gc=False):
    """A departure from the format that could be understood: ``reason`` says what was wrong and how it was read.

    ``raw`` is the text concerned and ``start`` its offset in the output, in characters.
    """

    reason: str
    raw: str
    start: int


@runtime_checkable
class NotesRepairs(Protocol):
    """A scanner that lists what it put right."""

    repairs: list[Repair]
