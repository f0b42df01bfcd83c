"""Servers in processes of their own, on loopback, for as long as a block runs."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx

from benchmarks.environments import UnavailableError
from benchmarks.workers import ENVIRONMENT

STARTS_WITHIN = 180.0


class Process(NamedTuple):
    """A server that is up."""

    url: str
    pid: int

    def cpu_seconds(self) -> float:
        """What it has used so far, its children included, to the nanosecond."""
        return sum(_cpu_seconds(pid) for pid in (self.pid, *_children(self.pid)))


def _cpu_seconds(pid: int) -> float:
    """The process's own clock, whose number Linux makes of its id; ``/proc`` counts in hundredths of a second."""
    try:
        return time.clock_gettime(~pid << 3 | 2)
    except OSError:  # it has ended
        return 0.0


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text("utf-8").rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            found += [int(stat.parent.name), *_children(int(stat.parent.name))]
    return found


@contextmanager
def serving(
    command: Sequence[str], url: str, ready: str = "/health", variables: Mapping[str, str] | None = None
) -> Iterator[Process]:
    """The server that a command starts, once ``ready`` answers.

    Raises:
        UnavailableError: it ended, or did not answer in time.
    """
    environment = {**os.environ, **ENVIRONMENT, **(variables or {})}
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            give_up = time.monotonic() + STARTS_WITHIN
            while not _answers(url + ready):
                if process.poll() is not None or time.monotonic() > give_up:
                    log.seek(0)
                    lines = log.read().decode(errors="replace").strip().splitlines() or ["no message"]
                    raise UnavailableError(f"did not start: {lines[-1]}")
                time.sleep(0.2)
            yield Process(url, process.pid)
        finally:
            process.terminate()
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5, headers={"Authorization": "Bearer none"}).status_code == 200
    except httpx.TransportError:
        return False
