"""Schemas: CPU time from a JSON Schema to the first mask, and for each mask after it, against other engines.

The schemas are those of the MaskBench sample, when ``../shared/data`` is there, else a few of our own; the vocabulary
is o200k. Nothing is cached: every schema is new to both sides, which take turns. A row compares the schemas that both
sides take within the time allowed. Engines that build tables for a whole vocabulary, or walk it in Python, see a part
of the sample.
"""

from __future__ import annotations

import json
import lzma
import statistics
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.results import Results, Row, Spread, ratios
from benchmarks.vocabulary import vocabulary_folder
from benchmarks.workers import PATIENCE, Worker, WorkError, running
from isogloss.tokenizers import o200k_harmony

SAMPLE = Path(__file__).parents[2] / "shared" / "data" / "maskbench-300.tar.xz"
OWN: list[dict[str, Any]] = [
    {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False},
    {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 100}, "maxItems": 20},
    {
        "type": "object",
        "properties": {
            "when": {"type": "string", "format": "date-time"},
            "code": {"type": "string", "pattern": "^[A-Z]{2}[0-9]+$"},
            "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            "size": {"oneOf": [{"type": "integer", "multipleOf": 3}, {"type": "integer", "multipleOf": 5}]},
        },
        "minProperties": 1,
    },
    {
        "type": "object",
        "properties": {f"p{n}": {"type": ["string", "null"]} for n in range(50)},
        "required": [f"p{n}" for n in range(50)],
        "additionalProperties": False,
    },
]


class Plan(NamedTuple):
    """Every how many-th schema a peer sees, how often, and the seconds that it has for one."""

    every: int
    rounds: int
    within: float


PEERS = {
    "llguidance": Plan(1, 3, 20),
    "xgrammar": Plan(3, 3, 10),
    "outlines_core": Plan(30, 2, 5),
    "lm_format_enforcer": Plan(30, 2, 8),
}
MASKS = 40
"""Tokens of a valid instance that are followed."""
FIGURES = (
    ("schema to first mask, p50", "first", 50, "ms"),
    ("schema to first mask, p99", "first", 99, "ms"),
    ("mask, p50", "masks", 50, "us"),
    ("mask, p99", "masks", 99, "us"),
)


def measure(results: Results) -> None:
    """Every peer, one after the other."""
    sample = list(schemas())
    for name, plan in PEERS.items():
        with running("isogloss", name) as (workers, missing):
            results.missing.update(missing)
            for peer in workers[1:]:
                rows, note = _rows(sample[:: plan.every], plan, workers[0], peer)
                results.rows += rows
                if not rows:
                    results.missing[name] = note


def schemas() -> Iterator[tuple[Any, list[int]]]:
    """Schemas, each with the first tokens of the compact JSON of a valid instance where there is one."""
    if not SAMPLE.exists():
        yield from ((schema, []) for schema in OWN)
        return
    encode = o200k_harmony().encode
    with lzma.open(SAMPLE) as packed, tarfile.open(fileobj=packed) as files:
        for member in files:
            data = files.extractfile(member) if member.isfile() and member.name.endswith(".json") else None
            if data is not None:
                entry = json.load(data)
                valid = [test["data"] for test in entry.get("tests", []) if test.get("valid")]
                text = json.dumps(valid[0], ensure_ascii=False, separators=(",", ":")) if valid else ""
                yield entry["schema"], encode(text)[:MASKS]


class Compared(NamedTuple):
    """Seconds by round: for each schema to its first mask, and for each mask."""

    first: list[list[float]]
    masks: list[list[float]]

    @classmethod
    def of(cls, rounds: int) -> Compared:
        return cls([[] for _ in range(rounds)], [[] for _ in range(rounds)])

    def add(self, number: int, answer: dict[str, Any], masks: int) -> None:
        self.first[number].append(answer["seconds"])
        self.masks[number] += answer["masks"][:masks]


def _rows(sample: list[tuple[Any, list[int]]], plan: Plan, ours: Worker, peer: Worker) -> tuple[list[Row], str]:
    """A row a figure, and how many schemas they are of."""
    mine, theirs = Compared.of(plan.rounds), Compared.of(plan.rounds)
    dropped: dict[int, str] = {}
    for number in range(plan.rounds):
        for side in (ours, peer):
            side.restart()  # What a side keeps of a schema that it has seen is not what is measured.
            _warm(side)
        for at, (schema, tokens) in enumerate(sample):
            if at not in dropped:
                pair = _turn(ours, peer, plan, (schema, tokens), number)
                if isinstance(pair, str):
                    dropped[at] = pair
                    continue
                masks = min(len(answer["masks"]) for answer in pair)
                mine.add(number, pair[0], masks)
                theirs.add(number, pair[1], masks)
    reasons = sorted(dropped.values())
    note = ", ".join(
        [f"{len(sample) - len(dropped)} of {len(sample)} schemas"]
        + [f"{reasons.count(reason)} {reason}" for reason in dict.fromkeys(reasons)]
    )
    rows = []
    for label, which, percent, unit in FIGURES:
        scale = 1e3 if unit == "ms" else 1e6
        figures = [
            [_quantile(values, percent) * scale for values in getattr(side, which) if len(values) > 1]
            for side in (mine, theirs)
        ]
        if not figures[0]:
            continue
        spreads = (Spread.of(figures[0]), Spread.of(figures[1]), ratios(*figures))
        row = Row("schema", label, peer.name, peer.version, unit, *spreads, note=note)
        print(f"{label}, {peer.name}: {row.ours.min} {row.theirs.min} {unit} {row.ratio} {note}", flush=True)
        rows.append(row)
    return rows, note


def _turn(
    ours: Worker, peer: Worker, plan: Plan, asked: tuple[Any, list[int]], number: int
) -> tuple[dict[str, Any], dict[str, Any]] | str:
    """Our answer and theirs, asked for in this order or the other; why there are none where a side has none."""
    schema, tokens = asked
    answers: dict[str, dict[str, Any]] = {}
    for side in (ours, peer) if number % 2 == 0 else (peer, ours):
        within = plan.within if side is peer else PATIENCE
        try:
            answer = side.ask("first_mask", within=within, schema=schema, tokens=tokens, vocabulary=vocabulary_folder())
        except WorkError:
            _warm(side)
            return f"not within {within:g} s by {side.name}"
        if "refused" in answer:
            return f"refused by {side.name}"
        answers[side.name] = answer
    return answers[ours.name], answers[peer.name]


def _warm(side: Worker) -> None:
    """Build the vocabulary, and load what is loaded at first use."""
    side.ask("first_mask", schema=OWN[0], tokens=[], vocabulary=vocabulary_folder())
    for schema in OWN[1:]:
        with suppress(WorkError):
            side.ask("first_mask", within=10, schema=schema, tokens=[], vocabulary=vocabulary_folder())


def _quantile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]
