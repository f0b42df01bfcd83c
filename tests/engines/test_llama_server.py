"""The embedded server's life: how it starts, dies, comes back and ends."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from importlib.util import find_spec
from pathlib import Path

import pytest

import isogloss.engines._llama_server as llama_server
from isogloss.engines import Chunk, GenerationRequest, Sampling
from isogloss.engines._llama_server import LlamaServer, LlamaServerOptions, idle_cores
from isogloss.engines._model_file import model_file
from isogloss.engines.llamacpp import LlamaCppEngine
from isogloss.errors import EngineCapabilityError, EngineUnavailableError

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.engine,
    pytest.mark.skipif(find_spec("xllamacpp") is None, reason="xllamacpp is not installed"),
]

needs_pidfd = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for processes as Linux lets it")
REQUEST = GenerationRequest(prompt="One, two, three,", sampling=Sampling(temperature=0.0, max_tokens=4))
ENDLESS = GenerationRequest(prompt="One, two, three,", options={"ignore_eos": True})


@pytest.fixture
async def engine(demo_model_path: Path) -> AsyncIterator[LlamaCppEngine]:
    engine = LlamaCppEngine(demo_model_path, context_length=512, parallel=1, threads=1)
    await engine.start()
    yield engine
    await engine.close()


async def answer(engine: LlamaCppEngine) -> str:
    async with aclosing(engine.generate(REQUEST)) as chunks:
        return "".join([piece.text async for chunk in chunks for piece in chunk.pieces])


def kill(engine: LlamaCppEngine) -> int:
    pid = engine.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    return pid


async def test_killed_in_mid_stream_it_says_why_and_comes_back(engine: LlamaCppEngine) -> None:
    before = await answer(engine)
    got: list[Chunk] = []

    async def listen() -> None:
        async with aclosing(engine.generate(ENDLESS)) as chunks:
            async for chunk in chunks:
                if not got:
                    kill(engine)
                got.append(chunk)

    with pytest.raises(EngineUnavailableError, match="killed by signal 9"):
        await listen()
    assert got
    assert await answer(engine) == before
    await engine.health()


@needs_pidfd
async def test_killed_between_requests_nobody_notices(engine: LlamaCppEngine) -> None:
    before = await answer(engine)
    pid = kill(engine)
    wait_for_death(pid)
    assert await answer(engine) == before
    assert engine.pid not in (None, pid)


@needs_pidfd
async def test_one_that_keeps_dying_is_given_time_and_the_reason_is_told(
    engine: LlamaCppEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LlamaServer, "_spawn", lambda self: _child("import sys; sys.exit('out of memory')"))
    wait_for_death(kill(engine))
    with pytest.raises(EngineUnavailableError, match="ended with status 1: out of memory; trying again in 1 seconds"):
        await engine.health()
    monkeypatch.undo()
    server = engine._server
    assert server is not None
    with server._changed:  # the second attempt, without waiting for it here
        server._changed.wait_for(lambda: server._url is not None, 30)
    assert await answer(engine)


async def test_after_close_it_is_gone(engine: LlamaCppEngine) -> None:
    url = engine.url
    await engine.close()
    assert engine.pid is None
    with pytest.raises(EngineUnavailableError, match="has been closed"):
        await engine.health()
    with pytest.raises(EngineUnavailableError, match="broke"):
        await LlamaCppEngine(url).start()


async def test_started_again_after_close(engine: LlamaCppEngine) -> None:
    await engine.close()
    await engine.start()
    assert await answer(engine)


@needs_pidfd
async def test_it_dies_with_its_parent(demo_model_path: Path) -> None:
    program = f"""
import asyncio, os, sys
from isogloss.engines.llamacpp import LlamaCppEngine

async def main():
    engine = LlamaCppEngine({str(demo_model_path)!r}, context_length=512, parallel=1, threads=1)
    await engine.start()
    print(engine.pid, flush=True)
    sys.stdin.read()

asyncio.run(main())
"""
    parent = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    wait_for_death(child)


def wait_for_death(pid: int) -> None:
    """Of any process, for at most ten seconds."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([process], [], [], 10)[0], "it is still alive"
    finally:
        os.close(process)


def _child(program: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe, stderr=pipe)


async def test_a_model_that_llama_cannot_load(tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(EngineUnavailableError, match=r"did not start: it ended with status 1: .*bad\.gguf"):
        await LlamaCppEngine(path, threads=1).start()


async def test_no_model() -> None:
    with pytest.raises(EngineCapabilityError, match=r"Cannot read the model `/no/such\.gguf`: No such file"):
        await LlamaCppEngine("/no/such.gguf").start()


async def test_without_the_library(demo_model_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama_server, "find_spec", lambda name: None)
    with pytest.raises(EngineUnavailableError, match=r"pip install 'isogloss\[llamacpp\]'"):
        await LlamaCppEngine(demo_model_path).start()


async def test_one_that_never_comes_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LlamaServer, "_spawn", lambda self: _child("import sys; sys.stdin.read(); sys.stdin.read()"))
    server = LlamaServer(LlamaServerOptions(model="some.gguf"), start_within=0.01)
    with pytest.raises(EngineUnavailableError, match=r"not up within 0\.01 seconds"):
        server.start()
    assert server.pid is None


async def test_no_process_can_be_started(demo_model_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: LlamaServer) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(LlamaServer, "_spawn", fail)
    with pytest.raises(
        EngineUnavailableError, match=r"no process could be started: .*Resource temporarily unavailable"
    ):
        await LlamaCppEngine(demo_model_path).start()


async def test_not_started(demo_model_path: Path) -> None:
    engine = LlamaCppEngine(demo_model_path)
    with pytest.raises(EngineUnavailableError, match="has not been started"):
        await anext(engine.generate(REQUEST))
    with pytest.raises(EngineUnavailableError, match="has not been started"):
        await engine.health()
    await engine.close()


def test_options_that_do_not_fit() -> None:
    with pytest.raises(EngineCapabilityError, match="Only an embedded server takes these options: parallel"):
        LlamaCppEngine("http://127.0.0.1:1", parallel=2)
    with pytest.raises(EngineCapabilityError, match="Unknown options of the embedded server: paralel"):
        LlamaCppEngine("some.gguf", paralel=2)


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "page.gguf"
    path.write_bytes(b"<html>")
    with pytest.raises(EngineCapabilityError, match="Expected a GGUF file, got one that begins with b'<htm'"):
        model_file(str(path))
    with pytest.raises(EngineCapabilityError, match="Is a directory"):
        model_file(str(tmp_path))


@pytest.mark.parametrize(
    ("cores", "load", "idle"), [(8, 0.0, 8), (8, 2.2, 6), (8, 2.8, 5), (2, 0.4, 2), (2, 7.0, 1), (1, 0.0, 1)]
)
def test_idle_cores(cores: int, load: float, idle: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 9.0, 9.0), raising=False)
    assert idle_cores() == idle
