"""What happens while a model speaks: a closed union of frozen events, and their sum.

Every event covers ``output[start:end]``: the characters of the model's output that it settles, the markup in front of
them included. The spans of one turn's events tile the output: the first starts at 0, each starts where the one before
it ended, and `Finish` ends at the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from isogloss.messages import AssistantMessage, MalformedCall, ToolCall


class Span(NamedTuple):
    """Offsets into the model's output, in characters, end exclusive."""

    start: int
    end: int


class Piece(msgspec.Struct, frozen=True, gc=False):
    """A piece of a model's output. ``is_control``: it is one control token, matched by id, not text that spells it."""

    text: str
    is_control: bool = False


class _Event(msgspec.Struct, frozen=True, gc=False):
    @property
    def span(self) -> Span:
        return Span(self.start, self.end)  # type: ignore[attr-defined]


class TextDelta(_Event, frozen=True, gc=False, tag="text"):
    """Visible text."""

    text: str
    start: int = 0
    end: int = 0


class ReasoningDelta(_Event, frozen=True, gc=False, tag="reasoning"):
    """The model's reasoning, not part of the answer."""

    text: str
    start: int = 0
    end: int = 0


class RefusalDelta(_Event, frozen=True, gc=False, tag="refusal"):
    """Text that says why the model will not answer."""

    text: str
    start: int = 0
    end: int = 0


class ToolCallStart(_Event, frozen=True, gc=False, tag="tool_call_start"):
    """A call whose name is known. ``index`` counts the calls of the turn from 0."""

    index: int
    id: str
    name: str
    start: int = 0
    end: int = 0


class ToolCallDelta(_Event, frozen=True, gc=False, tag="tool_call_delta"):
    """A piece of the call's arguments, always JSON text whatever the dialect wrote."""

    index: int
    arguments: str
    start: int = 0
    end: int = 0


class ToolCallEnd(_Event, frozen=True, gc=True, tag="tool_call_end"):
    """The call is whole. ``arguments`` is the value of its joined deltas."""

    index: int
    arguments: dict[str, Any]
    start: int = 0
    end: int = 0


CUT_SHORT = "the call was cut short"
"""The reason of a `Malformed` that the end of the output made of a call."""


class Malformed(_Event, frozen=True, gc=False, tag="malformed"):
    """Output that looks like a call and is none, or was cut short.

    ``raw`` is the whole of it as the model wrote it. ``index`` names the call that it ends, when its start was already
    reported: that call is not to be run.
    """

    raw: str
    reason: str
    index: int | None = None
    start: int = 0
    end: int = 0


class Finish(_Event, frozen=True, gc=False, tag="finish"):
    """The end of the turn. ``reason`` is ``stop``, ``tool_calls``, ``length`` or the engine's own word."""

    reason: str
    start: int = 0
    end: int = 0


Event = TextDelta | ReasoningDelta | RefusalDelta | ToolCallStart | ToolCallDelta | ToolCallEnd | Malformed | Finish


def collect(events: Iterable[Event]) -> AssistantMessage:
    """The sum of a turn's events. Only calls that ended are in ``tool_calls``."""
    text: list[str] = []
    reasoning: list[str] = []
    refusal: list[str] = []
    started: dict[int, ToolCallStart] = {}
    calls: list[ToolCall] = []
    malformed: list[MalformedCall] = []
    finish: str | None = None
    for event in events:
        kind = type(event)
        if kind is TextDelta:
            text.append(event.text)  # type: ignore[union-attr]
        elif kind is ReasoningDelta:
            reasoning.append(event.text)  # type: ignore[union-attr]
        elif kind is RefusalDelta:
            refusal.append(event.text)  # type: ignore[union-attr]
        elif isinstance(event, ToolCallStart):
            started[event.index] = event
        elif isinstance(event, ToolCallEnd):
            start = started.pop(event.index)
            calls.append(ToolCall(start.id, start.name, event.arguments))
        elif isinstance(event, Malformed):
            malformed.append(MalformedCall(event.raw, event.reason))
        elif isinstance(event, Finish):
            finish = event.reason
        elif kind is not ToolCallDelta:
            raise TypeError(f"Expected an event, got `{type(event).__name__}`")
    return AssistantMessage(
        text="".join(text),
        reasoning="".join(reasoning),
        refusal="".join(refusal),
        tool_calls=tuple(calls),
        malformed=tuple(malformed),
        finish=finish,
    )


def merge(events: Iterable[Event]) -> list[Event]:
    """The same events with adjacent deltas joined: what stays the same wherever the output is cut."""
    merged: list[Event] = []
    for event in events:
        last = merged[-1] if merged else None
        if isinstance(event, (TextDelta, ReasoningDelta, RefusalDelta)) and type(last) is type(event):
            merged[-1] = type(event)(last.text + event.text, last.start, event.end)
        elif isinstance(event, ToolCallDelta) and isinstance(last, ToolCallDelta) and last.index == event.index:
            merged[-1] = ToolCallDelta(event.index, last.arguments + event.arguments, last.start, event.end)
        else:
            merged.append(event)
    return merged


def to_json(event: Event) -> str:
    """One line of JSON: the event's type, fields and span."""
    return json.dumps(msgspec.to_builtins(event), ensure_ascii=False)
