"""Two hundred streams at once: every event arrives, in order, and memory and places stay bounded."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import httpx
import pytest

from isogloss.chat import Chat
from isogloss.dialects import get_dialect
from isogloss.engines.scripted import Script, ScriptedEngine

from .conftest import serving
from .hold import Hold

NUMBERS = [f"{number} " for number in range(25)]


async def chat_stream(client: httpx.AsyncClient) -> str:
    body = {"model": "default", "messages": [{"role": "user", "content": "x"}], "stream": True}
    events = await told(client, "chat/completions", body)
    assert events.pop() == "[DONE]"
    return "".join(json.loads(event)["choices"][0]["delta"].get("content") or "" for event in events)


async def response_stream(client: httpx.AsyncClient, **fields: Any) -> str:
    body = {"model": "default", "input": "x", "stream": True, **fields}
    events = [json.loads(event) for event in await told(client, "responses", body)]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[-1]["type"] == "response.completed"
    return "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")


async def told(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> list[str]:
    async with client.stream("POST", f"/v1/{path}", json=body) as answer:
        assert answer.status_code == 200
        text = "".join([part async for part in answer.aiter_text()])
    return [line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: ")]


@pytest.mark.parametrize(("store", "count"), [("sqlite", 200), ("postgresql", 40)], indirect=["store"])
def test_many_streams(store: str, count: int) -> None:
    most = 0
    engine = ScriptedEngine(Script(NUMBERS))

    async def watch(_: int) -> None:
        nonlocal most
        most = max(most, engine.running)
        await asyncio.sleep(0)

    engine._before_piece = watch

    async def work(url: str) -> list[str]:
        limits = httpx.Limits(max_connections=count)
        async with httpx.AsyncClient(base_url=url, limits=limits, trust_env=False, timeout=120) as client:
            kinds = [
                lambda: chat_stream(client),
                lambda: response_stream(client),
                lambda: response_stream(client, store=False),
                lambda: response_stream(client, background=True),
            ]
            return await asyncio.gather(*[kinds[number % 4]() for number in range(count)])

    options: dict[str, Any] = {"store": store, "max_running": 30, "max_waiting": count}
    with serving(Chat(engine, get_dialect("hermes")), **options) as served:
        texts = asyncio.run(work(served.url))
    assert texts == ["".join(NUMBERS)] * count
    assert len(engine.requests) == count
    assert most <= 30
    assert (engine.running, engine.abandoned) == (0, 0)


def is_open(address: tuple[str, int]) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(address) == 0


def test_a_stop_lets_streams_come_to_their_ends() -> None:
    hold = Hold(2)
    engine = ScriptedEngine(Script("abcd", cut=1), before_piece=hold)
    with serving(Chat(engine, get_dialect("hermes"))) as served:
        url = httpx.URL(served.url)
        address = url.host, url.port or 80
        with socket.create_connection(address) as connection:
            body = json.dumps({"model": "default", "messages": [{"role": "user", "content": "x"}], "stream": True})
            head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: here\r\ncontent-length: {len(body)}\r\n\r\n"
            connection.sendall((head + body).encode())
            assert hold.reached.wait(30)
            served.stop()
            while is_open(address):
                pass
            hold.release()
            said = b""
            while part := connection.recv(65536):
                said += part
    assert said.count(b'"content":"d"') == 1
    assert b"data: [DONE]" in said
