"""What the Open Responses specification of 2026-04-24 asks of a server, and what its compliance suite looks at, over
HTTP and over a WebSocket. Images are refused: there is one model, and it reads text."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from isogloss.engines.scripted import Script

from .conftest import Serve, Served
from .test_responses import REQUIRED, events, raw
from .test_websocket import LOST_RESULT, answer, ask, connected

TOOL_FIELDS = {"type", "name", "description", "parameters", "strict"}

TEXT_STREAM = [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    *["response.output_text.delta"] * 3,
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
]


def said(role: str, text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": text, **fields}


def checked(response: dict[str, Any]) -> dict[str, Any]:
    """A response that is complete as the specification has it."""
    assert response.keys() >= REQUIRED
    assert (response["object"], response["status"]) == ("response", "completed")
    assert all(tool.keys() >= TOOL_FIELDS for tool in response["tools"])
    assert {"input_tokens", "output_tokens", "total_tokens"} <= response["usage"].keys()
    assert response["output"]
    return response


def text_of(response: dict[str, Any]) -> str:
    text: str = response["output"][-1]["content"][0]["text"]
    return text


# --- HTTP -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        [said("user", "Hello")],
        [said("system", "Be brief."), said("user", "Hello")],
        [said("user", "I am Ada."), said("assistant", "Hello, Ada."), said("user", "Who am I?")],
        [
            said("assistant", "I look it up.", phase="commentary"),
            said("assistant", "It is 4.", phase="final_answer"),
            said("user", "Again?"),
        ],
    ],
    ids=["basic", "system", "several turns", "phases"],
)
def test_messages(serve: Serve, given: list[Any]) -> None:
    served = serve("Hi")
    assert text_of(checked(raw(served, input=given).json())) == "Hi"
    prompt = served.engine.requests[0].prompt
    places = [prompt.index(message["content"]) for message in given]
    assert places == sorted(places)


def test_a_stream(serve: Serve) -> None:
    found = events(serve(Script("abc", cut=1)), input=[said("user", "Count.")])
    assert [event["type"] for event in found] == TEXT_STREAM
    assert text_of(checked(found[-1]["response"])) == "abc"


def test_a_function_that_is_called(serve: Serve) -> None:
    """Its schema says nothing of ``strict`` and leaves fields optional: it is made strict, they may be null."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}, "unit": {"type": "string"}}}
    tool = {"type": "function", "name": "get_weather", "parameters": schema}
    call = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "unit": null}}\n</tool_call>'
    response = checked(raw(serve(call), input=[said("user", "Weather?")], tools=[tool]).json())
    assert [item["type"] for item in response["output"]] == ["function_call"]
    assert response["tools"][0]["strict"] is True


def test_an_image_is_refused(serve: Serve) -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    response = raw(serve("never"), input=[{"type": "message", "role": "user", "content": [image]}])
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "input[0].content[0].type"


def compacted(served: Served, **fields: Any) -> httpx.Response:
    conversation = [said("user", "We launch on Tuesday."), said("assistant", "Noted.")]
    body = {"model": "default", "prompt_cache_key": "k", "input": conversation, **fields}
    given = {name: value for name, value in body.items() if value is not None}
    return httpx.post(f"{served.url}/v1/responses/compact", json=given, trust_env=False)


def test_compaction(serve: Serve) -> None:
    compaction = compacted(serve("They launch.")).json()
    assert compaction.keys() >= {"id", "object", "created_at", "output", "usage"}
    assert compaction["object"] == "response.compaction"
    assert [item["type"] for item in compaction["output"]] == ["message", "compaction"]
    assert compaction["output"][0]["content"] == [{"type": "input_text", "text": "We launch on Tuesday."}]
    assert compacted(serve("never"), model=None).status_code == 400


# --- WebSocket --------------------------------------------------------------------------------------------------------


def test_responses_one_after_the_other(serve: Serve) -> None:
    with connected(serve(Script("abc", cut=1))) as connection:
        for _ in range(2):
            ask(connection, input=[said("user", "Count.")], store=False)
            found = answer(connection)
            assert [event["type"] for event in found] == TEXT_STREAM
            assert text_of(checked(found[-1]["response"])) == "abc"


def test_a_chain_that_is_not_stored(serve: Serve) -> None:
    """It goes on over its connection, not over another one, and not once it failed; a new one can begin."""
    served = serve("OK", "cobalt", "recovered", "OK", "anew")
    with connected(served) as connection:
        ask(connection, input="Remember cobalt.", store=False)
        first = checked(answer(connection)[-1]["response"])
        ask(connection, input="Which word?", previous_response_id=first["id"], store=False)
        assert checked(answer(connection)[-1]["response"])["previous_response_id"] == first["id"]
        assert "cobalt" in served.engine.requests[-1].prompt
    with connected(served) as connection:
        ask(connection, previous_response_id=first["id"], store=False)
        assert refused(answer(connection)) == "previous_response_not_found"
        ask(connection, input=[said("user", "Begin again.")], store=False)
        assert text_of(checked(answer(connection)[-1]["response"])) == "recovered"
        ask(connection, store=False)
        second = answer(connection)[-1]["response"]["id"]
        ask(connection, input=LOST_RESULT, previous_response_id=second, store=False)
        assert refused(answer(connection)) == "invalid_value"
        ask(connection, previous_response_id=second, store=False)
        assert refused(answer(connection)) == "previous_response_not_found"


def refused(found: list[dict[str, Any]]) -> str:
    """The code of the one event, which is an error."""
    [error] = found
    assert error["type"] == "error"
    code: str = error["error"]["code"]
    return code


def test_a_compacted_conversation_goes_on(serve: Serve) -> None:
    served = serve("They launch.", "compacted")
    output = compacted(served).json()["output"]
    with connected(served) as connection:
        ask(connection, input=[*output, said("user", "Go on.")], tools=[], store=False)
        assert text_of(checked(answer(connection)[-1]["response"])) == "compacted"
    prompt = served.engine.requests[-1].prompt
    places = [prompt.index(text) for text in ("We launch on Tuesday.", "They launch.", "Go on.")]
    assert places == sorted(places)
