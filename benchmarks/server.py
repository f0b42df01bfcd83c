"""Server: what stands between a client and an engine costs, ours against others', over the same engine.

Two set-ups, both on loopback. The demo model: wall time from a request to its first token, from llama.cpp's own server
and through what is in front of it; llama-cpp-python's server runs the same file in process. A stub endpoint of fixed
answers: CPU time of the server a request, and wall time a request of several at once. What is added to the first token,
and CPU a token with an engine in process, are tables of their own.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

import httpx

from benchmarks.endpoint import MODEL, TOKENS
from benchmarks.environments import DISTRIBUTIONS, UnavailableError, interpreter
from benchmarks.processes import Process, serving
from benchmarks.results import Results, Row, Spread, ratios
from isogloss.demo import free_port
from isogloss.demo_model import demo_model_path
from isogloss.engines.llamacpp import LlamaCppEngine

QUESTION = "Name three rivers."
KEY = "ISOGLOSS_BENCHMARK_ENGINE_KEY"
FIRST_TOKEN_ROUNDS = 200
"""Requests of each side, one by one in turns: what is added is less than what an engine's own time varies by."""
BLOCK = 20
"""Requests of which the median counts as one round, where rounds are compared."""
WARM_UP = 2
STUB_ROUNDS = 4
REQUESTS = 40
"""Requests of each stub round."""
AT_ONCE = 8
WORDS = 500
"""Tokens of each answer of our own table."""
STREAMS = (1, 16, 64)
THROUGHPUT_TOKENS = 96_000
"""Tokens of each of its rows."""
ENGINE = "engine alone"


def measure(results: Results) -> None:
    """Both set-ups, and our own tables."""
    rows, results.alone["server-first-token"] = _demo_model(results.missing)
    results.rows += [*rows, *_stub(results.missing)]
    results.alone["server"] = _throughput()


def isogloss(stack: ExitStack, target: str, *options: str) -> Process:
    port = free_port()
    command = [sys.executable, "-m", "isogloss", "serve", "--model", target, "--dialect", "hermes", "--port", str(port)]
    return stack.enter_context(serving([*command, "--store", "memory", *options], f"http://127.0.0.1:{port}"))


def litellm(stack: ExitStack, target: str, model: str, key: str) -> Process:
    """Its proxy in front of an OpenAI-compatible endpoint."""
    python = interpreter("litellm")
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    parameters = {"model": f"openai/{model}", "api_base": f"{target}/v1", "api_key": key}
    models = [{"model_name": "default", "litellm_params": parameters}]
    settings = {"dangerously_permit_weak_or_unset_master_key": True}  # On loopback, for a minute.
    configuration = {"model_list": models, "general_settings": settings}
    (folder / "config.yaml").write_text(json.dumps(configuration), "utf-8")
    port = free_port()
    command = [str(python.with_name("litellm")), "--config", str(folder / "config.yaml")]
    command += ["--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"]
    variables = {"PATH": f"{python.parent}:{os.environ['PATH']}"}
    return stack.enter_context(serving(command, f"http://127.0.0.1:{port}", "/health/liveliness", variables))


def llama_cpp_python(stack: ExitStack) -> Process:
    """Its server, which runs the model in process."""
    port = free_port()
    command = [str(interpreter("llama_cpp_python")), "-m", "llama_cpp.server", "--model", str(demo_model_path())]
    command += ["--host", "127.0.0.1", "--port", str(port), "--n_ctx", "2048", "--n_threads", "1"]
    command += ["--n_threads_batch", "1", "--model_alias", "default", "--verbose", "False"]
    return stack.enter_context(serving(command, f"http://127.0.0.1:{port}", "/v1/models"))


