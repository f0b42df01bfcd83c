"""Responses made in the background: polled, followed, resumed, cancelled, at one server and between two."""

from __future__ import annotations

import json
import socket
from typing import Any

import httpx
import openai
import pytest
from openai.types.responses import Response

from isogloss.chat import Chat
from isogloss.dialects import get_dialect
from isogloss.engines.scripted import Script, ScriptedEngine
from isogloss.server import lease

from .conftest import SHARED_STORES, STORES, Serve, Served, serving
from .hold import Hold

every_store = pytest.mark.parametrize("store", STORES, indirect=True)
shared_store = pytest.mark.parametrize("store", SHARED_STORES, indirect=True)
LETTERS = Script("abcdefgh", cut=1)


def start(served: Served, **fields: Any) -> Response:
    response = served.client().responses.create(**{"model": "default", "input": "x", "background": True, **fields})
    assert isinstance(response, Response)
    return response


def ended(served: Served, response_id: str) -> Response:
    """The response once it has ended: following its stream takes as long."""
    last = events(served, response_id)[-1]
    return Response.model_validate(last["response"])


def events(served: Served, response_id: str, after: int | None = None) -> list[dict[str, Any]]:
    query = {"stream": "true"} | ({} if after is None else {"starting_after": str(after)})
    answer = httpx.get(f"{served.url}/v1/responses/{response_id}", params=query, trust_env=False, timeout=30)
    assert answer.status_code == 200
    blocks = [block.split("\n") for block in answer.text.strip().split("\n\n")]
    found = [json.loads(data.removeprefix("data: ")) for _, data in blocks]
    assert [name for name, _ in blocks] == [f"event: {event['type']}" for event in found]
    return found


@every_store
def test_it_is_made_while_nobody_waits(store: str) -> None:
    hold = Hold(3)
    engine = ScriptedEngine(LETTERS, before_piece=hold)
    with serving(Chat(engine, get_dialect("hermes")), store=store) as served:
        response = start(served)
        assert response.status == "queued"
        assert response.background
        assert hold.reached.wait(30)
        while (status := served.client().responses.retrieve(response.id).status) == "queued":
            pass  # what was said is being written
        assert status == "in_progress"
        with pytest.raises(openai.BadRequestError) as caught:
            served.client().responses.create(model="default", input="y", previous_response_id=response.id)
        assert caught.value.code == "previous_response_not_completed"
        hold.release()
        whole = ended(served, response.id)
        assert whole.status == "completed"
        assert whole.output_text == "abcdefgh"
        assert served.client().responses.retrieve(response.id) == whole


@every_store
def test_a_stream_is_resumed_where_it_was_left(store: str) -> None:
    hold = Hold(4)
    engine = ScriptedEngine(LETTERS, before_piece=hold)
    with serving(Chat(engine, get_dialect("hermes")), store=store) as served:
        seen = []
        with served.client().responses.create(model="default", input="x", background=True, stream=True) as stream:
            for event in stream:
                seen.append(event.to_dict())
                if event.type == "response.output_text.delta" and event.delta == "d":
                    break
        assert [event["sequence_number"] for event in seen] == list(range(len(seen)))
        assert [event["type"] for event in seen[:3]] == [
            "response.created",
            "response.queued",
            "response.in_progress",
        ]
        response_id = seen[0]["response"]["id"]  # type: ignore[index]
        hold.release()
        rest = events(served, response_id, seen[-1]["sequence_number"])  # type: ignore[arg-type]
        assert [event["sequence_number"] for event in rest] == list(range(len(seen), len(seen) + len(rest)))
        deltas = [event["delta"] for event in [*seen, *rest] if event["type"] == "response.output_text.delta"]
        assert deltas == list("abcdefgh")
        assert rest[-1]["type"] == "response.completed"
        assert [event["type"] for event in events(served, response_id)] == [e["type"] for e in [*seen, *rest]]
        assert events(served, response_id, rest[-1]["sequence_number"] - 1) == rest[-1:]


@every_store
def test_it_is_cancelled(store: str) -> None:
    hold = Hold(3)
    engine = ScriptedEngine(LETTERS, before_piece=hold)
    with serving(Chat(engine, get_dialect("hermes")), store=store) as served:
        response = start(served)
        assert hold.reached.wait(30)
        assert served.client().responses.cancel(response.id).status == "cancelled"
        assert hold.left.wait(30)
        assert served.client().responses.retrieve(response.id).status == "cancelled"
        last = events(served, response.id)[-1]
        assert (last["type"], last["response"]["status"]) == ("response.incomplete", "cancelled")
        assert served.client().responses.cancel(response.id).status == "cancelled"
        httpx.get(f"{served.url}/health", trust_env=False)
        assert engine.running == 0


