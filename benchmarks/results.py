"""Results: what was measured, for both sides, in rounds that take turns; and how a run compares with an earlier one."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

BASELINE = Path(__file__).with_name("results.json")
SLACK = 0.85
"""A ratio has regressed when the best of its rounds is below this part of the baseline's worst."""


class Spread(msgspec.Struct, frozen=True):
    """The rounds' least, median and largest."""

    min: float
    median: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(*(float(f"{value:.4g}") for value in (min(values), median(values), max(values))))


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """One work, ours beside one peer's. ``ratio`` is theirs by ours, round by round: above 1, Isogloss is faster.

    ``stopped`` is the part of the input after which a peer that was too slow was stopped; its cost a unit, and so the
    ratio, is then a lower bound. ``growth`` is a stream's second half by its first: 1 is linear, 3 quadratic. ``note``
    says where the peer's result differs from ours.
    """

    subject: str
    case: str
    peer: str
    version: str
    unit: str
    ours: Spread
    theirs: Spread
    ratio: Spread
    stopped: float | None = None
    growth: float | None = None
    note: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.subject, self.case, self.peer


class Results(msgspec.Struct):
    """A run: its rows, the peers that could not be had, tables that no peer has a part in."""

    machine: str
    rows: list[Row] = []
    missing: dict[str, str] = {}
    alone: dict[str, Any] = {}

    @classmethod
    def new(cls) -> Results:
        return cls(f"{_processor()}, Python {platform.python_version()}")

    @classmethod
    def read(cls, path: Path = BASELINE) -> Results | None:
        return msgspec.json.decode(path.read_bytes(), type=cls) if path.is_file() else None

    def write(self, path: Path = BASELINE) -> None:
        path.write_text(json.dumps(msgspec.to_builtins(self), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def of(self, subject: str) -> list[Row]:
        return [row for row in self.rows if row.subject == subject]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next((line.split(": ", 1)[1] for line in lines if line.startswith("model name")), platform.machine())


def in_turns(sides: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Each side's figure in each round. Sides take turns, in the other direction every second round."""
    figures: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        order = list(sides) if number % 2 == 0 else list(sides)[::-1]
        for name in order:
            figures[name].append(sides[name]())
    return figures


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Theirs by ours, each round by itself."""
    return Spread.of([their / our for our, their in zip(ours, theirs, strict=True)])


def regressions(run: Results, baseline: Results) -> list[str]:
    """The rows that got slower against the same release of a peer than their spread explains."""
    before = {row.key: row for row in baseline.rows}
    problems = []
    for row in run.rows:
        was = before.get(row.key)
        if was is None or row.version != was.version or row.stopped is not None or was.stopped is not None:
            continue
        if row.ratio.max < was.ratio.min * SLACK:
            problems.append(
                f"{' / '.join(row.key)}: {row.ratio.min:.2f} to {row.ratio.max:.2f} times as fast, was "
                f"{was.ratio.min:.2f} to {was.ratio.max:.2f}"
            )
    return problems


def merged(baseline: Results | None, run: Results, subjects: Sequence[str]) -> Results:
    """The baseline, with the subjects that were run as they are now."""
    if baseline is None:
        return run
    rows = [row for row in baseline.rows if row.subject not in subjects]
    alone = {**baseline.alone, **run.alone}
    measured = {row.peer for row in rows} | {row.peer for row in run.rows}
    missing = {name: why for name, why in {**baseline.missing, **run.missing}.items() if name not in measured}
    return Results(run.machine, sorted([*rows, *run.rows], key=lambda row: row.subject), missing, alone)


def compared(run: Results, baseline: Results) -> int:
    """How many rows both have."""
    return len({row.key for row in run.rows} & {row.key for row in baseline.rows})
