"""Scanning: CPU time per 4-character delta, per dialect, against the parsers of other projects, on the same deltas.

One call with one string argument of source code. A control token of the dialect is a delta of its own, as engines
deliver it. A peer whose result for a short argument is not the arguments is told so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from benchmarks.results import Results, Row, Spread, in_turns, ratios
from benchmarks.workers import Worker, WorkError, running
from isogloss.dialects import Dialect, dialect_names, get_dialect
from isogloss.messages import Tool, ToolCall

PEERS = ("oh_my_pi", "vllm", "sglang")
STRING = {"type": "string"}
TOOL = Tool("write_file", "", {"type": "object", "properties": {"path": STRING, "content": STRING}})
OPENAI = [{"type": "function", "function": {"name": TOOL.name, "description": "", "parameters": TOOL.parameters}}]
CODE = 'def f(x):\n    return "<b>" + x & 3  # é\n'
SIZES = ((20_000, "20 KB", 3), (200_000, "200 KB", 3))
"""Characters of the argument, the case's name, rounds."""
STEP = 4
LIMIT = 1.0
"""CPU seconds after which a run is stopped."""


def code(size: int) -> str:
    """Text like source code, with quotes, line breaks, angle brackets and an accent."""
    return (CODE * (size // len(CODE) + 1))[:size]


def output(dialect: Dialect, size: int) -> str:
    """One call with one string argument of that size."""
    call = ToolCall("call_1", TOOL.name, {"path": "a.py", "content": code(size)})
    return dialect.render_calls([call], [TOOL])


def pieces(dialect: Dialect, text: str) -> list[str]:
    """The text in 4-character deltas, each control token in one."""
    tokens = sorted(dialect.markers.special, key=len, reverse=True)
    parts = re.split("(" + "|".join(map(re.escape, tokens)) + ")", text) if tokens else [text]
    return [
        piece
        for part in parts
        if part
        for piece in ([part] if part in tokens else (part[at : at + STEP] for at in range(0, len(part), STEP)))
    ]


def measure(results: Results) -> None:
    """Every dialect that some peer reads."""
    with running("isogloss", *PEERS) as (workers, missing):
        results.missing.update(missing)
        ours = workers[0]
        reads = {worker.name: worker.ask("dialects")["dialects"] for worker in workers[1:]}
        for name in dialect_names():
            for worker in workers[1:]:
                if name in reads[worker.name]:
                    results.rows += rows("scan", get_dialect(name), ours, worker)


def rows(subject: str, dialect: Dialect, ours: Worker, worker: Worker) -> Iterator[Row]:
    """Both sizes of one dialect; nothing of one where the peer fails."""
    note = _note(dialect, worker)
    for size, label, rounds in SIZES:
        arguments = _arguments(dialect, size)
        answers: list[dict[str, Any]] = []

        def run(side: Worker, arguments: dict[str, Any], answers: list[dict[str, Any]]) -> float:
            answer = side.ask("scan", limit=LIMIT, **arguments)
            if side is not ours:
                answers.append(answer)
            return float(answer["seconds"]) / int(answer["fed"]) * 1e6

        sides = {side.name: lambda s=side, a=arguments, n=answers: run(s, a, n) for side in (ours, worker)}
        try:
            figures = in_turns(sides, rounds)
        except WorkError as error:
            print(f"| {dialect.name} | {label} | {worker.name} failed: {error} |", flush=True)
            return
        count = len(arguments["pieces"])
        fed = min(answer["fed"] for answer in answers)
        row = Row(
            subject,
            f"{dialect.name}, {label}",
            worker.name,
            worker.version,
            "us/delta",
            Spread.of(figures[ours.name]),
            Spread.of(figures[worker.name]),
            ratios(figures[ours.name], figures[worker.name]),
            stopped=round(fed / count, 3) if fed < count else None,
            growth=round(min(answer["growth"] for answer in answers), 2),
            note=note,
        )
        print(f"{row.case}, {row.peer}: {row.ours.min:.2f} {row.theirs.min:.2f} us, {row.ratio}", flush=True)
        yield row


def _arguments(dialect: Dialect, size: int) -> dict[str, Any]:
    return {
        "dialect": dialect.name,
        "tools": OPENAI,
        "markers": sorted(dialect.markers.special),
        "pieces": pieces(dialect, output(dialect, size)),
    }


def _note(dialect: Dialect, worker: Worker) -> str:
    """What a peer makes of a short call, where that is not its arguments, or not as they come."""
    try:
        answer = worker.ask("arguments", **_arguments(dialect, 2_000))
    except WorkError as error:
        return f"fails: {error}"
    few = "arguments in few pieces" if answer["deltas"] < 20 else ""
    return difference(answer["arguments"], 2_000) or few


def difference(found: Any, size: int) -> str:
    """What is wrong with the arguments that a peer found; nothing where they are right."""
    content = code(size)
    if found == {"path": "a.py", "content": content}:
        return ""
    is_stripped = isinstance(found, dict) and str(found.get("content")).strip() == content.strip()
    return "value stripped of white space" if is_stripped else "wrong arguments"
