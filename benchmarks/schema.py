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
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.results import Results, Row, Spread, ratios
from benchmarks.vocabulary import vocabulary_folder
from benchmarks.workers import Worker, WorkError, running
from isogloss.tokenizers import o200k_harmony

SAMPLE = Path(__file__).parents[2] / "shared" / "data" / "maskbench-300.tar.xz"
OWN: list[dict[str, Any]] = [
    {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False},
    {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 100}, "maxItems": 20},
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
    "outlines_core": Plan(20, 2, 3),
    "lm_format_enforcer": Plan(20, 2, 3),
}
MASKS = 40
"""Tokens of a valid instance that are followed."""
FIGURES = (("schema to first mask, p50", 50, "ms"), ("schema to first mask, p99", 99, "ms"))
MASK_FIGURES = (("mask, p50", 50, "us"), ("mask, p99", 99, "us"))


def measure(results: Results) -> None:
    """Every peer, one after the other."""
    sample = list(schemas())
    for name, plan in PEERS.items():
        with running("isogloss", name) as (workers, missing):
            results.missing.update(missing)
            for peer in workers[1:]:
                results.rows += _rows(sample[:: plan.every], plan, workers[0], peer)


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


def _rows(sample: list[tuple[Any, list[int]]], plan: Plan, ours: Worker, peer: Worker) -> Iterator[Row]:
    vocabulary = vocabulary_folder()
    warm: dict[str, Any] = {"schema": OWN[0], "tokens": [], "vocabulary": vocabulary}
    mine, theirs = (Compared([[] for _ in range(plan.rounds)], [[] for _ in range(plan.rounds)]) for _ in range(2))
    refused = late = taken = 0
    try:
        for side in (ours, peer):
            side.ask("first_mask", **warm)
    except WorkError as error:
        print(f"{peer.name} fails: {error}", flush=True)
        return
    for schema, tokens in sample:
        arguments = {"schema": schema, "tokens": tokens, "vocabulary": vocabulary}
        try:
            answers = [_turn(ours, peer, plan, arguments, number) for number in range(plan.rounds)]
        except WorkError:
            late += 1
            peer.ask("first_mask", **warm)
            continue
        if any("refused" in answer for pair in answers for answer in pair):
            refused += 1
            continue
        taken += 1
        for number, pair in enumerate(answers):
            length = min(len(answer["masks"]) for answer in pair)
            for side_figures, answer in zip((mine, theirs), pair, strict=True):
                side_figures.first[number].append(answer["seconds"])
                side_figures.masks[number] += answer["masks"][:length]
    note = f"{taken} of {len(sample)} schemas, {refused} refused" + (
        f", {late} not within {plan.within:g} s" if late else ""
    )
    for label, percent, unit in (*FIGURES, *MASK_FIGURES):
        which = "first" if (label, percent, unit) in FIGURES else "masks"
        scale = 1e3 if unit == "ms" else 1e6
        our_rounds, their_rounds = (
            [_quantile(values, percent) * scale for values in getattr(side, which) if len(values) > 1]
            for side in (mine, theirs)
        )
        if not our_rounds:
            continue
        spreads = (Spread.of(our_rounds), Spread.of(their_rounds), ratios(our_rounds, their_rounds))
        row = Row("schema", label, peer.name, peer.version, unit, *spreads, note=note)
        print(f"{label}, {peer.name}: {row.ours.min} {row.theirs.min} {unit} {row.ratio} {note}", flush=True)
        yield row


def _turn(ours: Worker, peer: Worker, plan: Plan, arguments: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Our answer and theirs, asked for in this order or the other."""
    sides = [(ours, 60.0), (peer, plan.within)]
    order = sides if number % 2 == 0 else sides[::-1]
    answers = [side.ask("first_mask", within=within, **arguments) for side, within in order]
    return answers if number % 2 == 0 else answers[::-1]


def _quantile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]
