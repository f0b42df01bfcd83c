"""What every worker in Python shares: it answers requests, a line of JSON each, and measures CPU time.

A request names a work and its arguments; a work returns what the answer holds, ``seconds`` among it. Standard library
only: a worker runs in its peer's environment.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from time import process_time
from typing import Any

Work = Callable[..., dict[str, Any]]
BATCH = 32
"""Deltas between two looks at the clock."""


def serve(works: Mapping[str, Work]) -> None:
    """Answer until the input ends. What a peer prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        work = request.pop("work")
        try:
            answer = {"version": version(**request)} if work == "version" else works[work](**request)
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), file=answers, flush=True)


def timed(run: Callable[[], object], times: int = 1) -> dict[str, Any]:
    """CPU seconds of ``times`` runs."""
    gc.collect()
    start = process_time()
    for _ in range(times):
        run()
    return {"seconds": process_time() - start}


def streamed(feed: Callable[[str], object], pieces: list[str], limit: float) -> dict[str, Any]:
    """Feed the pieces until ``limit`` CPU seconds are over.

    ``fed`` is how many were fed, ``growth`` the time of the second half of them over that of the first: 1 where time is
    linear, 3 where it is quadratic.
    """
    gc.collect()
    marks = [0.0]
    start = process_time()
    for at in range(0, len(pieces), BATCH):
        for piece in pieces[at : at + BATCH]:
            feed(piece)
        marks.append(process_time() - start)
        if marks[-1] > limit:
            break
    return summed(marks, len(pieces))


def summed(marks: list[float], count: int) -> dict[str, Any]:
    """The answer of a stream from the time after each batch."""
    middle = marks[(len(marks) - 1) // 2]
    growth = (marks[-1] - middle) / middle if middle > 0 else 1.0
    return {"seconds": marks[-1], "fed": min(count, (len(marks) - 1) * BATCH), "growth": growth}


def as_json(text: Iterable[str]) -> Any:
    """Arguments from the JSON text that a parser streamed, or the text itself where it is none."""
    joined = "".join(text)
    try:
        return json.loads(joined)
    except ValueError:
        return joined
