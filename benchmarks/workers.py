"""Workers: one process a side, in its own environment, that runs what it is asked and answers with CPU seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, Queue
from threading import Thread
from typing import Any

from benchmarks.environments import DISTRIBUTIONS, PEERS, UnavailableError, command

ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "OMP_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
}
PATIENCE = 300.0
"""Seconds that an answer may take, the start of the process included: vLLM imports for half a minute."""


class WorkError(Exception):
    """A peer could not do a work, and why."""


class Worker:
    """A side, running. ``name`` is a folder of ``peers/``, ``argv`` what its worker is told."""

    def __init__(self, name: str, *argv: str) -> None:
        """Install and start it.

        Raises:
            UnavailableError: it cannot be installed, or does not start.
        """
        self.name = name
        self._command = [*command(name), *argv]
        self._start()
        try:
            self.version: str = self.ask("version", distribution_name=DISTRIBUTIONS[name])["version"]
        except WorkError as error:
            self.stop()
            raise UnavailableError(str(error)) from None

    def ask(self, work: str, *, within: float = PATIENCE, **arguments: Any) -> dict[str, Any]:
        """What the worker answers.

        Raises:
            WorkError: it failed, ended, or took longer than ``within`` seconds; a new process takes its place.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"work": work, **arguments}) + "\n")
            self._process.stdin.flush()
            line = self._lines.get(timeout=within)
        except (Empty, OSError) as error:
            self.restart()
            why = f"more than {within:g} s" if isinstance(error, Empty) else "ended before"
            raise WorkError(f"{work}: {why}") from None
        if not line:
            self.stop()
            last = self._errors[-1] if self._errors else "no message"
            self._start()
            raise WorkError(f"{work}: the process ended: {last}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise WorkError(f"{work}: {answer['error']}")
        return answer

    def restart(self) -> None:
        """A new process in its place."""
        self.stop()
        self._start()

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()

    def _start(self) -> None:
        environment = {**os.environ, **ENVIRONMENT}
        environment.pop("PYTHONPATH", None)
        if self.name == "isogloss":
            environment["PYTHONPATH"] = str(PEERS.parents[1])
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            self._command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, encoding="utf-8", errors="replace"
        )
        self._lines: Queue[str] = Queue()
        self._errors: list[str] = []
        Thread(target=_read, args=(self._process, self._lines), daemon=True).start()
        Thread(target=_keep, args=(self._process, self._errors), daemon=True).start()


def _read(process: subprocess.Popen[str], lines: Queue[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put("")


def _keep(process: subprocess.Popen[str], errors: list[str]) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if line.strip():
            errors.append(line.strip())
            del errors[:-20]


@contextmanager
def running(*names: str, argv: tuple[str, ...] = ()) -> Iterator[tuple[list[Worker], dict[str, str]]]:
    """Workers of the peers that can be had, and why each of the others cannot."""
    workers: list[Worker] = []
    missing: dict[str, str] = {}
    for name in names:
        try:
            workers.append(Worker(name, *argv))
        except UnavailableError as error:
            missing[name] = str(error)
            print(f"{name} is not compared: {error}", file=sys.stderr, flush=True)
    try:
        yield workers, missing
    finally:
        for worker in workers:
            worker.stop()
