"""`python -m benchmarks [SUBJECT ...] [--update]`: compare Isogloss with its peers, and with the committed baseline.

Every subject without names. `python -m benchmarks conformance` and `floods` stand alone, with arguments of their own. A
ratio to a peer that got worse than the spread explains ends it with status 1. With
``--update`` the run becomes the baseline: ``results.json``, ``results.svg`` and the tables of ``README.md``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from importlib import import_module

from benchmarks import report
from benchmarks.environments import PEERS, UnavailableError, interpreter
from benchmarks.results import BASELINE, Results, compared, merged, regressions

SUBJECTS = ("harmony", "scan", "compiled", "render", "schema", "server")
ALONE = ("conformance", "floods")


def main() -> None:
    if sys.argv[1:2] and sys.argv[1] in ALONE:
        import_module(f"benchmarks.{sys.argv[1]}").main(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=", ".join(SUBJECTS))
    parser.add_argument("--update", action="store_true", help="make this run the baseline")
    options = parser.parse_args()
    subjects = options.subjects or SUBJECTS
    if unknown := set(subjects) - set(SUBJECTS):
        parser.error(f"no such subject: {', '.join(sorted(unknown))}")
    baseline, run = Results.read(), Results.new()
    for number, subject in enumerate(subjects, 1):
        start = time.monotonic()
        print(f"\n# {subject}\n", flush=True)
        import_module(f"benchmarks.{subject}").measure(run)
        print(f"\n{subject}: {time.monotonic() - start:.0f} s", flush=True)
        if options.update:
            merged(baseline, run, subjects[:number]).write()
    problems = told(run, baseline)
    if options.update:
        report.write(merged(baseline, run, subjects))
        draw()
    sys.exit(1 if problems and not options.update else 0)


def told(run: Results, baseline: Results | None) -> list[str]:
    """What a reader of the run should know; the problems among it."""
    print()
    for name, why in run.missing.items():
        print(f"NOT COMPARED with {name}: {why}")
    if baseline is None:
        print("There is no baseline yet: --update makes this run the first")
        return []
    count = compared(run, baseline)
    problems = regressions(run, baseline) if count else ["No ratio of this run is in the baseline"]
    print(f"{count} ratios are in the baseline too, {len(problems)} got worse")
    for problem in problems:
        print(f"WORSE: {problem}")
    return problems


def draw() -> None:
    """The plot of the baseline, by matplotlib in an environment of its own."""
    try:
        python = interpreter("matplotlib")
    except UnavailableError as error:
        print(f"No plot: {error}")
        return
    script, image = PEERS / "matplotlib" / "draw.py", BASELINE.with_suffix(".svg")
    subprocess.run([str(python), str(script), str(BASELINE), str(image)], check=True)


if __name__ == "__main__":
    main()
