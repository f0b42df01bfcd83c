"""Schemas: time from a JSON Schema to the first mask, and time per mask, against llguidance alone on the same schema.

The schemas are those of the MaskBench sample that llguidance takes by itself, when ``../shared/data`` is there, else a
few of our own. Nothing is cached: every schema is new to both sides, which take turns. What a process does once
(importing modules, indexing the vocabulary) is done before.
"""

from __future__ import annotations

import json
import lzma
import statistics
import tarfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from llguidance import LLMatcher

from isogloss.constraints import Constraint
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


def main(_: Sequence[str]) -> None:
    """Print the table."""
    tokenizer = o200k_harmony()
    vocabulary = tokenizer.llguidance()
    for warming in (*OWN, {"type": "object", "format": "date-time", "not": {"required": ["a"]}, "uniqueItems": True}):
        Constraint.from_json_schema(warming).matcher(tokenizer).mask()
    ours: list[float] = []
    alone: list[float] = []
    our_masks: list[float] = []
    their_masks: list[float] = []
    for schema, instance in schemas():
        theirs = _alone(schema, vocabulary)
        if theirs is None:
            continue
        start = time.process_time()
        matcher = Constraint.from_json_schema(schema).matcher(tokenizer)
        matcher.mask()
        ours.append(time.process_time() - start)
        alone.append(theirs[1])
        if instance is not None:
            _masks(matcher, theirs[0], tokenizer.encode(instance)[:100], our_masks, their_masks)
    print(f"{len(ours)} schemas that both take, o200k vocabulary, CPU")
    print("| | Isogloss p50 | p99 | llguidance alone p50 | p99 | ratio p50 | p99 |")
    print("|---|---|---|---|---|---|---|")
    _row("schema to first mask, ms", ours, alone, 1e3)
    _row("mask, us", our_masks, their_masks, 1e6)


def schemas() -> Iterator[tuple[dict[str, Any], str | None]]:
    """Schemas, each with the compact JSON of a valid instance where there is one."""
    if not SAMPLE.exists():
        yield from ((schema, None) for schema in OWN)
        return
    with lzma.open(SAMPLE) as packed, tarfile.open(fileobj=packed) as files:
        for member in files:
            data = files.extractfile(member) if member.isfile() and member.name.endswith(".json") else None
            if data is not None:
                entry = json.load(data)
                valid = [test["data"] for test in entry.get("tests", []) if test.get("valid")]
                text = json.dumps(valid[0], ensure_ascii=False, separators=(",", ":")) if valid else None
                yield entry["schema"], text


def _alone(schema: Any, vocabulary: Any) -> tuple[LLMatcher, float] | None:
    start = time.process_time()
    grammar = LLMatcher.grammar_from_json_schema(json.dumps(schema))
    matcher = LLMatcher(vocabulary, grammar, log_level=0)
    if matcher.is_error():
        return None
    matcher.compute_bitmask()
    return matcher, time.process_time() - start


def _masks(
    ours: Any, theirs: LLMatcher, tokens: Sequence[int], our_times: list[float], their_times: list[float]
) -> None:
    for token in tokens:
        start = time.process_time()
        ours.mask()
        middle = time.process_time()
        theirs.compute_bitmask()
        end = time.process_time()
        our_times.append(middle - start)
        their_times.append(end - middle)
        if not ours.accept(token) or not theirs.consume_token(token):
            return


def _row(name: str, ours: list[float], theirs: list[float], unit: float) -> None:
    if len(ours) < 2:
        return
    ours_50, ours_99 = _quantile(ours, 50) * unit, _quantile(ours, 99) * unit
    theirs_50, theirs_99 = _quantile(theirs, 50) * unit, _quantile(theirs, 99) * unit
    ratios = f"{ours_50 / theirs_50:.2f} | {ours_99 / theirs_99:.2f}"
    print(f"| {name} | {ours_50:.2f} | {ours_99:.2f} | {theirs_50:.2f} | {theirs_99:.2f} | {ratios} |")


def _quantile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]
