"""llama.cpp's own server in a child process: started, watched, restarted when it dies, stopped."""

from __future__ import annotations

import contextlib
import math
import os
import re
import secrets
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable
from importlib.util import find_spec
from threading import Condition, Thread
from typing import Any

import msgspec

from isogloss.errors import EngineUnavailableError

_STABLE_AFTER = 10.0
"""Seconds. A server that lived so long before it died is started again at once, and so is one that died once only."""
_LONGEST_DELAY = 30.0
_STOP_WITHIN = 5.0
_DIE_WITHIN = 3.0
"""Seconds between the breaking of its connections and the end of a process that dies."""
_TOLD_LINES = 6
_LOG_PREFIX = re.compile(r"^[\d.]+ [A-Z] +")


class LlamaServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the server is run."""

    model: str
    """Path of a GGUF file."""
    context_length: int = 4096
    """Tokens of prompt and answer together, for each request; more than the model was trained on is not used."""
    parallel: int = 4
    """Requests that are worked on at once; memory for context is set aside for each. Others wait their turn."""
    threads: int = msgspec.field(default_factory=lambda: idle_cores())
    """More threads than idle cores make it many times slower, because they spin while they wait for each other."""
    gpu_layers: int | None = None
    """How many layers a GPU computes; ``None`` leaves it to llama.cpp: all that fit."""
    prompt_cache_mib: int = 512
    """Main memory for the state of conversations that are not being worked on."""

    def told(self, context_length: int | None) -> dict[str, Any]:
        """What is worth telling, with the context that the model really has."""
        layers = "as many as fit" if self.gpu_layers is None else self.gpu_layers
        length = context_length or self.context_length
        return {"context_length": length, "parallel": self.parallel, "threads": self.threads, "gpu_layers": layers}


def idle_cores() -> int:
    """Cores that this process may use and that nobody is using now; at least 1."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return max(1, cores - math.ceil(load - 0.5))


