"""The tables of ``README.md``, between its markers ``<!-- SUBJECT -->`` and ``<!-- /SUBJECT -->``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.environments import DISTRIBUTIONS
from benchmarks.results import Results, Row, Spread

README = Path(__file__).with_name("README.md")
QUADRATIC = 2.0
"""A second half that costs so many times the first is no longer linear with noise."""


def write(results: Results) -> None:
    """Put the tables into the file."""
    text = README.read_text("utf-8")
    for name, lines in tables(results).items():
        block = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        table = "\n".join(lines)
        text = block.sub(lambda found, table=table: f"{found[1]}\n{table}\n\n{found[2]}", text)  # type: ignore[misc]
    README.write_text(text, encoding="utf-8")


def tables(results: Results) -> dict[str, list[str]]:
    """Lines of Markdown by the name of their marker."""
    made = {name: list(_rows(results.of(name))) for name in ("harmony", "render", "schema", "server")}
    made["scan"] = list(_scan(results.of("scan")))
    made["compiled"] = list(_scan(results.of("compiled")))
    made["render-alone"] = list(_alone(results.alone.get("render", ())))
    made["server-alone"] = list(_alone(results.alone.get("server", ())))
    made["server-first-token"] = list(_alone(results.alone.get("server-first-token", ())))
    made["peers"] = list(_peers(results))
    return made


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _rows(rows: Sequence[Row]) -> Iterator[str]:
    heads = ("work", "peer", "unit", "Isogloss", "peer's", "times as fast", "note")
    cells = [
        (row.case, row.peer, row.unit, _figure(row.ours.min), _figure(row.theirs.min), _spread(row.ratio), row.note)
        for row in rows
    ]
    return _table(heads, cells)


def _scan(rows: Sequence[Row]) -> Iterator[str]:
    """A table a peer: a row a dialect, both sizes in it."""
    heads = (
        "dialect",
        "Isogloss 20 KB",
        "200 KB",
        "peer's 20 KB",
        "200 KB",
        "times as fast 20 KB",
        "200 KB",
        "shape",
        "",
    )
    for peer in dict.fromkeys(row.peer for row in rows):
        found = {row.case: row for row in rows if row.peer == peer}
        yield f"Against {peer} {next(iter(found.values())).version}:"
        yield ""
        yield from _table(heads, _scan_rows(found))
        yield ""


def _scan_rows(found: dict[str, Row]) -> Iterator[Sequence[str]]:
    for dialect in dict.fromkeys(case.split(",")[0] for case in found):
        pair = [found[f"{dialect}, {size}"] for size in ("20 KB", "200 KB") if f"{dialect}, {size}" in found]
        if len(pair) == 2:
            small, large = pair
            yield (
                dialect,
                *(_figure(row.ours.min) for row in pair),
                *(("> " if row.stopped else "") + _figure(row.theirs.min) for row in pair),
                *(("> " if row.stopped else "") + _spread(row.ratio) for row in pair),
                shape(small, large),
                large.note,
            )


def shape(small: Row, large: Row) -> str:
    """Whether a peer's time is linear: from ten times the input where it got through, else from its halves."""
    if small.stopped is None and large.stopped is None:
        return "quadratic" if large.theirs.min / small.theirs.min > 3 else "linear"
    grows = max(large.growth or 1.0, small.growth or 1.0)
    return "quadratic" if grows > QUADRATIC else "not linear" if grows > 1.4 else "linear"


def _alone(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    cells = [[f"{value:,}" if isinstance(value, int) else str(value) for value in row.values()] for row in rows]
    return _table(tuple(rows[0]) if rows else (), cells)


def _peers(results: Results) -> Iterator[str]:
    versions = {row.peer: row.version for row in results.rows}
    rows = [(name, DISTRIBUTIONS.get(name, "xllamacpp"), version) for name, version in sorted(versions.items())]
    rows += [(name, DISTRIBUTIONS.get(name, ""), f"not compared: {why}") for name, why in results.missing.items()]
    return _table(("peer", "package", "release"), rows)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _spread(spread: Spread) -> str:
    return f"**{_figure(spread.median)}** ({_figure(spread.min)} to {_figure(spread.max)})"
