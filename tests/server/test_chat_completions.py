from __future__ import annotations

import asyncio
import gzip
import json
import socket
import threading
from typing import Any, Literal

import httpx
import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import BaseModel

from isogloss.chat import Chat
from isogloss.dialects import get_dialect
from isogloss.engines import ModelInfo, TokenLogprob, Usage
from isogloss.engines.scripted import Script, ScriptedEngine
from isogloss.errors import EngineUnavailableError
from isogloss.server import ApiKey
from isogloss.server.completion_store import CompletionStore
from isogloss.server.database import StateUnavailableError

from .conftest import Serve, Served, serving

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
SQL = {"type": "custom", "custom": {"name": "sql", "description": "Run it."}}
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
SQL_CALL = '<tool_call>\n{"name": "sql", "arguments": {"input": "SELECT 1"}}\n</tool_call>'
HELLO: list[Any] = [{"role": "user", "content": "Hello"}]


SECRET = ApiKey("me", "secret")


def create(served: Served, **fields: Any) -> ChatCompletion:
    completion = served.client().chat.completions.create(model="default", messages=HELLO, **fields)
    assert isinstance(completion, ChatCompletion)
    return completion


def raw(served: Served, body: object, **options: Any) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx.post(f"{served.url}/v1/chat/completions", content=content, trust_env=False, **options)


def ask(**fields: Any) -> dict[str, Any]:
    return {"model": "default", "messages": HELLO, **fields}


def chunks(served: Served, **fields: Any) -> list[dict[str, Any]]:
    """The chunks of a stream as they are on the wire; the end is checked."""
    response = raw(served, ask(stream=True, **fields))
    assert response.headers["content-type"].startswith("text/event-stream")
    *events, last, end = response.text.split("\n\n")
    assert last == "data: [DONE]"
    assert end == ""
    found = [json.loads(event.removeprefix("data: ")) for event in events]
    for chunk in found:
        if '"custom"' not in json.dumps(chunk):  # the client's types know no custom calls in a stream
            ChatCompletionChunk.model_validate(chunk, strict=True)
    return found


# --- whole answers ----------------------------------------------------------------------------------------------------


def test_an_answer(serve: Serve) -> None:
    served = serve(Script(["It", " is", " 5."], usage=Usage(9, 3, 4)), engine={"model": ModelInfo("small")})
    completion = create(served)
    [choice] = completion.choices
    assert choice.message.content == "It is 5."
    assert choice.message.tool_calls is None
    assert choice.message.refusal is None
    assert choice.finish_reason == "stop"
    assert choice.logprobs is None
    assert completion.model == "small"
    assert completion.object == "chat.completion"
    assert completion.id.startswith("chatcmpl-")
    assert completion.usage is not None
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (9, 3)
    assert completion.usage.total_tokens == 12
    assert completion.usage.prompt_tokens_details is not None
    assert completion.usage.prompt_tokens_details.cached_tokens == 4
    ChatCompletion.model_validate(raw(served, ask()).json(), strict=True)


def test_calls(serve: Serve) -> None:
    served = serve(f"Looking.\n{CALL}\n{SQL_CALL}")
    [choice] = create(served, tools=[WEATHER, SQL]).choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "Looking."
    assert choice.message.tool_calls is not None
    weather, sql = choice.message.tool_calls
    assert weather.type == "function"
    assert weather.function.name == "get_weather"
    assert json.loads(weather.function.arguments) == {"city": "Oslo"}
    assert sql.type == "custom"
    assert (sql.custom.name, sql.custom.input) == ("sql", "SELECT 1")
    assert weather.id != sql.id


def test_a_call_alone_has_no_content(serve: Serve) -> None:
    [choice] = create(serve(CALL), tools=[WEATHER]).choices
    assert choice.message.content is None