@shared_store
def test_another_server_follows_and_cancels(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "PERIOD", 0.05)
    hold = Hold(3)
    engine = ScriptedEngine(LETTERS, before_piece=hold)
    with (
        serving(Chat(engine, get_dialect("hermes")), store=store) as first,
        serving(Chat(ScriptedEngine("never"), get_dialect("hermes")), store=store) as second,
    ):
        response = start(first)
        assert hold.reached.wait(30)
        assert second.client().responses.cancel(response.id).status == "cancelled"
        assert [event["type"] for event in events(second, response.id)][-1] == "response.incomplete"
        assert first.client().responses.retrieve(response.id).status == "cancelled"
        assert hold.left.wait(30)  # it has looked
        hold.release()
        again = start(first)
        followed = events(second, again.id)
        assert followed[-1]["response"]["output"][0]["content"][0]["text"] == "abcdefgh"


@pytest.mark.parametrize("deletes_at_once", [False, True])
def test_it_is_deleted(serve: Serve, deletes_at_once: bool) -> None:
    hold = Hold(3)
    served = serve(LETTERS, engine={"before_piece": hold})
    response = start(served)
    if not deletes_at_once:
        assert hold.reached.wait(30)
    served.client().responses.delete(response.id)
    if not deletes_at_once:
        assert hold.left.wait(30)
    with pytest.raises(openai.NotFoundError):
        served.client().responses.retrieve(response.id)


@pytest.mark.parametrize("dies_after", [0, 2])
def test_an_engine_that_dies(serve: Serve, dies_after: int) -> None:
    served = serve(Script("abcd", cut=1, dies_after=dies_after))
    whole = ended(served, start(served).id)
    assert whole.status == "failed"
    assert whole.error is not None
    assert "died" in whole.error.message


def test_what_was_not_made_in_the_background(serve: Serve) -> None:
    served = serve("Hi")
    response = served.client().responses.create(model="default", input="x")
    with pytest.raises(openai.BadRequestError, match="Cannot cancel a synchronous response"):
        served.client().responses.cancel(response.id)
    for query, message in (
        ("stream=true", "not created with background=true"),
        ("stream=maybe", "Expected `true` or `false`"),
    ):
        answer = httpx.get(f"{served.url}/v1/responses/{response.id}?{query}", trust_env=False)
        assert answer.status_code == 400
        assert message in answer.json()["error"]["message"]
    with pytest.raises(openai.NotFoundError):
        served.client().responses.cancel("resp_none")


def test_a_stop_lets_it_come_to_its_end(tmp_path: Any) -> None:
    hold = Hold(3)
    store = f"sqlite:///{tmp_path / 'state.sqlite'}"
    with serving(Chat(ScriptedEngine(LETTERS, before_piece=hold), get_dialect("hermes")), store=store) as served:
        waited, cancelled = start(served), None
        assert hold.reached.wait(30)
        hold.release()
    hold = Hold(3)
    engine = ScriptedEngine(LETTERS, before_piece=hold)
    with serving(Chat(engine, get_dialect("hermes")), store=store, drain_seconds=0.01) as served:
        cancelled = start(served)
        assert hold.reached.wait(30)
    with serving(Chat(engine, get_dialect("hermes")), store=store) as served:
        assert served.client().responses.retrieve(waited.id).output_text == "abcdefgh"
        assert served.client().responses.retrieve(cancelled.id).status == "cancelled"


def test_a_stream_that_is_left_is_cancelled(serve: Serve) -> None:
    """In the foreground: the one who waited is gone."""
    hold = Hold(3)
    served = serve(LETTERS, engine={"before_piece": hold})
    url = httpx.URL(served.url)
    body = json.dumps({"model": "default", "input": "x", "stream": True}).encode()
    with socket.create_connection((url.host, url.port or 80)) as connection:
        head = f"POST /v1/responses HTTP/1.1\r\nhost: here\r\ncontent-length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        said = b""
        while b"output_text.delta" not in said:
            said += connection.recv(65536)
    assert hold.left.wait(30)
    response_id = json.loads(said.partition(b"data: ")[2].partition(b"\n")[0])["response"]["id"]
    while (status := served.client().responses.retrieve(response_id).status) == "in_progress":
        pass
    assert status == "cancelled"
