"""Server: time from a request to its first token, through the server and from the engine alone, and CPU per token.

The embedded engine runs the demo model on one thread; requests take turns, so that both see the same machine. What the
server adds is the difference of the medians.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import threading
import time
from collections.abc import Sequence

import httpx
import msgspec
import uvicorn

from isogloss.chat import Chat
from isogloss.demo import free_port, served
from isogloss.demo_model import demo_model_path
from isogloss.dialects import get_dialect
from isogloss.engines import Engine, GenerationRequest, Sampling
from isogloss.engines.llamacpp import LlamaCppEngine
from isogloss.engines.scripted import Script, ScriptedEngine
from isogloss.messages import Conversation, UserMessage
from isogloss.server import create_app

ROUNDS = 30
QUESTION = "Name three rivers."
TOKENS = 8
KEY_VARIABLE = "ISOGLOSS_BENCHMARK_ENGINE_KEY"


def main(_: Sequence[str]) -> None:
    """Print the table."""
    asyncio.run(_first_token())
    asyncio.run(_throughput())


async def _first_token() -> None:
    engine = LlamaCppEngine(demo_model_path(), context_length=2048, parallel=2, threads=1)
    await engine.start()
    try:
        dialect = get_dialect("hermes")
        os.environ[KEY_VARIABLE] = engine.api_key or ""
        with served(engine.url, free_port(), "--engine", engine.name, "--engine-key-env", KEY_VARIABLE) as url:
            client = httpx.AsyncClient(timeout=60)
            prompt = dialect.render(Conversation((UserMessage(QUESTION),)))
            alone: list[float] = []
            through: list[float] = []
            for _ in range(ROUNDS):
                alone.append(await _alone(engine, prompt.tokens(engine.tokenizer)))  # type: ignore[arg-type]
                through.append(await _through(client, url))
            await client.aclose()
    finally:
        await engine.close()
    print(f"request to first token, ms, {ROUNDS} rounds taking turns (median, quartiles)")
    print("| engine alone | through the server | added |")
    print("|---|---|---|")
    added = (statistics.median(through) - statistics.median(alone)) * 1e3
    print(f"| {_spread(alone)} | {_spread(through)} | {added:.1f} |")


async def _alone(engine: Engine, ids: Sequence[int]) -> float:
    request = GenerationRequest(prompt_ids=tuple(ids), sampling=Sampling(max_tokens=TOKENS, temperature=0))
    start = time.perf_counter()
    first = 0.0
    async for chunk in engine.generate(request):
        if chunk.pieces and not first:
            first = time.perf_counter() - start
    return first


async def _through(client: httpx.AsyncClient, url: str) -> float:
    body = {
        "model": "default",
        "messages": [{"role": "user", "content": QUESTION}],
        "max_completion_tokens": TOKENS,
        "temperature": 0,
        "stream": True,
    }
    start = time.perf_counter()
    first = 0.0
    async with client.stream("POST", f"{url}/v1/chat/completions", json=body) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: {") and not first:
                delta = msgspec.json.decode(line[6:])["choices"][0]["delta"]
                if delta.get("content"):
                    first = time.perf_counter() - start
    return first


async def _throughput() -> None:
    """CPU a token that passes through the server, from an engine that costs nothing."""
    words = 500
    print("\nCPU of client and server together for one token of a stream, microseconds (scripted engine)")
    print("| streams at once | CPU per token |")
    print("|---|---|")
    engine = ScriptedEngine(Script("word " * words, cut=5))
    async with _Served(Chat(engine, get_dialect("hermes"))) as url, httpx.AsyncClient(timeout=60) as client:
        for streams in (1, 16, 64):
            start = time.process_time()
            await asyncio.gather(*[_drain(client, url) for _ in range(streams)])
            print(f"| {streams} | {(time.process_time() - start) / streams / words * 1e6:.0f} |", flush=True)


async def _drain(client: httpx.AsyncClient, url: str) -> None:
    body = {"model": "default", "messages": [{"role": "user", "content": QUESTION}], "stream": True}
    async with client.stream("POST", f"{url}/v1/chat/completions", json=body) as response:
        async for _ in response.aiter_bytes():
            pass


def _spread(seconds: list[float]) -> str:
    low, middle, high = statistics.quantiles(seconds, n=4)
    return f"{middle * 1e3:.1f} ({low * 1e3:.1f} to {high * 1e3:.1f})"


class _Served:
    """A server in a thread of its own, for as long as the block runs."""

    def __init__(self, chat: Chat) -> None:
        self._server = uvicorn.Server(uvicorn.Config(create_app(chat), port=0, log_level="error", ws="none"))
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    async def __aenter__(self) -> str:
        self._thread.start()
        while not self._server.started:
            await asyncio.sleep(0.01)
        return f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"

    async def __aexit__(self, *_: object) -> None:
        self._server.should_exit = True
        await asyncio.to_thread(self._thread.join)