def test_reasoning_has_its_own_field(serve: Serve) -> None:
    served = serve(Script(["<think>", "Hm.", "</think>", "Yes."]))
    body = raw(served, ask()).json()
    assert body["choices"][0]["message"]["reasoning_content"] == "Hm."
    assert body["choices"][0]["message"]["content"] == "Yes."
    assert body["usage"]["completion_tokens_details"]["reasoning_tokens"] == 2


def test_a_refusal(serve: Serve) -> None:
    [choice] = create(serve("<refusal>I will not.</refusal>")).choices
    assert choice.message.refusal == "I will not."
    assert choice.message.content is None
    assert choice.finish_reason == "stop"


def test_an_empty_answer_is_empty_text(serve: Serve) -> None:
    [choice] = create(serve("")).choices
    assert choice.message.content == ""


@pytest.mark.parametrize("tools", [[], [WEATHER]])
def test_the_limit_of_tokens(serve: Serve, tools: list[Any]) -> None:
    served = serve(Script(CALL, cut=10))
    [choice] = create(served, tools=tools, max_completion_tokens=5).choices
    assert choice.finish_reason == "length"
    assert choice.message.tool_calls is None
    assert choice.message.content == ""
    assert served.engine.requests[0].sampling.max_tokens == 5
    assert create(served, max_tokens=3).choices[0].finish_reason == "length"


def test_what_looks_like_a_call_and_is_none_is_kept_as_text(serve: Serve) -> None:
    served = serve('<tool_call>{"name": 5}</tool_call>')
    [choice] = create(served, tools=[WEATHER]).choices
    assert choice.finish_reason == "stop"
    assert choice.message.tool_calls is None
    assert choice.message.content == '<tool_call>{"name": 5}</tool_call>'


def test_several_choices(serve: Serve) -> None:
    served = serve("one", "two", "three")
    completion = create(served, n=3, seed=7)
    assert sorted(choice.message.content or "" for choice in completion.choices) == ["one", "three", "two"]
    assert [choice.index for choice in completion.choices] == [0, 1, 2]
    assert sorted(request.sampling.seed or 0 for request in served.engine.requests) == [7, 8, 9]
    assert completion.usage is not None
    assert completion.usage.completion_tokens == 3


def test_log_probabilities(serve: Serve) -> None:
    alternatives = (("Yes", -0.1, b"Yes"), ("No", -2.5, b"No"))
    script = Script(
        ["Yes", "!"], logprobs=(TokenLogprob("Yes", -0.1, b"Yes", alternatives), TokenLogprob("!", 0, b"!"))
    )
    served = serve(script)
    [choice] = create(served, logprobs=True, top_logprobs=2).choices
    assert choice.logprobs is not None
    assert choice.logprobs.content is not None
    first, second = choice.logprobs.content
    assert (first.token, first.logprob, first.bytes) == ("Yes", -0.1, [89, 101, 115])
    assert [(top.token, top.logprob) for top in first.top_logprobs] == [("Yes", -0.1), ("No", -2.5)]
    assert second.token == "!"
    assert served.engine.requests[0].sampling.logprobs == 2
    streamed = [chunk["choices"][0]["logprobs"] for chunk in chunks(served, logprobs=True)]
    tokens = [entry["token"] for entries in streamed if entries for entry in entries["content"]]
    assert tokens == ["Yes", "!"]


def test_log_probabilities_of_a_refusal(serve: Serve) -> None:
    [choice] = create(serve(Script(["<refusal>", "No", ".", "</refusal>"])), logprobs=True).choices
    assert choice.logprobs is not None
    assert choice.logprobs.refusal is not None
    assert [entry.token for entry in choice.logprobs.refusal] == ["No", "."]


