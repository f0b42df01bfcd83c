"""Whose dialect a piece of output is in, found out by letting every dialect scan it and write it again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from isogloss.dialects import Dialect, dialect_names, get_dialect
from isogloss.errors import UnrepresentableError
from isogloss.events import collect
from isogloss.messages import AssistantMessage, Tool
from isogloss.server.output_runs import runs_of

_STARTS = ("text", "reasoning")


_WORD = re.compile(r"\w+|[^\w\s]")


class Guess(NamedTuple):
    """What a dialect makes of the output: whole calls, damaged ones, how many words and signs it cannot tell from
    running text or would not write itself, and how many characters are markup. ``starts_in`` is its better reading."""

    dialect: Dialect
    starts_in: str
    calls: int
    malformed: int
    unexplained: int
    markup: int

    @property
    def rank(self) -> tuple[int, int, int, int]:
        """The smaller the likelier. Formats that write the same have the same."""
        return -self.calls, self.unexplained, self.malformed, -self.markup


def guess_dialects(output: str, tools: Sequence[Tool]) -> list[Guess]:
    """The dialects that see more in the output than running text, the likeliest first; none for plain text."""
    guesses = [_guess(get_dialect(name), output, tools, start) for name in dialect_names() for start in _STARTS]
    best: dict[str, Guess] = {}
    for guess in sorted(guesses, key=lambda guess: guess.rank):
        if guess.markup or guess.malformed:
            best.setdefault(guess.dialect.name, guess)
    return list(best.values())


def _guess(dialect: Dialect, output: str, tools: Sequence[Tool], starts_in: str) -> Guess:
    events = dialect.events(output, tools, starts_in=starts_in)
    turn = collect(events)
    markup = sum(
        len(output[run.start : run.end].strip())
        for event in events
        for run in runs_of(event, output[event.start : event.end])
        if run.kind == "marker"
    )
    plain = turn.text + (turn.reasoning if starts_in == "reasoning" else "")  # which anything may be taken for
    unexplained = len(_WORD.findall(plain)) + _unlike(output, _written(dialect, turn))
    return Guess(dialect, starts_in, len(turn.tool_calls), len(turn.malformed), unexplained, markup)


def _written(dialect: Dialect, turn: AssistantMessage) -> str:
    """The same turn as the dialect writes it; nothing where it cannot."""
    try:
        return dialect.render_output(turn)
    except UnrepresentableError:
        return ""


def _unlike(one: str, other: str) -> int:
    """How many words and signs only one of two texts has, in whatever order."""
    counts = Counter(_WORD.findall(one))
    counts.subtract(_WORD.findall(other))
    return sum(map(abs, counts.values()))
