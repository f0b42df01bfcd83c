from __future__ import annotations

import json
from typing import Any, Literal

import httpx
import openai
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from isogloss.engines import ModelInfo, Usage
from isogloss.engines.scripted import Script
from isogloss.errors import EngineUnavailableError

from .conftest import Serve, Served

WEATHER: Any = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": True,
}
SQL: Any = {"type": "custom", "name": "sql"}
LOOSE = [{**WEATHER, "strict": False}, SQL]
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
SQL_CALL = '<tool_call>\n{"name": "sql", "arguments": {"input": "SELECT 1"}}\n</tool_call>'

EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)

REQUIRED = frozenset(
    {
        *("id", "object", "created_at", "completed_at", "status"),
        *("incomplete_details", "model", "previous_response_id", "instructions", "output"),
        *("error", "tools", "tool_choice", "truncation", "parallel_tool_calls"),
        *("text", "top_p", "presence_penalty", "frequency_penalty", "top_logprobs"),
        *("temperature", "reasoning", "usage", "max_output_tokens", "max_tool_calls"),
        *("store", "background", "service_tier", "metadata", "safety_identifier"),
        *("prompt_cache_key",),
    }
)
"""What the Open Responses specification wants in every response."""


def create(served: Served, **fields: Any) -> Response:
    response = served.client().responses.create(**{"model": "default", "input": "Hello", **fields})
    assert isinstance(response, Response)
    return response


def raw(served: Served, **fields: Any) -> httpx.Response:
    body = {"model": "default", "input": "Hello", **fields}
    return httpx.post(f"{served.url}/v1/responses", content=json.dumps(body).encode(), trust_env=False)


def events(served: Served, **fields: Any) -> list[dict[str, Any]]:
    """The events as they are on the wire, each checked against the client's types."""
    response = raw(served, stream=True, **fields)
    assert response.headers["content-type"].startswith("text/event-stream")
    found = []
    for block in response.text.strip().split("\n\n"):
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        EVENT.validate_python(event)
        found.append(event)
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    return found


def test_a_response(serve: Serve) -> None:
    served = serve(Script(["It", " is", " 5."], usage=Usage(9, 3, 4)), engine={"model": ModelInfo("small")})
    response = create(served, instructions="Be brief.", metadata={"a": "b"}, temperature=0.5)
    assert response.output_text == "It is 5."
    assert response.status == "completed"
    assert response.model == "small"
    assert response.instructions == "Be brief."
    assert (response.metadata, response.temperature, response.top_p) == ({"a": "b"}, 0.5, 1.0)
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens, response.usage.total_tokens) == (9, 3, 12)
    assert response.usage.input_tokens_details.cached_tokens == 4
    assert "Be brief." in served.engine.requests[0].prompt
    body = raw(served).json()
    assert set(body) >= REQUIRED
    Response.model_validate(body)


def test_reasoning_text_and_calls_are_items(serve: Serve) -> None:
    served = serve(f"<think>\nHm.\n</think>\n\nLooking.\n{CALL}\n{SQL_CALL}")
    response = create(served, tools=[WEATHER, SQL])
    assert [item.type for item in response.output] == ["reasoning", "message", "function_call", "custom_tool_call"]
    reasoning, message, weather, sql = response.output
    assert reasoning.type == "reasoning"
    assert reasoning.content is not None
    assert reasoning.content[0].text == "Hm."
    assert message.type == "message"
    assert message.content[0].type == "output_text"
    assert message.content[0].text == "Looking."
    assert weather.type == "function_call"
    assert json.loads(weather.arguments) == {"city": "Oslo"}
    assert sql.type == "custom_tool_call"
    assert sql.input == "SELECT 1"
    assert [tool.type for tool in response.tools] == ["function", "custom"]
    assert len({item.id for item in response.output}) == 4


def test_a_function_that_does_not_say_strict_is_made_strict(serve: Serve) -> None:
    tool = {key: value for key, value in WEATHER.items() if key != "strict"}
    body = raw(serve("Hi"), tools=[tool]).json()
    assert body["tools"][0]["strict"] is True
    assert body["tools"][0]["parameters"]["additionalProperties"] is False


