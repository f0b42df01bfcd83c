"""What a chat endpoint says, as events: pieces that it took apart itself, and text that a dialect's scanner reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from isogloss.engines import NativePiece
from isogloss.events import (
    Event,
    Finish,
    Malformed,
    Piece,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from isogloss.messages import new_call_id
from isogloss.notations.json import parse_object

if TYPE_CHECKING:
    from isogloss.dialects._scanner import StreamScanner

CUT_SHORT = "the call was cut short"
NO_OBJECT = "the arguments are no JSON object"
_DELTAS: dict[str, type[TextDelta] | type[ReasoningDelta] | type[RefusalDelta]] = {
    "text": TextDelta,
    "reasoning": ReasoningDelta,
    "refusal": RefusalDelta,
}


class EndpointScanner:
    """Scans one turn. ``text``: the scanner of a dialect for what comes as plain pieces; without it there are none.

    Spans are offsets into all that came, in order. What an endpoint tells of its own while the dialect's scanner is at
    work has no width.
    """

    def __init__(self, text: StreamScanner | None = None) -> None:
        self._scanner = text
        self._position = 0
        self._before_text: int | None = None
        self._open: int | None = None
        self._arguments: list[str] = []
        self._has_calls = False

    @property
    def makes_up_results(self) -> bool:
        """Whether the model made up a tool's result, as far as the dialect's scanner sees."""
        return self._scanner is not None and self._scanner.makes_up_results

    def feed(self, piece: Piece) -> list[Event]:
        """Every event that this piece settles."""
        if not isinstance(piece, NativePiece):
            return self._scanned(self._scanner.feed(piece)) if self._scanner is not None else []
        if piece.kind == "call":
            return self._call(piece)
        event: Event = _DELTAS[piece.kind](piece.text, *self._advance(piece.text))
        return [event]

    def finish(self, reason: str = "stop") -> list[Event]:
        """The events that the end of the turn settles. ``reason`` is why the endpoint stopped."""
        if self._scanner is not None:
            return self._scanned(self._scanner.finish(reason))
        events = self._end_call(CUT_SHORT if reason == "length" else NO_OBJECT, is_whole=reason == "stop")
        reason = "tool_calls" if self._has_calls and reason == "stop" else reason
        return [*events, Finish(reason, self._position, self._position)]

    def _call(self, piece: NativePiece) -> list[Event]:
        events: list[Event] = []
        if piece.call != self._open:
            events += self._end_call(NO_OBJECT, is_whole=True)
            self._open = piece.call
            name, call_id = piece.name, piece.call_id or new_call_id()
            events.append(ToolCallStart(piece.call, call_id, name, self._position, self._position))
        if piece.text:
            self._arguments.append(piece.text)
            events.append(ToolCallDelta(piece.call, piece.text, *self._advance(piece.text)))
        return events

    def _end_call(self, fault: str, *, is_whole: bool) -> list[Event]:
        """The end of the call that is open, if one is. A call without arguments has none only when it ``is_whole``."""
        index, self._open = self._open, None
        if index is None:
            return []
        text = "".join(self._arguments)
        self._arguments.clear()
        here = (self._position, self._position)
        arguments = parse_object(text or ("{}" if is_whole else ""))
        if arguments is None:
            return [Malformed(text, fault, index, *here)]
        self._has_calls = True
        ended = ToolCallEnd(index, arguments, *here)
        return [ended] if text else [ToolCallDelta(index, "{}", *here), ended]

    def _scanned(self, events: list[Event]) -> list[Event]:
        """Events of the dialect's scanner, behind what had come before the text."""
        if self._before_text is None:
            self._before_text = self._position
        shift = self._before_text
        if events:
            self._position = events[-1].span.end + shift
        if not shift:
            return events
        return [
            msgspec.structs.replace(event, start=event.span.start + shift, end=event.span.end + shift)
            for event in events
        ]

    def _advance(self, text: str) -> tuple[int, int]:
        start = self._position
        if self._before_text is None:
            self._position += len(text)
        return start, self._position
