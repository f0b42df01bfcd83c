"""Harmony: the stand-in for openai_harmony against the package itself, on the same input, results compared."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from benchmarks.results import Results, Row, Spread, in_turns, ratios
from benchmarks.vocabulary import vocabulary_folder
from benchmarks.workers import Worker, running


class Case(NamedTuple):
    """A work of ``peers/harmony_works.py`` and what it is told."""

    label: str
    unit: str
    work: str
    arguments: dict[str, Any]
    rounds: int = 7


CASES = (
    Case(
        "render 200 messages, 20 tools", "us/conversation", "harmony_render", {"messages": 200, "tools": 20, "times": 1}
    ),
    Case("render 4 messages", "us/conversation", "harmony_render", {"messages": 4, "tools": 0, "times": 50}),
    Case("parse 10,000 tokens at once", "us/token", "harmony_parse", {"size": 10_000}),
    Case("parse 100,000 tokens at once", "us/token", "harmony_parse", {"size": 100_000}),
    Case("stream 10,000 tokens", "us/token", "harmony_stream", {"size": 10_000, "reading": "nothing"}),
    Case("stream 10,000, reading the delta", "us/token", "harmony_stream", {"size": 10_000, "reading": "the delta"}),
    Case("stream 100,000, reading the delta", "us/token", "harmony_stream", {"size": 100_000, "reading": "the delta"}),
    Case(
        "stream 10,000, reading delta, channel, recipient",
        "us/token",
        "harmony_stream",
        {"size": 10_000, "reading": "delta, channel, recipient"},
    ),
    Case(
        "stream 10,000, reading the whole text",
        "us/token",
        "harmony_stream",
        {"size": 10_000, "reading": "the whole text"},
        3,
    ),
    Case(
        "stream 40,000, reading the whole text",
        "us/token",
        "harmony_stream",
        {"size": 40_000, "reading": "the whole text"},
        2,
    ),
    Case("load the encoding again", "us/load", "harmony_load", {"times": 3}, 3),
)


def measure(results: Results) -> None:
    """Every case; a result that is not the package's is noted."""
    vocabulary = vocabulary_folder()
    with running("isogloss", "openai_harmony") as (workers, missing):
        results.missing.update(missing)
        for ours, theirs in [(workers[0], worker) for worker in workers[1:]]:
            for case in CASES:
                results.rows.append(_row(case, ours, theirs, vocabulary))


def _row(case: Case, ours: Worker, theirs: Worker, vocabulary: str) -> Row:
    seen: set[str] = set()

    def run(side: Worker) -> float:
        answer = side.ask(case.work, vocabulary=vocabulary, **case.arguments)
        seen.add(answer["result"])
        return float(answer["seconds"]) / int(answer["units"]) * 1e6

    figures = in_turns({side.name: partial(run, side) for side in (ours, theirs)}, case.rounds)
    mine, others = figures[ours.name], figures[theirs.name]
    note = "" if len(seen) == 1 else "results differ"
    spreads = (Spread.of(mine), Spread.of(others), ratios(mine, others))
    row = Row("harmony", case.label, theirs.name, theirs.version, case.unit, *spreads, note=note)
    print(f"{row.case}: {row.ours.min:.2f} {row.theirs.min:.2f} {row.ratio}", flush=True)
    return row
