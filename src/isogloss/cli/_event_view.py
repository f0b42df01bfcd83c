"""Events for a reader: one a line, in the colours of the playground."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from isogloss.cli._terminal_text import harmless
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

_LINES: dict[type, tuple[str, str]] = {
    TextDelta: ("text", ""),
    ReasoningDelta: ("reasoning", "magenta italic"),
    RefusalDelta: ("refusal", "bright_magenta"),
    ToolCallStart: ("call", "bold cyan"),
    ToolCallDelta: ("arguments", "yellow"),
    ToolCallEnd: ("call ends", "cyan"),
    Malformed: ("malformed", "red"),
    Finish: ("finish", "dim"),
}
_LABEL_WIDTH, _SPAN_WIDTH = 10, 13


def show_events(events: Iterable[Event]) -> None:
    """Each event's kind, the characters of the output that it covers, and what it says."""
    console = Console(highlight=False, markup=False, emoji=False)
    for event in events:
        label, style = _LINES[type(event)]
        line = Text(f"{label:<{_LABEL_WIDTH}}", style=style)
        line.append(f"{f'{event.start}-{event.end}':<{_SPAN_WIDTH}}", style="dim not italic not bold")
        line.append(harmless(_said(event)).replace("\n", "⏎" if not console.options.ascii_only else "\\n"))
        console.print(line, soft_wrap=True)


def _said(event: Event) -> str:
    match event:
        case TextDelta() | ReasoningDelta() | RefusalDelta():
            return event.text
        case ToolCallStart():
            return f"{event.name} ({event.id})"
        case ToolCallDelta():
            return event.arguments
        case Malformed():
            return f"{event.reason}: {event.raw}"
        case Finish():
            return event.reason
        case _:
            return ""