def test_a_refusal(serve: Serve) -> None:
    response = create(serve("<refusal>I will not.</refusal>"))
    [message] = response.output
    assert message.type == "message"
    assert message.content[0].type == "refusal"
    assert message.content[0].refusal == "I will not."


def test_the_limit_of_tokens(serve: Serve) -> None:
    served = serve(Script("one two three", cut=2))
    response = create(served, max_output_tokens=2)
    assert response.status == "incomplete"
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"
    assert response.output_text == "one "
    assert events(served, max_output_tokens=2)[-1]["type"] == "response.incomplete"


def test_a_call_cut_by_the_limit_is_no_call(serve: Serve) -> None:
    served = serve(Script(CALL, cut=10))
    response = create(served, tools=[WEATHER], max_output_tokens=6)
    assert response.output == []
    assert response.status == "incomplete"
    streamed = events(served, tools=[WEATHER], max_output_tokens=6)
    done = [event["item"] for event in streamed if event["type"] == "response.output_item.done"]
    assert [(item["type"], item["status"]) for item in done] == [
        ("function_call", "incomplete"),
    ]
    assert streamed[-1]["response"]["output"] == []


def test_log_probabilities(serve: Serve) -> None:
    served = serve(Script(["Yes", "!"]))
    response = create(served, include=["message.output_text.logprobs"], top_logprobs=1)
    [message] = response.output
    assert message.type == "message"
    assert message.content[0].type == "output_text"
    assert [entry.token for entry in message.content[0].logprobs or ()] == ["Yes", "!"]
    assert served.engine.requests[0].sampling.logprobs == 1
    assert create(served, top_logprobs=1).output_text == "Yes!"
    assert served.engine.requests[1].sampling.logprobs is None


# --- streams ----------------------------------------------------------------------------------------------------------


def test_the_order_of_a_text(serve: Serve) -> None:
    found = events(serve(Script(["It", " is."])))
    assert [event["type"] for event in found] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert found[0]["response"]["status"] == "in_progress"
    assert found[0]["response"]["output"] == []
    assert found[2]["item"]["status"] == "in_progress"
    assert found[2]["item"]["content"] == []
    assert found[3]["part"] == {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    assert found[6]["text"] == "It is."
    assert found[8]["item"] == found[9]["response"]["output"][0]
    assert len({event["response"]["id"] for event in found if "response" in event}) == 1


@pytest.mark.parametrize("cut", [1, 9, None])
def test_reasoning_and_calls_stream(serve: Serve, cut: int | None) -> None:
    served = serve(Script(f"<think>\nHm.\n</think>\n\n{CALL}\n{SQL_CALL}", cut=cut))
    found = events(served, tools=[WEATHER, SQL])

    def joined(kind: str) -> str:
        return "".join(event["delta"] for event in found if event["type"] == kind)

    assert joined("response.reasoning_text.delta") == "Hm."
    assert json.loads(joined("response.function_call_arguments.delta")) == {"city": "Oslo"}
    assert joined("response.custom_tool_call_input.delta") == "SELECT 1"
    added = [event for event in found if event["type"] == "response.output_item.added"]
    assert [(event["output_index"], event["item"]["type"]) for event in added] == [
        (0, "reasoning"),
        (1, "function_call"),
        (2, "custom_tool_call"),
    ]
    assert added[1]["item"]["arguments"] == ""
    assert not any(event["type"].startswith("response.output_text") for event in found)
    done = [event["item"] for event in found if event["type"] == "response.output_item.done"]
    assert done == found[-1]["response"]["output"]


def test_the_clients_own_stream_helper(serve: Serve) -> None:
    served = serve(Script(f"<think>Hm.</think>Looking.\n{CALL}", cut=4))
    with served.client().responses.stream(model="default", input="Hello", tools=[WEATHER]) as stream:
        for _ in stream:
            pass
        response = stream.get_final_response()
    assert response.output_text == "Looking."
    [call] = [item for item in response.output if item.type == "function_call"]
    assert call.parsed_arguments == {"city": "Oslo"}


def test_whole_and_streamed_are_the_same(serve: Serve) -> None:
    def bare(body: dict[str, Any]) -> Any:
        for item in body["output"]:
            del item["id"]
            item.pop("call_id", None)
        return body["output"], body["status"], body["usage"]

    served = serve(Script(f"<think>Hm.</think>Looking.\n{CALL}\n<tool_call>oops</tool_call>", cut=4))
    assert bare(raw(served, tools=LOOSE).json()) == bare(events(served, tools=LOOSE)[-1]["response"])


# --- structured answers -----------------------------------------------------------------------------------------------


class Person(BaseModel):
    name: str
    kind: Literal["human", "cat"]


def test_parse(serve: Serve) -> None:
    served = serve("no idea", '{"name": "Ada", "kind": "human"}')
    response = served.client().responses.parse(model="default", input="Who?", text_format=Person)
    assert response.output_parsed == Person(name="Ada", kind="human")
    assert response.text is not None
    assert response.text.format is not None
    assert response.text.format.type == "json_schema"


def test_an_answer_that_never_holds_is_an_error(serve: Serve) -> None:
    with pytest.raises(openai.InternalServerError, match="No turn of 3 holds"):
        serve("no idea").client().responses.parse(model="default", input="Who?", text_format=Person)


# --- what is kept -----------------------------------------------------------------------------------------------------


def test_a_chain_of_responses(serve: Serve) -> None:
    served = serve(CALL, "4 degrees.", "You're welcome.")
    first = create(served, tools=[WEATHER], instructions="Be brief.")
    [call] = first.output
    assert call.type == "function_call"
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "4"}
    second = create(served, input=[result], previous_response_id=first.id, tools=[WEATHER])
    third = create(served, input="Thanks", previous_response_id=second.id)
    assert third.previous_response_id == second.id
    prompt = served.engine.requests[-1].prompt
    assert "Be brief." not in prompt
    places = [prompt.index(text) for text in ("Hello", "Oslo", "<tool_response>", "4 degrees.", "Thanks")]
    assert places == sorted(places)


