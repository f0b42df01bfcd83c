"""The gate of the benchmarks: what counts as a ratio that got worse."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest


def loaded(path: Path) -> ModuleType:
    """A module by its file: the benchmarks are no package of the project."""
    specification = spec_from_file_location(f"benchmark_{path.stem}", path)
    assert specification is not None
    assert specification.loader is not None
    module = module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module


results = loaded(Path(__file__).parents[1] / "benchmarks" / "results.py")


def run(*ratios: float, version: str = "1.0", stopped: float | None = None) -> object:
    """A run of one row, with the ratios of its rounds."""
    one = results.Spread.of([1.0])
    row = results.Row("scan", "hermes", "peer", version, "us", one, one, results.Spread.of(ratios), stopped)
    return results.Results("a machine", [row])


@pytest.mark.parametrize(
    ("before", "after", "is_worse"),
    [
        (run(8.0, 9.0, 10.0), run(3.0, 4.0, 5.0), True),
        (run(8.0, 9.0, 10.0), run(6.0, 6.5, 6.7), True),
        (run(8.0, 9.0, 10.0), run(6.0, 6.5, 7.0), False),  # within the slack
        (run(8.0, 9.0, 10.0), run(4.0, 5.0, 8.0), False),  # the spreads meet
        (run(3.0, 9.0, 10.0), run(3.0, 4.0, 5.0), False),
        (run(8.0, 9.0, 10.0), run(20.0, 21.0, 22.0), False),
        (run(8.0, 9.0, 10.0), run(3.0, 4.0, 5.0, version="2.0"), False),
        (run(8.0, 9.0, 10.0, stopped=0.5), run(3.0, 4.0, 5.0, stopped=0.5), False),
    ],
)
def test_what_got_worse(before: object, after: object, is_worse: bool) -> None:
    assert bool(results.regressions(after, before)) == is_worse


def test_a_run_replaces_the_rows_of_its_subjects() -> None:
    merged = results.merged(run(8.0, 9.0), run(3.0, 4.0), ["scan"])
    assert [row.ratio.max for row in merged.rows] == [4.0]
    assert [row.ratio.max for row in results.merged(merged, results.Results("m"), ["render"]).rows] == [4.0]
    assert results.merged(None, merged, ["scan"]) is merged


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    written = run(8.0, 9.0, 10.0, stopped=0.25)
    written.write(tmp_path / "results.json")
    assert results.Results.read(tmp_path / "results.json") == written
    assert results.Results.read(tmp_path / "none.json") is None