def test_sampling_reaches_the_engine(serve: Serve) -> None:
    served = serve("one END two")
    [choice] = create(
        served,
        temperature=0.5,
        top_p=0.9,
        presence_penalty=1,
        frequency_penalty=-1,
        logit_bias={"17": -100},
        stop=[" END"],
        seed=3,
        extra_body={"top_k": 40, "min_p": 0.05, "repeat_penalty": 1.1},
        reasoning_effort="low",
        user="me",
        metadata={"a": "b"},
        store=False,
        verbosity="low",
        prediction={"type": "content", "content": "x"},
        service_tier="auto",
        modalities=["text"],
    ).choices
    assert choice.message.content == "one"
    assert choice.finish_reason == "stop"
    sampling = served.engine.requests[0].sampling
    assert (sampling.temperature, sampling.top_p, sampling.seed) == (0.5, 0.9, 3)
    assert (sampling.presence_penalty, sampling.frequency_penalty) == (1, -1)
    assert sampling.logit_bias == {17: -100}
    assert (sampling.top_k, sampling.min_p, sampling.repetition_penalty) == (40, 0.05, 1.1)


def test_options_of_the_engine(serve: Serve) -> None:
    served = serve("Hi", engine={"options": ["cache_salt", "priority", "min_p", "user"]})
    client = served.client()
    asked: Any = {"model": "default", "messages": [{"role": "user", "content": "x"}]}
    extra = {"cache_salt": "me", "priority": 3, "min_p": 0.1, "user": "me"}
    client.chat.completions.create(**asked, n=2, extra_body=extra)
    for request in served.engine.requests:
        assert request.options == {"cache_salt": "me", "priority": 3}
        assert request.sampling.min_p == 0.1  # a name that the API has, too, is the API's
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(**asked, extra_body={"mirostat": 1})
    assert (caught.value.code, caught.value.param) == ("unknown_parameter", "mirostat")


# --- streams ----------------------------------------------------------------------------------------------------------


def test_any_text_is_streamed_as_it_is(serve: Serve) -> None:
    pieces = ['"', "\\", "a\0b", "\n", "\u2028", "\x7f", "日", "{}", "[]"]
    served = serve(Script(pieces))
    for count in (1, 2):
        texts: dict[int, str] = {}
        for chunk in chunks(served, n=count):
            for choice in chunk["choices"]:
                said = choice["delta"].get("content") or ""
                texts[choice["index"]] = texts.get(choice["index"], "") + said
        assert texts == dict.fromkeys(range(count), "".join(pieces))


def test_what_was_said_is_told_though_it_cannot_be_kept(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise StateUnavailableError("The database is away")

    monkeypatch.setattr(CompletionStore, "add", fail)
    said = raw(serve("Hi <"), ask(stream=True, store=True)).text  # the `<` may be markup until the end
    *told, error = [json.loads(line.removeprefix("data: ")) for line in said.split("\n\n") if line]
    assert error["error"]["code"] == "state_unavailable"
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in told) == "Hi <"


def test_the_order_of_a_stream(serve: Serve) -> None:
    served = serve(Script(["<think>", "Hm.", "</think>", "It", " is."], usage=Usage(4, 5)))
    found = chunks(served, stream_options={"include_usage": True})
    deltas = [chunk["choices"][0]["delta"] for chunk in found if chunk["choices"]]
    assert deltas == [
        {"role": "assistant", "content": "", "refusal": None},
        {"reasoning_content": "Hm."},
        {"content": "It"},
        {"content": " is."},
        {},
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in found[:-1]] == [None, None, None, None, "stop"]
    assert [chunk["usage"] for chunk in found[:-1]] == [None] * 5
    assert found[-1]["choices"] == []
    assert found[-1]["usage"]["total_tokens"] == 9
    assert len({(chunk["id"], chunk["created"], chunk["model"]) for chunk in found}) == 1
    assert "usage" not in chunks(served)[-1]


