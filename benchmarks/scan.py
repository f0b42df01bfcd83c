"""Scanning: CPU time per 4-character delta, per dialect, for two sizes of one argument, text, reasoning and floods.

`python -m benchmarks scan [DIALECT ...]` prints a table; the ratio of the two sizes shows that time is linear.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from isogloss.dialects import Dialect, dialect_names, get_dialect
from isogloss.errors import UnrepresentableError
from isogloss.messages import Tool, ToolCall

STRING = {"type": "string"}
TOOL = Tool("write_file", "", {"type": "object", "properties": {"path": STRING, "content": STRING}})
CODE = 'def f(x):\n    return "<b>" + x & 3  # é\n'
SIZES = (20_000, 200_000, 2_000_000)


def code(size: int) -> str:
    """Text like source code, with quotes, line breaks, angle brackets and an accent."""
    return (CODE * (size // len(CODE) + 1))[:size]


def per_delta(dialect: Dialect, output: str, *, step: int = 4, repeats: int = 3) -> float:
    """Microseconds of CPU a delta, the best of ``repeats`` runs."""
    pieces = [output[at : at + step] for at in range(0, len(output), step)]
    best = float("inf")
    for _ in range(repeats):
        scanner = dialect.scanner([TOOL])
        feed = scanner.feed
        start = time.process_time()
        for piece in pieces:
            feed(piece)
        scanner.finish()
        best = min(best, time.process_time() - start)
    return best / len(pieces) * 1e6


def argument(dialect: Dialect, size: int) -> str:
    """One call with one string argument of that size."""
    call = ToolCall("", TOOL.name, {"path": "a.py", "content": code(size)})
    return dialect.render_calls([call], [TOOL])


def flood(dialect: Dialect, size: int) -> list[str]:
    """Outputs that are all markers, and headers that never end."""
    markers = dialect.markers.all
    opener = dialect.render_calls([ToolCall("", TOOL.name, {"path": "a"})], [TOOL])
    headers = [opener[:place] + "a" * size for place in range(1, len(opener), max(1, len(opener) // 12))]
    return [*((marker * (size // len(marker) + 1))[:size] for marker in (*markers, "<", "{", '"', "\n", "`")), *headers]


def row(name: str) -> list[float]:
    """The figures of one dialect."""
    dialect = get_dialect(name)
    sizes = [per_delta(dialect, argument(dialect, size)) for size in SIZES]
    small, large = 20_000, 200_000
    try:
        reasoning = per_delta(dialect, dialect.render_reasoning(code(large)))
    except UnrepresentableError:
        reasoning = float("nan")
    worst_small = max(per_delta(dialect, output, repeats=2) for output in flood(dialect, small))
    worst_large = max(per_delta(dialect, output, repeats=2) for output in flood(dialect, large))
    return [*sizes, per_delta(dialect, code(large)), reasoning, worst_small, worst_large]


HEADINGS = ("20 KB arg", "200 KB arg", "2 MB arg", "text", "reasoning", "worst flood 20 KB", "worst flood 200 KB")


def main(names: Sequence[str]) -> None:
    """Print the table."""
    print("microseconds of CPU per 4-character delta")
    print(f"| dialect | {' | '.join(HEADINGS)} |")
    print(f"|---|{'---|' * len(HEADINGS)}")
    for name in names or dialect_names():
        print(f"| {name} | {' | '.join(f'{figure:.2f}' for figure in row(name))} |", flush=True)