def test_a_response_can_be_had_again_and_deleted(serve: Serve) -> None:
    served = serve("Hi")
    client = served.client()
    made = create(served)
    assert client.responses.retrieve(made.id).output_text == "Hi"
    client.responses.delete(made.id)
    for work in (client.responses.retrieve, client.responses.delete):
        with pytest.raises(openai.NotFoundError, match="not found"):
            work(made.id)
    with pytest.raises(openai.BadRequestError) as caught:
        create(served, previous_response_id=made.id)
    assert caught.value.code == "previous_response_not_found"
    assert caught.value.param == "previous_response_id"


def test_a_streamed_response_is_kept_too(serve: Serve) -> None:
    served = serve("Hi")
    response_id = events(served)[-1]["response"]["id"]
    assert served.client().responses.retrieve(response_id).output_text == "Hi"


def test_a_response_that_is_not_to_be_stored(serve: Serve) -> None:
    served = serve("Hi")
    made = create(served, store=False)
    with pytest.raises(openai.NotFoundError):
        served.client().responses.retrieve(made.id)


def said(item: Any) -> str:
    text: str = item.content[0].text
    return text


def test_options_of_the_engine(serve: Serve) -> None:
    served = serve("Hi", engine={"options": ["priority"]})
    client = served.client()
    client.responses.create(model="default", input="x", extra_body={"priority": 3})
    assert served.engine.requests[0].options == {"priority": 3}
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model="default", input="x", extra_body={"mirostat": 1})
    assert (caught.value.code, caught.value.param) == ("unknown_parameter", "mirostat")


def test_local_sampling_reaches_the_engine(serve: Serve) -> None:
    served = serve("Hi")
    create(served, extra_body={"top_k": 0, "min_p": 0.1, "repetition_penalty": 1.2, "seed": 7})
    sampling = served.engine.requests[0].sampling
    assert (sampling.top_k, sampling.min_p, sampling.repetition_penalty, sampling.seed) == (0, 0.1, 1.2, 7)