@pytest.mark.parametrize("cut", [1, 7, None])
def test_calls_stream_as_the_client_adds_them_up(serve: Serve, cut: int | None) -> None:
    served = serve(Script(f"Looking.\n{CALL}\n{SQL_CALL}", cut=cut))
    found = chunks(served, tools=[WEATHER, SQL])
    calls = [entry for chunk in found for entry in chunk["choices"][0]["delta"].get("tool_calls", ())]
    assert all("index" in entry for entry in calls)
    first = [entry for entry in calls if "id" in entry]
    assert [(entry["index"], entry["type"]) for entry in first] == [(0, "function"), (1, "custom")]
    assert first[0]["function"] == {"name": "get_weather", "arguments": ""}
    arguments = "".join(entry["function"]["arguments"] for entry in calls if "function" in entry)
    assert json.loads(arguments) == {"city": "Oslo"}
    assert "".join(entry["custom"]["input"] for entry in calls if "custom" in entry) == "SELECT 1"
    assert found[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_the_clients_own_stream_helper(serve: Serve) -> None:
    served = serve(Script(f"Looking.\n{CALL}", cut=3))
    with served.client().chat.completions.stream(model="default", messages=HELLO, tools=[strict(WEATHER)]) as stream:
        kinds = [event.type for event in stream]
        completion = stream.get_final_completion()
    assert "content.delta" in kinds
    assert "tool_calls.function.arguments.done" in kinds
    assert completion.choices[0].message.content == "Looking."
    [call] = completion.choices[0].message.tool_calls or []
    assert call.function.name == "get_weather"
    assert call.function.parsed_arguments == {"city": "Oslo"}


def test_a_call_cut_by_the_limit_streams_and_ends_with_length(serve: Serve) -> None:
    found = chunks(serve(Script(CALL[:60], cut=5, finish="length")), tools=[WEATHER])
    assert found[-1]["choices"][0]["finish_reason"] == "length"


def test_choices_stream_side_by_side(serve: Serve) -> None:
    found = chunks(serve(Script("aaa", cut=1), Script("bbb", cut=1)), n=2)
    texts: dict[int, str] = {0: "", 1: ""}
    for chunk in found:
        [choice] = chunk["choices"]
        texts[choice["index"]] += choice["delta"].get("content") or ""
    assert sorted(texts.values()) == ["aaa", "bbb"]
    assert sum(chunk["choices"][0]["finish_reason"] == "stop" for chunk in found) == 2


def test_many_asynchronous_clients_at_once(serve: Serve) -> None:
    async def one(client: openai.AsyncOpenAI) -> str:
        stream = await client.chat.completions.create(model="default", messages=HELLO, stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    async def work() -> list[str]:
        async with served.async_client() as client:
            return await asyncio.gather(*[one(client) for _ in range(8)])

    served = serve(Script("all of it", cut=2))
    assert asyncio.run(work()) == ["all of it"] * 8


# --- structured answers -----------------------------------------------------------------------------------------------


class Person(BaseModel):
    name: str
    kind: Literal["human", "cat"]
    age: int | None


def strict(tool: dict[str, Any]) -> Any:
    return {**tool, "function": {**tool["function"], "strict": True}}


def test_parse(serve: Serve) -> None:
    served = serve("no idea", '{"name": "Ada", "kind": "human", "age": null}')
    completion = served.client().chat.completions.parse(model="default", messages=HELLO, response_format=Person)
    assert completion.choices[0].message.parsed == Person(name="Ada", kind="human", age=None)
    assert "is not JSON" in served.engine.requests[1].prompt


def test_parse_raises_on_a_cut_answer(serve: Serve) -> None:
    served = serve(Script('{"name": "A', finish="length"))
    with pytest.raises(openai.LengthFinishReasonError):
        served.client().chat.completions.parse(model="default", messages=HELLO, response_format=Person)


def test_parse_of_a_refusal(serve: Serve) -> None:
    served = serve("<refusal>No.</refusal>")
    completion = served.client().chat.completions.parse(model="default", messages=HELLO, response_format=Person)
    assert completion.choices[0].message.parsed is None
    assert completion.choices[0].message.refusal == "No."


def test_an_answer_that_never_holds_is_an_error(serve: Serve) -> None:
    served = serve("no idea")
    with pytest.raises(openai.InternalServerError) as caught:
        served.client().chat.completions.parse(model="default", messages=HELLO, response_format=Person)
    assert caught.value.status_code == 502
    assert caught.value.code == "invalid_output"
    assert "No turn of 3 holds" in caught.value.message


# --- errors -----------------------------------------------------------------------------------------------------------


def error_of(response: httpx.Response) -> dict[str, Any]:
    assert set(response.json()) == {"error"}
    error: dict[str, Any] = response.json()["error"]
    assert {"message", "type", "param", "code"} <= set(error)
    return error


SCHEMA = {"type": "object", "properties": {"a": {"type": "object", "properties": {}, "required": []}}}


@pytest.mark.parametrize(
    ("fields", "message", "param", "code"),
    [
        (
            {"messages": [{"role": "robot", "content": "x"}]},
            "Invalid value: 'robot'. Supported values are: 'system', 'developer', 'user', 'assistant', and 'tool'.",
            "messages[0].role",
            "invalid_value",
        ),
        ({"messages": [{"role": "user"}]}, "Object missing required field `content`", "messages[0]", "missing"),
        ({"model": None}, "you must provide a model parameter", "model", "missing_required_parameter"),
        ({"typical_p": 1}, "Unknown parameter: 'typical_p'.", "typical_p", "unknown_parameter"),
        ({"top_k": -1}, "Expected `int` >= 0, got -1", "top_k", "invalid_value"),
        ({"min_p": 2}, "Expected `float` <= 1, got 2", "min_p", "invalid_value"),
        ({"repetition_penalty": 0}, "Expected `float` > 0, got 0", "repetition_penalty", "invalid_value"),
        (
            {"repetition_penalty": 1.1, "repeat_penalty": 1.1},
            "'repeat_penalty' and 'repetition_penalty' are the same: give one of them.",
            "repeat_penalty",
            "invalid_value",
        ),
        (
            {"functions": []},
            "Unsupported parameter: 'functions'. It is deprecated: use 'tools'.",
            "functions",
            "unsupported_parameter",
        ),
        ({"temperature": 3}, "Expected `float` <= 2, got 3", "temperature", "invalid_value"),
        ({"temperature": "hot"}, "Expected `float`, got `str`", "temperature", "invalid_type"),
        ({"n": 0}, "Expected `int` >= 1, got 0", "n", "invalid_value"),
        ({"max_tokens": 0}, "Expected `int` >= 1, got 0", "max_tokens", "invalid_value"),
        (
            {"max_tokens": 1, "max_completion_tokens": 1},
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
            "max_tokens",
            "invalid_value",
        ),
        (
            {"top_logprobs": 2},
            "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.",
            "top_logprobs",
            "invalid_value",
        ),
        ({"logprobs": True, "top_logprobs": 21}, "Expected `int` <= 20, got 21", "top_logprobs", "invalid_value"),
        (
            {"stream_options": {"include_usage": True}},
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            "stream_options",
            "invalid_value",
        ),
        ({"stop": ["a"] * 5}, "Expected `array` of length <= 4, got 5 stop strings", "stop", "invalid_value"),
        ({"stop": ""}, "Expected `str` of length >= 1", "stop", "invalid_value"),
        ({"logit_bias": {"x": 1}}, "Expected a token id, got 'x'", "logit_bias.x", "invalid_value"),
        (
            {"modalities": ["audio"]},
            "Invalid value: 'audio'. Supported values are: 'text'.",
            "modalities[0]",
            "invalid",
        ),
        (
            {"response_format": {"type": "object"}},
            "Invalid value: 'object'. Supported values are: 'json_object', 'json_schema', and 'text'.",
            "response_format.type",
            "invalid_value",
        ),
        (
            {"response_format": {"type": "json_object"}},
            "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
            "messages",
            None,
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "N", "strict": True, "schema": {"type": "object", "properties": {}}},
                }
            },
            "Invalid schema for response_format 'N': In context=(), 'additionalProperties' is required to be supplied "
            "and to be false.",
            "response_format",
            None,
        ),
        (
            {
                "tools": [
                    WEATHER,
                    {
                        "type": "function",
                        "function": {
                            "name": "f",
                            "strict": True,
                            "parameters": {
                                "type": "object",
                                "properties": {"id": {"type": "string"}},
                                "additionalProperties": False,
                            },
                        },
                    },
                ]
            },
            "Invalid schema for function 'f': In context=(), 'required' is required to be supplied and to be an array "
            "including every key in properties. Missing 'id'.",
            "tools[1].function.parameters",
            "invalid_function_parameters",
        ),
    ],
)
def test_what_is_wrong_is_a_400(
    serve: Serve, fields: dict[str, Any], message: str, param: str, code: str | None
) -> None:
    served = serve("never")
    response = raw(served, ask(**fields))
    error = error_of(response)
    assert response.status_code == 400
    assert error["message"] == message
    assert error["type"] == "invalid_request_error"
    assert error["param"] == param
    assert error["code"] == code or (code is not None and error["code"].startswith(code))
    assert served.engine.requests == []


