"""Stop strings: where the visible text ends because the caller said so.

They are matched in visible text alone. An engine would match them in the raw output, where a line break as a stop
string ends the reasoning, or cuts a call's arguments in two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from isogloss.events import Event, Finish, Span, TextDelta, ToolCallEnd


class StopStrings:
    """Passes events on, up to the first stop string. Text that may be the start of one is held back."""

    def __init__(self, stops: Iterable[str]) -> None:
        self._searches = [StringSearch(stop) for stop in stops if stop]
        self._first = re.compile("|".join(re.escape(search.stop[0]) for search in self._searches))
        self._held = ""
        self._held_span = Span(0, 0)
        self._mark = 0
        self._called = False
        self.hit = False
        """Whether a stop string was found: the rest of the output is of no use."""

    def pass_on(self, events: Sequence[Event]) -> Sequence[Event]:
        return events if not self._searches else list(self._passed_on(events))

    def _passed_on(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            if self.hit:
                if isinstance(event, Finish):
                    yield Finish("tool_calls" if self._called else "stop", self._mark, event.end)
                continue
            if isinstance(event, TextDelta):
                yield from self._text(event)
                continue
            yield from self._release()
            self._called = self._called or isinstance(event, ToolCallEnd)
            self._mark = event.end
            yield event

    def _text(self, event: TextDelta) -> Iterator[TextDelta]:
        text = self._held + event.text
        found = self._find(event.text)
        start = self._held_span.start if self._held else event.start
        if found is not None:
            self.hit = True
            kept = len(self._held) + found
        else:
            kept = len(text) - max(search.matched for search in self._searches)
        end = event.end - (len(text) - kept)
        if kept:
            self._mark = end
            yield TextDelta(text[:kept], start, end)
            start = end
        self._held, self._held_span = text[kept:], Span(start, event.end)

    def _find(self, text: str) -> int | None:
        """Where a stop string starts that ends in ``text``: negative when it started before."""
        position = 0
        while position < len(text):
            if not any(search.matched for search in self._searches):
                first = self._first.search(text, position)
                if first is None:
                    return None
                position = first.start()
            char = text[position]
            position += 1
            ended = [len(search.stop) for search in self._searches if search.step(char)]
            if ended:
                return position - max(ended)
        return None

    def _release(self) -> Iterator[TextDelta]:
        """What was held back was only text."""
        if self._held:
            yield TextDelta(self._held, *self._held_span)
        self._held = ""
        for search in self._searches:
            search.matched = 0


class StringSearch:
    """Knuth, Morris and Pratt: one step a character, whatever the string."""

    def __init__(self, stop: str) -> None:
        self.stop = stop
        self.matched = 0
        self._fallback = [0] * len(stop)
        for position in range(1, len(stop)):
            self._fallback[position] = self._next(self._fallback[position - 1], stop[position])

    def step(self, char: str) -> bool:
        """Whether the string ends with this character."""
        if self.matched == len(self.stop):
            self.matched = self._fallback[-1]
        self.matched = self._next(self.matched, char)
        return self.matched == len(self.stop)

    def _next(self, matched: int, char: str) -> int:
        while matched and self.stop[matched] != char:
            matched = self._fallback[matched - 1]
        return matched + 1 if self.stop[matched] == char else 0
