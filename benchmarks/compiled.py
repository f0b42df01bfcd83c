"""The wheel with compiled scanners: scanning as in `benchmarks.scan`, beside the sources and the fastest peer."""

from __future__ import annotations

from benchmarks.results import Results
from benchmarks.scan import rows
from benchmarks.workers import running
from isogloss.dialects import dialect_names, get_dialect

FASTEST = "oh_my_pi"


def measure(results: Results) -> None:
    """Every dialect beside the sources, and those that the peer reads beside it."""
    with running("isogloss_compiled", FASTEST, "isogloss") as (workers, missing):
        results.missing.update(missing)
        if "isogloss_compiled" in missing:
            return
        compiled, *others = workers
        for worker in others:
            reads = worker.ask("dialects")["dialects"] if worker.name == FASTEST else dialect_names()
            for name in dialect_names():
                if name in reads:
                    results.rows += rows("compiled", get_dialect(name), compiled, worker)