def test_every_violation_of_the_strict_subset_is_listed(serve: Serve) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "N", "strict": True, "schema": SCHEMA}}
    error = error_of(raw(serve("never"), ask(response_format=form)))
    assert len(error["violations"]) > 1
    assert error["message"].endswith(error["violations"][0]["message"])
    assert {violation["pointer"] for violation in error["violations"]} == {"", "/properties/a"}


def test_the_client_raises_its_own_errors(serve: Serve) -> None:
    client = serve("never", keys=(SECRET,)).client(api_key="wrong")
    with pytest.raises(openai.AuthenticationError) as wrong:
        client.chat.completions.create(model="default", messages=HELLO)
    assert wrong.value.code == "invalid_api_key"
    client = serve("never").client()
    with pytest.raises(openai.NotFoundError) as unknown:
        client.chat.completions.create(model="gpt-4o", messages=HELLO)
    assert unknown.value.code == "model_not_found"
    assert "'default'" in unknown.value.message
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model="default", messages=[])


def test_the_key_opens(serve: Serve) -> None:
    served = serve("Hi", keys=(SECRET,))
    client = served.client(api_key="secret")
    completion = client.chat.completions.create(model="default", messages=HELLO)
    assert completion.choices[0].message.content == "Hi"
    assert raw(served, ask()).status_code == 401
    assert error_of(raw(served, ask()))["code"] == "missing_api_key"
    assert error_of(raw(served, ask(), headers={"authorization": "Basic secret"}))["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[1]", b'"x"', b'{"a": "\xff"}', b'{"a": NaN}', b'{"a": "\\ud800"}', b'{"a":' * 50_000]
)
def test_a_body_that_is_no_json_object(serve: Serve, body: bytes) -> None:
    response = raw(serve("never"), body)
    assert response.status_code == 400
    assert error_of(response)["code"] == "invalid_json"


