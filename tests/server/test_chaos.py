"""Servers that are killed, engines that die, at points drawn from a seed: nothing acknowledged is lost."""

from __future__ import annotations

import json
import random
from typing import Any

import httpx
import openai
import pytest

from isogloss.engines.scripted import Script

from .child import LETTERS, QUICK, SPELL, Child, child
from .conftest import SHARED_STORES, Serve, Served


def client_of(server: Child) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)


def seen_of(client: openai.OpenAI, letters: int, **fields: Any) -> list[dict[str, Any]]:
    """The events of a stream up to that many letters; the server says no more."""
    seen = []
    stream = client.responses.create(model="default", input=SPELL, stream=True, **fields)
    for event in stream:
        seen.append(event.to_dict())
        letters -= event.type == "response.output_text.delta"
        if letters == 0:
            break
    return seen


@pytest.mark.parametrize("store", SHARED_STORES, indirect=True)
@pytest.mark.parametrize("seed", range(2))
def test_a_killed_server(store: str, seed: int) -> None:
    position = random.Random(seed).randint(1, len(LETTERS) - 1)
    with child(store, position) as server, client_of(server) as client:
        conversation = client.conversations.create(items=[{"role": "user", "content": "before"}])
        answered = client.responses.create(model="default", input=QUICK, conversation=conversation.id)
        completion = client.chat.completions.create(
            model="default", messages=[{"role": "user", "content": QUICK}], store=True
        )
        items = list(client.conversations.items.list(conversation.id))
        background = seen_of(client, position, background=True)
        foreground = seen_of(client, position, previous_response_id=answered.id)
        server.kill()
    with child(store) as server, client_of(server) as client:
        assert client.responses.retrieve(answered.id) == answered
        assert client.chat.completions.retrieve(completion.id) == completion
        assert list(client.conversations.items.list(conversation.id)) == items
        for events in (foreground, background):
            broken = client.responses.retrieve(events[0]["response"]["id"])
            assert broken.status == "failed"
            assert broken.error is not None
            assert "stopped" in broken.error.message
        resumed = client.responses.retrieve(background[0]["response"]["id"], stream=True)
        told = [event.to_dict() for event in resumed]
        assert told[: len(background)] == background
        assert [event["sequence_number"] for event in told] == list(range(len(told)))
        assert told[-1]["type"] == "response.failed"
        again = client.responses.create(model="default", input=SPELL, conversation=conversation.id)
        assert again.output_text == LETTERS


@pytest.mark.parametrize("seed", range(12))
def test_a_dying_engine(serve: Serve, seed: int) -> None:
    """Each request fails visibly or is whole, the next one is answered, and nothing stays behind."""
    dice = random.Random(seed)
    scripts: list[Script] = []
    for _ in range(6):
        deadly = dice.random() < 0.6
        scripts.append(Script(LETTERS, cut=dice.randint(1, 9), dies_after=dice.randint(0, 3) if deadly else None))
    served = serve(*scripts)
    for script in scripts:
        path = dice.choice(["chat/completions", "responses"])
        outcome = ask(served, path, stream=dice.random() < 0.5)
        assert outcome == ("failed" if script.dies_after is not None else LETTERS)
    assert served.engine.running == 0


def ask(served: Served, path: str, stream: bool) -> str:
    """The text of the answer, or that it failed."""
    said = {"messages": [{"role": "user", "content": "x"}]} if path == "chat/completions" else {"input": "x"}
    body = {"model": "default", "stream": stream, **said}
    answer = httpx.post(f"{served.url}/v1/{path}", json=body, trust_env=False, timeout=30)
    if answer.status_code != 200:
        assert answer.json()["error"]["code"] == "engine_unavailable"
        return "failed"
    if not stream:
        whole = answer.json()
        text: str = (
            whole["choices"][0]["message"]["content"]
            if "choices" in whole
            else whole["output"][0]["content"][0]["text"]
        )
        return text
    lines = [line.removeprefix("data: ") for line in answer.text.split("\n") if line.startswith("data: ")]
    events = [json.loads(line) for line in lines if line != "[DONE]"]
    if "error" in events[-1]:
        return "failed"
    if path == "chat/completions":
        return "".join(event["choices"][0]["delta"].get("content") or "" for event in events)
    if events[-1]["type"] == "response.failed":
        kept = served.client().responses.retrieve(events[-1]["response"]["id"])
        assert kept.status == "failed"
        return "failed"
    return "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
