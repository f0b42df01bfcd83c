"""Which part of a model's output is what, as far as its events tell: for showing it in colours."""

from __future__ import annotations

import re
from typing import NamedTuple

from isogloss.events import (
    Event,
    Malformed,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)

_ESCAPE = re.compile(r'\\(?:u(?P<code>[0-9a-fA-F]{4})|(?P<short>["\\/bfnrt]))')
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

_KINDS: dict[type, str] = {TextDelta: "text", ReasoningDelta: "reasoning", RefusalDelta: "refusal"}


class Run(NamedTuple):
    """A stretch of the output, in characters from ``start`` on. ``kind``: ``marker``, ``text``, ``reasoning``,
    ``refusal``, ``name``, ``arguments`` or ``malformed``."""

    start: int
    end: int
    kind: str


def runs_of(event: Event, raw: str) -> list[Run]:
    """What ``raw``, the output that an event covers, consists of; the runs tile it.

    Markup comes in front of what it introduces, so what an event says is looked for from the end of its span. A value
    that its event writes in another notation, and that cannot be found, counts as markup.
    """
    (start, end), kind = _said(event, raw)
    parts = ((0, start, "marker"), (start, end, kind), (end, len(raw), "marker"))
    return [Run(event.start + a, event.start + b, name) for a, b, name in parts if b > a]


def _said(event: Event, raw: str) -> tuple[tuple[int, int], str]:
    """The part of ``raw`` that is not markup, and its kind."""
    if isinstance(event, TextDelta | ReasoningDelta | RefusalDelta):
        at = len(raw) - len(event.text) if raw.endswith(event.text) else 0
        return (at, len(raw)), _KINDS[type(event)]
    if isinstance(event, Malformed):
        return (0, len(raw)), "malformed"
    if isinstance(event, ToolCallStart):
        at = raw.rfind(event.name)
        return ((at, at + len(event.name)) if at >= 0 else (0, 0)), "name"
    if isinstance(event, ToolCallDelta):
        return _value(event.arguments, raw), "arguments"
    return (0, 0), "marker"


def _value(arguments: str, raw: str) -> tuple[int, int]:
    """Where the value at the end of a piece of JSON text stands in what the model wrote."""
    if raw.endswith(arguments):
        return len(raw) - len(arguments), len(raw)
    value = _ESCAPE.sub(_unescaped, arguments).rstrip('"}]')
    length = _longest(value, raw)
    if length == 0:
        return 0, 0
    at = raw.rfind(value[len(value) - length :])
    return at, at + length


def _longest(value: str, raw: str) -> int:
    """The length of the longest end of ``value`` that is in ``raw``: any shorter one is too, so halving finds it."""
    low, high = 0, min(len(value), len(raw))
    while low < high:
        middle = (low + high + 1) // 2
        if value[len(value) - middle :] in raw:
            low = middle
        else:
            high = middle - 1
    return low


def _unescaped(escape: re.Match[str]) -> str:
    short = escape["short"]
    return chr(int(escape["code"], 16)) if short is None else _SHORT.get(short, short)