def test_a_lone_surrogate_is_called_that(serve: Serve) -> None:
    error = error_of(raw(serve("never"), b'{"model": "default", "messages": [{"role": "user", "content": "\\ud800"}]}'))
    assert "a lone surrogate, U+D800" in error["message"]


def test_a_compressed_body_is_a_415(serve: Serve) -> None:
    response = raw(serve("never"), gzip.compress(json.dumps(ask()).encode()), headers={"content-encoding": "gzip"})
    assert response.status_code == 415
    assert "'gzip' is not supported: send the body of the request uncompressed" in error_of(response)["message"]


@pytest.mark.parametrize("path", ["/", "/health", "/v1/models"])
def test_heads_of_answers(serve: Serve, path: str) -> None:
    url = serve("never").url + path
    head, whole = (httpx.request(method, url, trust_env=False) for method in ("HEAD", "GET"))
    assert (head.status_code, head.content) == (200, b"")
    for name in ("content-type", "content-length"):
        assert head.headers[name] == whole.headers[name]


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_the_limit(serve: Serve, chunked: bool) -> None:
    served = serve("never", max_body_bytes=1000)
    body = json.dumps(ask(user="x" * 1000)).encode()
    content = iter([body[:500], body[500:]]) if chunked else body
    response = httpx.post(f"{served.url}/v1/chat/completions", content=content, trust_env=False)
    assert response.status_code == 413
    assert error_of(response)["code"] == "request_too_large"


