"""Floods: what a 4-character delta costs every dialect at its worst: `python -m benchmarks floods [DIALECT ...]`, and
with ``--compiled`` from a wheel with compiled scanners.

One argument of up to 2 MB, text, reasoning, and outputs that are all markers or headers that never end. No peer has a
part in it, and it takes minutes, so it is no subject of `python -m benchmarks`.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence

from benchmarks.environments import command
from benchmarks.scan import STEP, TOOL, code, output
from isogloss.dialects import Dialect, dialect_names, get_dialect
from isogloss.errors import UnrepresentableError
from isogloss.messages import ToolCall

SIZES = (20_000, 200_000, 2_000_000)
SMALL, LARGE = 20_000, 200_000
HEADINGS = ("20 KB arg", "200 KB arg", "2 MB arg", "text", "reasoning", "worst flood 20 KB", "worst flood 200 KB")


def per_delta(dialect: Dialect, said: str, *, repeats: int = 3) -> float:
    """Microseconds of CPU a delta, the best of ``repeats`` runs."""
    pieces = [said[at : at + STEP] for at in range(0, len(said), STEP)]
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


def flood(dialect: Dialect, size: int) -> list[str]:
    """Outputs that are all markers, and headers that never end."""
    markers = dialect.markers.all
    opener = dialect.render_calls([ToolCall("", TOOL.name, {"path": "a"})], [TOOL])
    headers = [opener[:place] + "a" * size for place in range(1, len(opener), max(1, len(opener) // 12))]
    return [*((marker * (size // len(marker) + 1))[:size] for marker in (*markers, "<", "{", '"', "\n", "`")), *headers]


def row(name: str) -> list[float]:
    """The figures of one dialect."""
    dialect = get_dialect(name)
    sizes = [per_delta(dialect, output(dialect, size)) for size in SIZES]
    try:
        reasoning = per_delta(dialect, dialect.render_reasoning(code(LARGE)))
    except UnrepresentableError:
        reasoning = float("nan")
    floods = [max(per_delta(dialect, said, repeats=2) for said in flood(dialect, size)) for size in (SMALL, LARGE)]
    return [*sizes, per_delta(dialect, code(LARGE)), reasoning, *floods]


def main(names: Sequence[str]) -> None:
    """Print the table."""
    if "--compiled" in names:
        python = command("isogloss_compiled")[:-1]
        subprocess.run(
            [*python, "-m", "benchmarks", "floods", *(name for name in names if name != "--compiled")], check=True
        )
        return
    print(f"| dialect | {' | '.join(HEADINGS)} |")
    print(f"|---|{'---|' * len(HEADINGS)}")
    for name in names or dialect_names():
        print(f"| {name} | {' | '.join(f'{figure:.2f}' for figure in row(name))} |", flush=True)