@contextmanager
def _engine() -> Iterator[LlamaCppEngine]:
    engine = LlamaCppEngine(demo_model_path(), context_length=4096, parallel=4, threads=1)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def wait_for(work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result()

    wait_for(engine.start())
    try:
        yield engine
    finally:
        wait_for(engine.close())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def _peers(missing: dict[str, str], started: dict[str, Callable[[], Process]], key: str) -> dict[str, Process]:
    """Those that start and answer, by name; why the others do not goes into ``missing``."""
    found: dict[str, Process] = {}
    for name, start in started.items():
        try:
            process = start()
            asyncio.run(_first_tokens({name: process}, key, rounds=0))
            found[name] = process
        except (UnavailableError, httpx.HTTPError) as error:
            missing[name] = str(error)
            print(f"{name} is not compared: {error}", file=sys.stderr, flush=True)
    return found


def _demo_model(missing: dict[str, str]) -> tuple[list[Row], list[dict[str, str | float]]]:
    rows: list[Row] = []
    with ExitStack() as stack:
        engine = stack.enter_context(_engine())
        key = engine.api_key or "none"
        os.environ[KEY] = key
        ours = isogloss(stack, engine.url, "--engine", engine.name, "--engine-key-env", KEY)
        peers = _peers(
            missing,
            {
                "litellm": lambda: litellm(stack, engine.url, "default", key),
                "llama_cpp_python": lambda: llama_cpp_python(stack),
            },
            key,
        )
        servers = {"isogloss": ours, **peers}
        visits = asyncio.run(_first_tokens({ENGINE: Process(engine.url, os.getpid()), **servers}, key))
        for name in (ENGINE, *peers):
            mine, theirs = (_blocks(visits[side]) for side in ("isogloss", name))
            release = version("xllamacpp") if name == ENGINE else _release(name)
            rows.append(_row("request to first token, demo model", name, release, "ms, wall", mine, theirs))
        return rows, [_added(name, visits) for name in servers]


class Visit(NamedTuple):
    """One request: milliseconds to its first token, and of the server's CPU to its end."""

    wall: float
    cpu: float


def _blocks(visits: list[Visit]) -> list[float]:
    """Medians of as many requests as make a round: one request alone says little."""
    walls = [visit.wall for visit in visits]
    return [median(walls[start : start + BLOCK]) for start in range(0, len(walls), BLOCK)]


def _added(name: str, visits: dict[str, list[Visit]]) -> dict[str, str | float]:
    """What a server adds to the engine's own time: medians of the differences of requests next to each other."""
    added = [visit.wall - alone.wall for visit, alone in zip(visits[name], visits[ENGINE], strict=True)]
    low, middle, high = quantiles(added, n=4)
    row = {
        "in front of the engine": name,
        "added to first token, ms": round(middle, 2),
        "half of the requests": f"{low:.2f} to {high:.2f}",
        "its CPU a request, ms": round(median(visit.cpu for visit in visits[name]), 2),
    }
    print(row, flush=True)
    return row


async def _first_tokens(
    servers: dict[str, Process], key: str, rounds: int = FIRST_TOKEN_ROUNDS
) -> dict[str, list[Visit]]:
    """Every round asks each server once, always in the same order: an engine that is asked twice by the same server at
    once may not have freed the place that knows the prompt. The first rounds warm up."""
    visits: dict[str, list[Visit]] = {name: [] for name in servers}
    async with httpx.AsyncClient(timeout=60, headers={"Authorization": f"Bearer {key}"}) as client:
        for number in range(rounds + WARM_UP):
            for name, server in servers.items():
                visit = await _first_token(client, server)
                if number >= WARM_UP:
                    visits[name].append(visit)
    return visits


async def _first_token(client: httpx.AsyncClient, server: Process) -> Visit:
    used, start = server.cpu_seconds(), time.perf_counter()
    first = 0.0
    body = _body("default", max_tokens=2)
    async with client.stream("POST", f"{server.url}/v1/chat/completions", json=body) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: {") and not first:
                choices = json.loads(line[6:])["choices"]
                if choices and choices[0]["delta"].get("content"):
                    first = time.perf_counter() - start
    if not first:
        raise UnavailableError(f"{server.url}: no token, status {response.status_code}")
    return Visit(first * 1e3, (server.cpu_seconds() - used) * 1e3)


def _body(model: str, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": QUESTION}]
    return {"model": model, "messages": messages, "stream": True, "temperature": 0, **more}


def _stub(missing: dict[str, str]) -> Iterator[Row]:
    with ExitStack() as stack:
        port = free_port()
        stub = stack.enter_context(
            serving([sys.executable, "-m", "benchmarks.endpoint", str(port)], f"http://127.0.0.1:{port}")
        )
        ours = isogloss(stack, stub.url, "--engine", "chat")
        peers = _peers(missing, {"litellm": lambda: litellm(stack, stub.url, MODEL, "none")}, "none")
        for name, peer in peers.items():
            sides = {"isogloss": ours, name: peer}
            asyncio.run(_round(ours, REQUESTS, 1))
            asyncio.run(_round(peer, REQUESTS, 1))
            for at_once in (1, AT_ONCE):
                cpu: dict[str, list[float]] = {side: [] for side in sides}
                wall: dict[str, list[float]] = {side: [] for side in sides}
                for number in range(STUB_ROUNDS):
                    for side in list(sides) if number % 2 == 0 else list(reversed(sides)):
                        used, took = asyncio.run(_round(sides[side], REQUESTS, at_once))
                        cpu[side].append(used * 1e3)
                        wall[side].append(took * 1e3)
                case = f"a request of {TOKENS} tokens, {at_once} at once"
                yield _row(case, name, _release(name), "ms, CPU", cpu["isogloss"], cpu[name])
                yield _row(f"{case}, wall", name, _release(name), "ms, wall", wall["isogloss"], wall[name])


async def _round(server: Process, requests: int, at_once: int) -> tuple[float, float]:
    """CPU seconds of the server a request, and wall seconds."""
    limit = asyncio.Semaphore(at_once)
    async with httpx.AsyncClient(timeout=60, headers={"Authorization": "Bearer none"}) as client:

        async def ask() -> None:
            async with (
                limit,
                client.stream("POST", f"{server.url}/v1/chat/completions", json=_body("default")) as response,
            ):
                response.raise_for_status()
                async for _ in response.aiter_bytes():
                    pass

        used, start = server.cpu_seconds(), time.perf_counter()
        await asyncio.gather(*[ask() for _ in range(requests)])
        return (server.cpu_seconds() - used) / requests, (time.perf_counter() - start) / requests


def _release(name: str) -> str:
    """The release of a peer, as its environment has it."""
    site = next((interpreter(name).parents[1] / "lib").glob("python*/site-packages"))
    stem = DISTRIBUTIONS[name].replace("-", "_")
    return next(site.glob(f"{stem}-*.dist-info")).name.removeprefix(f"{stem}-").removesuffix(".dist-info")


def _row(case: str, peer: str, release: str, unit: str, mine: list[float], theirs: list[float]) -> Row:
    row = Row("server", case, peer, release, unit, Spread.of(mine), Spread.of(theirs), ratios(mine, theirs))
    print(f"{case}, {peer}: {row.ours.median} {row.theirs.median} {unit} {row.ratio}", flush=True)
    return row


def _throughput() -> list[dict[str, float | int]]:
    """CPU of server and client for a token, from an engine in process that costs next to nothing."""
    with ExitStack() as stack:
        script = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "script.txt"
        script.write_text("word" * WORDS, "utf-8")  # which is replayed four characters at a time
        server = isogloss(stack, str(script), "--engine", "scripted")
        return asyncio.run(_costs(server))


async def _costs(server: Process) -> list[dict[str, float | int]]:
    rows: list[dict[str, float | int]] = []
    async with httpx.AsyncClient(timeout=60) as client:
        await _drain(client, server.url)
        for streams in STREAMS:
            costs = []
            for _ in range(THROUGHPUT_TOKENS // streams // WORDS):
                ours, clients = server.cpu_seconds(), time.process_time()
                await asyncio.gather(*[_drain(client, server.url) for _ in range(streams)])
                spent = server.cpu_seconds() - ours, time.process_time() - clients
                costs.append([second / streams / WORDS * 1e6 for second in spent])
            ours, clients = min(costs, key=sum)  # the round that others on the machine disturbed least
            row = {
                "server's": round(ours, 1),
                "client's": round(clients, 1),
                "together, us a token": round(ours + clients, 1),
            }
            rows.append({"streams at once": streams, **row})
            print(rows[-1], flush=True)
    return rows


async def _drain(client: httpx.AsyncClient, url: str) -> None:
    async with client.stream("POST", f"{url}/v1/chat/completions", json=_body("default")) as response:
        async for _ in response.aiter_bytes():
            pass