def test_ten_megabytes_of_text(serve: Serve) -> None:
    served = serve("Hi")
    response = raw(served, {"model": "default", "messages": [{"role": "user", "content": "word " * 2_000_000}]})
    assert response.json()["choices"][0]["message"]["content"] == "Hi"
    assert len(served.engine.requests[0].prompt) > 10_000_000


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/v1/nothing", 404), ("PUT", "/v1/chat/completions", 405)]
)
def test_unknown_urls(serve: Serve, method: str, path: str, status: int) -> None:
    response = httpx.request(method, serve("never").url + path, trust_env=False)
    assert response.status_code == status
    assert path in error_of(response)["message"]


# --- engines that fail ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_a_dead_engine_is_a_503_and_comes_back(serve: Serve, stream: bool) -> None:
    served = serve("Hi")
    served.engine.failure = EngineUnavailableError("The engine is gone")
    response = raw(served, ask(stream=stream))
    assert response.status_code == 503
    assert error_of(response)["message"] == "The engine is gone"
    assert error_of(response)["code"] == "engine_unavailable"
    assert httpx.get(f"{served.url}/health", trust_env=False).status_code == 503
    assert httpx.get(f"{served.url}/v1/models", trust_env=False).status_code in (200, 503)
    served.engine.failure = None
    assert raw(served, ask(stream=stream)).status_code == 200
    assert httpx.get(f"{served.url}/health", trust_env=False).json() == {"status": "ok"}


def test_an_engine_that_is_dead_at_the_start() -> None:
    failures: list[EngineUnavailableError] = [EngineUnavailableError("not yet")]

    class Late(ScriptedEngine):
        async def start(self) -> None:
            if failures:
                raise failures[0]

    with serving(Chat(Late("Hi"), get_dialect("hermes"))) as served:
        assert error_of(raw(served, ask()))["message"] == "not yet"
        failures.clear()
        assert raw(served, ask()).json()["choices"][0]["message"]["content"] == "Hi"


def test_an_engine_that_dies_in_the_middle(serve: Serve) -> None:
    served = serve(Script(["one ", "two ", "three"], dies_after=2))
    assert raw(served, ask()).status_code == 503
    response = raw(served, ask(stream=True))
    assert response.status_code == 200
    events = [json.loads(event.removeprefix("data: ")) for event in response.text.split("\n\n") if event]
    assert "[DONE]" not in response.text
    assert events[-1]["error"]["code"] == "engine_unavailable"
    with pytest.raises(openai.APIError, match="died"):
        for _ in served.client().chat.completions.create(model="default", messages=HELLO, stream=True):
            pass


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_goes_away_stops_the_generation(serve: Serve, stream: bool) -> None:
    begun, stopped = threading.Event(), threading.Event()

    async def hold(position: int) -> None:
        if position == 2:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()

    served = serve(Script(["a", "b", "c"]), engine={"before_piece": hold})
    address = httpx.URL(served.url)
    body = json.dumps(ask(stream=stream)).encode()
    with socket.create_connection((address.host, address.port)) as connection:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: here\r\ncontent-length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        assert begun.wait(30)
    assert stopped.wait(30)
    httpx.get(f"{served.url}/health", trust_env=False)  # a turn of the server's loop
    assert served.engine.running == 0
    assert served.engine.abandoned == 1