class LlamaServer:
    """The supervised process. Methods may be called from any thread; `start` and `address` block."""

    def __init__(self, options: LlamaServerOptions, *, start_within: float = 600.0) -> None:
        self.options = options
        self.api_key = secrets.token_urlsafe(24)
        """Keeps other users of the machine, and web pages in its browsers, out of the server."""
        self._start_within = start_within
        self._changed = Condition()
        self._child: subprocess.Popen[bytes] | None = None
        self._log: deque[str] = deque(maxlen=40)
        self._url: str | None = None
        self._is_starting = False
        self._is_stopping = False
        self._reason = "it has not been started"
        self._retry = ""
        self._last_death = ("", "")
        """Where the server was, and how it died."""
        self._supervisor: Thread | None = None

    @property
    def pid(self) -> int | None:
        """The process id, while there is one."""
        child = self._child
        return child.pid if child is not None and child.poll() is None else None

    def start(self) -> None:
        """Bring the server up. Raises `EngineUnavailableError` with the reason when it does not come up."""
        if find_spec("xllamacpp") is None:
            raise EngineUnavailableError("The embedded engine needs xllamacpp: pip install 'isogloss[llamacpp]'")
        with self._changed:
            if self._supervisor is None:
                self._is_stopping, self._is_starting = False, True
                self._supervisor = Thread(target=self._supervise, name="llama-server-supervisor", daemon=True)
                self._supervisor.start()
        try:
            self.address()
        except EngineUnavailableError:
            reason = self._reason
            self.stop()
            raise EngineUnavailableError(f"llama.cpp's server did not start: {reason}") from None

    def address(self) -> str:
        """The server's URL; waits while it is starting. Raises `EngineUnavailableError` with the reason otherwise."""
        with self._changed:
            if not self._changed.wait_for(self._is_settled, self._start_within):
                self._reason = f"it was not up within {self._start_within:g} seconds"
                raise EngineUnavailableError(f"llama.cpp's server is not running: {self._reason}")
            if self._url is None:
                raise EngineUnavailableError(f"llama.cpp's server is not running: {self._reason}{self._retry}")
            return self._url

    def why_lost(self, url: str) -> str:
        """How the server that was at ``url`` died; nothing if it did not. Waits for a death that is under way."""
        with self._changed:
            self._changed.wait_for(lambda: self._last_death[0] == url, _DIE_WITHIN)
            died_at, cause = self._last_death
            return cause if died_at == url else ""

    def stop(self) -> None:
        """Stop the server and its supervision."""
        with self._changed:
            supervisor, self._supervisor = self._supervisor, None
            self._is_stopping = True
            self._changed.notify_all()
        if self._child is not None:
            _end(self._child)
        if supervisor is not None:
            supervisor.join()
        self._settle(None, "it has been stopped")

    def _is_settled(self) -> bool:
        """Whether it is known to be up or down; a dead child that the supervisor has not buried yet is neither."""
        return not self._is_starting and (self._url is None or self.pid is not None)

    def _supervise(self) -> None:
        quick_deaths = 0
        while True:
            with self._changed:
                if self._is_stopping:
                    return
                self._url, self._is_starting = None, True
                child, cause = self._spawned()
            began = time.monotonic()
            url = ""
            if child is not None:
                url = self._watch(child)
                cause = self._cause(child.returncode)
            with self._changed:
                self._last_death = url, cause
                self._changed.notify_all()
            quick_deaths = 0 if time.monotonic() - began > _STABLE_AFTER else quick_deaths + 1
            if url and quick_deaths <= 1:
                continue
            delay = min(2.0 ** (quick_deaths - 2), _LONGEST_DELAY)
            self._settle(None, cause, f"; trying again in {delay:g} seconds")
            with self._changed:
                self._changed.wait_for(lambda: self._is_stopping, delay)

    def _spawned(self) -> tuple[subprocess.Popen[bytes] | None, str]:
        """The new process, or why there is none."""
        try:
            self._child = self._spawn()
        except OSError as error:
            return None, f"no process could be started: {error}"
        return self._child, ""

    def _watch(self, child: subprocess.Popen[bytes]) -> str:
        """Accompany one process to its end. Returns where it was, nothing if it never came up."""
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        log = Thread(target=self._read_log, args=(child.stderr,), name="llama-server-log", daemon=True)
        log.start()
        options = {**msgspec.to_builtins(self.options), "api_key": self.api_key}
        with contextlib.suppress(BrokenPipeError, ValueError):  # it died at once, or is being stopped
            child.stdin.write(msgspec.json.encode(options) + b"\n")
            child.stdin.flush()
        url = child.stdout.readline().decode().strip()
        if url:
            self._settle(url, "")
        child.wait()
        log.join()
        child.stdout.close()
        child.stderr.close()
        with contextlib.suppress(BrokenPipeError):
            child.stdin.close()
        return url

    def _settle(self, url: str | None, reason: str, retry: str = "") -> None:
        with self._changed:
            self._url, self._reason, self._retry, self._is_starting = url, reason, retry, False
            self._changed.notify_all()

    def _spawn(self) -> subprocess.Popen[bytes]:
        self._log.clear()
        return subprocess.Popen(
            [sys.executable, "-m", "isogloss.engines._llama_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": str(self.options.threads)},
        )

    def _read_log(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            self._log.append(line.decode("utf-8", "replace").rstrip())

    def _cause(self, code: int) -> str:
        cause = f"it was killed by signal {-code}" if code < 0 else f"it ended with status {code}"
        lines = [_LOG_PREFIX.sub("", line) for line in self._log if line.strip()]
        return f"{cause}: {' | '.join(lines[-_TOLD_LINES:])}" if lines else cause


def _end(child: subprocess.Popen[bytes]) -> None:
    assert child.stdin is not None
    if child.poll() is None:
        with contextlib.suppress(BrokenPipeError):
            child.stdin.close()
        try:
            child.wait(_STOP_WITHIN)
        except subprocess.TimeoutExpired:
            child.kill()
