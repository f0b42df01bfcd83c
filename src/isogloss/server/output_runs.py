"""Which part of a model's output is what, as far as its events tell: for showing it in colours."""

from __future__ import annotations

import re
from typing import NamedTuple

from isogloss.events import (
    Event,
    Finish,
    Malformed,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)

_ESCAPE = re.compile(r'\\(?:u(?P<code>[0-9a-fA-F]{4})|(?P<short>["\\/bfnrt]))')
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

_SCALAR = re.compile(r'"(?P<string>(?:[^"\\]|\\.)*)"?|(?P<other>[^\s{}\[\],:"]+)', re.DOTALL)
_PUNCTUATION = re.compile(r'[\s{}\[\],:"]*')

_Place = tuple[int, int]

_KINDS: dict[type, str] = {
    TextDelta: "text",
    ReasoningDelta: "reasoning",
    RefusalDelta: "refusal",
    ToolCallStart: "name",
    ToolCallDelta: "arguments",
    ToolCallEnd: "marker",
    Malformed: "malformed",
    Finish: "marker",
}


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
    kind = _KINDS[type(event)]
    runs: list[Run] = []
    end = 0
    for start, stop in (*_said(event, raw), (len(raw), len(raw))):
        if start > end:
            runs.append(Run(event.start + end, event.start + start, "marker"))
        if stop > start:
            runs.append(Run(event.start + start, event.start + stop, kind))
        end = stop
    return runs


def _said(event: Event, raw: str) -> list[_Place]:
    """The parts of ``raw`` that are not markup, in order."""
    if isinstance(event, TextDelta | ReasoningDelta | RefusalDelta):
        return [(len(raw) - len(event.text) if raw.endswith(event.text) else 0, len(raw))]
    if isinstance(event, Malformed):
        return [(0, len(raw))]
    if isinstance(event, ToolCallStart):
        at = raw.rfind(event.name)
        return [(at, at + len(event.name))] if at >= 0 else []
    if isinstance(event, ToolCallDelta):
        return _values(event.arguments, raw)
    return []


def _values(arguments: str, raw: str) -> list[_Place]:
    """Where the keys and values of a piece of JSON text stand in what the model wrote."""
    if raw.endswith(arguments):
        return [(len(raw) - len(arguments), len(raw))]
    places: list[_Place] = []
    end = len(raw)
    for match in reversed(list(_SCALAR.finditer(arguments))):
        value = _ESCAPE.sub(_unescaped, match["string"] or match["other"] or "")
        at = _last(value, raw, end) if value else end
        if at < 0:
            break
        if places and _PUNCTUATION.fullmatch(raw, at + len(value), end):
            places[-1] = (at, places[-1][1])
        elif value:
            places.append((at, at + len(value)))
        end = at
    places.reverse()
    if places and _PUNCTUATION.fullmatch(raw, 0, places[0][0]):
        places[0] = (0, places[0][1])
    if places and _PUNCTUATION.fullmatch(raw, places[-1][1]):
        places[-1] = (places[-1][0], len(raw))
    return places


def _last(value: str, raw: str, end: int) -> int:
    """Where ``value`` stands last before ``end``, not as a part of a longer word; -1 where it does not."""
    at = raw.rfind(value, 0, end)
    while at >= 0 and (_is_inside_word(raw, at) or _is_inside_word(raw, at + len(value))):
        at = raw.rfind(value, 0, at + len(value) - 1)
    return at


def _is_inside_word(text: str, at: int) -> bool:
    return 0 < at < len(text) and text[at - 1].isalnum() and text[at].isalnum()


def _unescaped(escape: re.Match[str]) -> str:
    short = escape["short"]
    return chr(int(escape["code"], 16)) if short is None else _SHORT.get(short, short)