def test_input_items_are_paged(serve: Serve) -> None:
    served = serve("Hi")
    made = create(served, input=[{"role": "user", "content": text} for text in "abc"])
    pages = served.client().responses.input_items
    assert [said(item) for item in pages.list(made.id, order="asc", limit=2)] == ["a", "b", "c"]
    assert [said(item) for item in pages.list(made.id)] == ["c", "b", "a"]
    for query in ("limit=0", "limit=x", "order=up", "after=nobody"):
        answer = httpx.get(f"{served.url}/v1/responses/{made.id}/input_items?{query}", trust_env=False)
        assert answer.status_code in (400, 404)


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "message", "param", "code"),
    [
        ({"input": None}, "Object missing required field `input`", None, "missing_required_parameter"),
        ({"stop": "x"}, "Unknown parameter: 'stop'.", "stop", "unknown_parameter"),
        (
            {"background": True, "store": False},
            "Background responses need 'store' to be true.",
            "background",
            "invalid_value",
        ),
        (
            {"truncation": "half"},
            "Invalid value: 'half'. Supported values are: 'auto' and 'disabled'.",
            "truncation",
            "invalid_value",
        ),
        (
            {"conversation": "conv_1", "previous_response_id": "resp_1"},
            "Mutually exclusive parameters: 'previous_response_id' and 'conversation'.",
            "previous_response_id",
            "invalid_value",
        ),
        ({"max_tool_calls": 0}, "Expected `int` >= 1, got 0", "max_tool_calls", "invalid_value"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:x"}]}]},
            "Content of type 'input_image' is not supported: only text can be read",
            "input[0].content[0].type",
            "unsupported_content_type",
        ),
        ({"max_output_tokens": 0}, "Expected `int` >= 1, got 0", "max_output_tokens", "invalid_value"),
        (
            {
                "text": {
                    "format": {
                        "type": "json_schema",
                        "name": "N",
                        "strict": True,
                        "schema": {
                            "type": "object",
                            "properties": {"pet": {"oneOf": []}},
                            "required": ["pet"],
                            "additionalProperties": False,
                        },
                    }
                }
            },
            "Invalid schema for response_format 'N': In context=('properties', 'pet'), 'oneOf' is not permitted.",
            "text.format.schema",
            "invalid_json_schema",
        ),
        (
            {"tools": [WEATHER, {**WEATHER, "name": "f", "parameters": {"type": "object", "properties": {}}}]},
            "Invalid schema for function 'f': In context=(), 'additionalProperties' is required to be supplied and to "
            "be false.",
            "tools[1].parameters",
            "invalid_function_parameters",
        ),
        (
            {"text": {"format": {"type": "json_object"}}},
            "Response input messages must contain the word 'json' in some form to use 'text.format' of type "
            "'json_object'.",
            "input",
            None,
        ),
    ],
)
def test_what_is_wrong_is_a_400(
    serve: Serve, fields: dict[str, Any], message: str, param: str | None, code: str | None
) -> None:
    served = serve("never")
    answer = raw(served, **fields)
    error = answer.json()["error"]
    assert answer.status_code == 400
    assert (error["message"], error["param"], error["code"]) == (message, param, code)
    assert error["type"] == "invalid_request_error"
    assert served.engine.requests == []


@pytest.mark.parametrize("stream", [False, True])
def test_a_dead_engine_is_a_503(serve: Serve, stream: bool) -> None:
    served = serve("Hi")
    served.engine.failure = EngineUnavailableError("The engine is gone")
    assert raw(served, stream=stream).status_code == 503
    served.engine.failure = None
    assert raw(served, stream=stream).status_code == 200


def test_an_engine_that_dies_in_the_middle(serve: Serve) -> None:
    served = serve(Script(["one ", "two ", "three"], dies_after=2))
    found = events(served)
    assert found[-1]["type"] == "response.failed"
    assert found[-1]["response"]["status"] == "failed"
    assert found[-1]["response"]["error"]["code"] == "server_error"
    assert "died" in found[-1]["response"]["error"]["message"]
