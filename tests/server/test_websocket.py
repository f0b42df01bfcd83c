"""The WebSocket transport, by the official client and by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from isogloss.engines.scripted import Script
from isogloss.server import ApiKey

from .conftest import Serve, Served
from .hold import Hold
from .test_load import is_open

EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
LETTERS = Script("abc", cut=1)


@contextmanager
def connected(served: Served, **headers: str) -> Iterator[ClientConnection]:
    url = served.url.replace("http", "ws") + "/v1/responses"
    with connect(url, additional_headers=headers, proxy=None) as connection:
        yield connection


def ask(connection: ClientConnection, **fields: Any) -> None:
    message = {"type": "response.create", "model": "default", "input": "x", **fields}
    connection.send(json.dumps({name: value for name, value in message.items() if value is not None}))


def answer(connection: ClientConnection) -> list[dict[str, Any]]:
    """The events of one response, or its error."""
    found = []
    while True:
        event = json.loads(connection.recv(timeout=30))
        found.append(event)
        if event["type"] in ("response.completed", "response.incomplete", "response.failed", "error"):
            return found


# The client opens its connection in a way that the package it uses has deprecated.
@pytest.mark.filterwarnings("ignore:connect.. must be used as a context manager:DeprecationWarning")
def test_the_official_client(serve: Serve) -> None:
    served = serve(LETTERS)
    with served.client().responses.connect() as connection:
        connection.response.create(model="default", input="x")
        kinds = []
        for event in connection:
            kinds.append(event.type)
            if event.type == "response.completed":
                assert event.response.output_text == "abc"
                break
    assert kinds[:2] == ["response.created", "response.in_progress"]


def test_one_after_the_other(serve: Serve) -> None:
    with connected(serve(LETTERS)) as connection:
        for _ in range(2):
            ask(connection)
        for _ in range(2):
            found = answer(connection)
            assert [event["sequence_number"] for event in found] == list(range(len(found)))
            for event in found:
                EVENT.validate_python(event)
            assert Response.model_validate(found[-1]["response"]).output_text == "abc"


def test_streams_side_by_side(serve: Serve) -> None:
    hold = Hold(1)
    served = serve(LETTERS, engine={"before_piece": hold})
    with connected(served) as connection:
        ask(connection, stream_id="a")
        ask(connection, stream_id="b")
        while served.engine.running < 2:
            pass
        hold.release()
        ended: set[str] = set()
        texts = {"a": "", "b": ""}
        while len(ended) < 2:
            event = json.loads(connection.recv(timeout=30))
            texts[event["stream_id"]] += event.get("delta", "")
            if event["type"] == "response.completed":
                ended.add(event["stream_id"])
        assert texts == {"a": "abc", "b": "abc"}


def test_what_is_not_stored_goes_on_here_only(serve: Serve) -> None:
    served = serve("one", "two", "three")
    with connected(served) as connection:
        ask(connection, store=False)
        first = answer(connection)[-1]["response"]["id"]
        ask(connection, input="more", previous_response_id=first, store=False)
        second = answer(connection)[-1]["response"]["id"]
        ask(connection, input="still more", previous_response_id=second)
        assert answer(connection)[-1]["type"] == "response.completed"
        prompt = served.engine.requests[-1].prompt
        places = [prompt.index(text) for text in ("one", "more", "two", "still more")]
        assert places == sorted(places)
    with connected(served) as connection:
        ask(connection, previous_response_id=first)
        error = answer(connection)[-1]
        assert (error["status"], error["error"]["code"]) == (400, "previous_response_not_found")


LOST_RESULT = [{"type": "function_call_output", "call_id": "call_nobody", "output": "x"}]
DEAD = Script("abc", cut=1, dies_after=1)


@pytest.mark.parametrize(("script", "then"), [("never", LOST_RESULT), (DEAD, "more")], ids=["refused", "failed"])
def test_what_could_not_be_continued_is_forgotten(serve: Serve, script: str | Script, then: Any) -> None:
    with connected(serve("one", script, "anew")) as connection:
        ask(connection, store=False)
        first = answer(connection)[-1]["response"]["id"]
        ask(connection, input=then, previous_response_id=first, store=False)
        assert answer(connection)[-1]["type"] in ("error", "response.failed")
        ask(connection, previous_response_id=first, store=False)
        error = answer(connection)[-1]
        assert (error["status"], error["error"]["code"]) == (400, "previous_response_not_found")
        ask(connection, store=False)
        assert answer(connection)[-1]["type"] == "response.completed"


def test_a_stop_lets_responses_come_to_their_ends(serve: Serve) -> None:
    hold = Hold(2)
    served = serve(LETTERS, engine={"before_piece": hold}, max_waiting=5)
    address = ("127.0.0.1", httpx.URL(served.url).port or 0)
    with connected(served) as connection:
        ask(connection, stream_id="idle", generate=False)
        answer(connection)
        for _ in range(2):
            ask(connection)
        assert hold.reached.wait(30)
        served.stop()
        while is_open(address):
            pass
        hold.release()
        assert answer(connection)[-1]["response"]["output"][0]["content"][0]["text"] == "abc"
        with pytest.raises(ConnectionClosed) as caught:
            connection.recv(timeout=30)
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1012
    assert len(served.engine.requests) == 1


@pytest.mark.parametrize("store", [False, True])
def test_a_request_without_generation_is_prepared(serve: Serve, store: bool) -> None:
    served = serve("never")
    with connected(served) as connection:
        ask(connection, input="first", generate=False, store=store)
        found = answer(connection)
        assert [event["type"] for event in found] == ["response.created", "response.completed"]
        assert served.engine.requests == []
        ask(connection, input="then", previous_response_id=found[-1]["response"]["id"])
        assert answer(connection)[-1]["type"] == "response.completed"
        prompt = served.engine.requests[0].prompt
        assert prompt.index("first") < prompt.index("then")


@pytest.mark.parametrize(
    ("fields", "status", "param"),
    [
        ({"model": "other"}, 404, None),
        ({"type": "response.steer"}, 400, "type"),
        ({"input": 5}, 400, "input"),
        ({"background": True}, 400, "background"),
        ({"stream_id": 5}, 400, "stream_id"),
    ],
)
def test_errors_leave_the_connection_open(serve: Serve, fields: dict[str, Any], status: int, param: str | None) -> None:
    with connected(serve(LETTERS)) as connection:
        ask(connection, **fields)
        [error] = answer(connection)
        assert (error["type"], error["status"], error["error"]["param"]) == ("error", status, param)
        ask(connection)
        assert answer(connection)[-1]["type"] == "response.completed"


@pytest.mark.parametrize("message", ["{", "[1]", '"x"', b"\xff"])
def test_messages_that_are_none(serve: Serve, message: str | bytes) -> None:
    with connected(serve(LETTERS)) as connection:
        connection.send(message)
        assert answer(connection)[-1]["error"]["code"] == "invalid_json"


def test_too_many_streams(serve: Serve) -> None:
    with connected(serve(LETTERS)) as connection:
        for number in range(17):
            ask(connection, stream_id=str(number))
        errors = []
        ended = 0
        while ended < 17:
            event = json.loads(connection.recv(timeout=30))
            ended += event["type"] in ("response.completed", "error")
            errors += [event["error"]["code"]] if event["type"] == "error" else []
        assert errors == ["invalid_stream_id"]


def test_a_client_that_goes_away_stops_the_generation(serve: Serve) -> None:
    hold = Hold(1)
    served = serve(LETTERS, engine={"before_piece": hold})
    with connected(served) as connection:
        ask(connection)
        assert hold.reached.wait(30)
    assert hold.left.wait(30)


def test_the_key_is_needed(serve: Serve) -> None:
    served = serve(LETTERS, keys=(ApiKey("me", "secret"),))
    with pytest.raises(InvalidStatus) as caught, connected(served):
        pass
    assert caught.value.response.status_code == 401
    assert json.loads(caught.value.response.body)["error"]["code"] == "missing_api_key"
    with connected(served, authorization="Bearer secret") as connection:
        ask(connection)
        assert answer(connection)[-1]["type"] == "response.completed"
