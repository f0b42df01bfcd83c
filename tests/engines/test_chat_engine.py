"""Conversations over a chat endpoint: our own server on loopback where it works, raw answers where it does not."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
import uvicorn

from isogloss.chat import Chat
from isogloss.dialects import get_dialect
from isogloss.engines import Chunk, GenerationRequest, ModelInfo, Sampling, TokenLogprob, Usage
from isogloss.engines._endpoint import EngineBusyError
from isogloss.engines.chat import ChatEngine
from isogloss.engines.scripted import Script, ScriptedEngine
from isogloss.errors import (
    EngineCapabilityError,
    EngineError,
    EngineTimeoutError,
    EngineUnavailableError,
    OutputError,
)
from isogloss.events import Event, Piece, TextDelta, ToolCallDelta, collect
from isogloss.messages import (
    AssistantMessage,
    Conversation,
    DeveloperMessage,
    ResponseFormat,
    SystemMessage,
    Tool,
    ToolCall,
    ToolChoice,
    ToolMessage,
    UserMessage,
)
from isogloss.server import create_app
from isogloss.server.auth import ApiKey
from isogloss.server.service import ServerOptions

pytestmark = pytest.mark.anyio

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = Tool("get_weather", "The weather.", CITY, strict=True)
LOOSE = Tool("get_weather", "The weather.", CITY)
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
WRONG_CALL = CALL.replace("city", "town")
MADE_UP = "\n<tool_response>\nsunny\n</tool_response>\nIt is sunny."
ASK = GenerationRequest(messages=({"role": "user", "content": "a"},))
QUESTION = Conversation([UserMessage("The weather in Oslo?")], tools=[WEATHER])


class OwnServer:
    """Our server over a scripted engine. Its dialect is not the one that is spoken through it."""

    def __init__(self, url: str, engine: ScriptedEngine) -> None:
        self.url = url
        self.engine = engine


@asynccontextmanager
async def own_server(
    *scripts: str | Script, dialect: str = "gemini", api_key: str | None = None, **options: Any
) -> AsyncIterator[OwnServer]:
    engine = ScriptedEngine(scripts, takes_grammar=False, **options)
    keys = () if api_key is None else (ApiKey("me", api_key),)
    app = create_app(Chat(engine, get_dialect(dialect)), ServerOptions(keys=keys))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, ws="none", http="h11"))
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0)
        assert not task.done()
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield OwnServer(f"http://127.0.0.1:{port}", engine)
    finally:
        server.should_exit = True
        await task


@asynccontextmanager
async def started(url: str, **options: Any) -> AsyncIterator[ChatEngine]:
    engine = ChatEngine(url, **options)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.close()


@asynccontextmanager
async def raw_server(*answers: bytes | None) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """Gives these answers, one a connection; ``None`` keeps silent. Also the bodies that were sent to it."""
    waiting = iter(answers)
    bodies: list[dict[str, Any]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if b"content-length: " in head:
            length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
            bodies.append(json.loads(await reader.readexactly(length)))
        data = next(waiting)
        if data is None:
            await reader.read()
        else:
            writer.write(data)
        writer.close()
        await writer.wait_closed()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}", bodies


def answer(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def refusal(status: str, message: str, *headers: str, **error: Any) -> bytes:
    return answer(json.dumps({"error": {"message": message, **error}}).encode(), status, *headers)


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def stream(*chunks: Mapping[str, Any], done: bool = True, newline: str = "\n") -> bytes:
    events = [f"data: {json.dumps(each)}" for each in chunks] + ["data: [DONE]"] * done
    return answer("".join(event + 2 * newline for event in events).encode())


def calling(index: int, arguments: str, **first: Any) -> dict[str, Any]:
    name = {"name": first.pop("name")} if "name" in first else {}
    return chunk(tool_calls=[{"index": index, **first, "function": {**name, "arguments": arguments}}])


MODELS = answer(b'{"object":"list","data":[{"id":"m","max_model_len":64}]}')
HELLO = stream(chunk(content="Hello"), chunk("stop"))


async def chunks_of(engine: ChatEngine, request: GenerationRequest = ASK) -> list[Chunk]:
    async with aclosing(engine.generate(request)) as chunks:
        return [chunk async for chunk in chunks]


async def turn_of(engine: ChatEngine, conversation: Conversation, dialect: str = "hermes") -> AssistantMessage:
    return await Chat(engine, get_dialect(dialect)).stream(conversation).message()


# --- in-band, over our own server -------------------------------------------------------------------------------------


async def test_tools_are_told_in_the_messages_and_calls_are_scanned() -> None:
    async with own_server(Script("Looking.\n" + CALL, cut=5)) as server, started(server.url) as engine:
        message = await turn_of(engine, QUESTION)
        model = await engine.model()
        await engine.health()
    assert message.text == "Looking."
    assert [(call.name, call.arguments) for call in message.tool_calls] == [("get_weather", {"city": "Oslo"})]
    assert message.finish == "tool_calls"
    assert model.id == "scripted"
    assert "get_weather" in server.engine.requests[0].prompt


async def test_it_streams() -> None:
    gate = asyncio.Event()

    async def hold(position: int) -> None:
        if position == 2:
            await gate.wait()

    async with (
        own_server(Script("abcdef", cut=1), before_piece=hold) as server,
        started(server.url) as engine,
    ):
        turn = Chat(engine, get_dialect("hermes")).stream(Conversation([UserMessage("Go")]))
        said = []
        async with aclosing(turn):
            async for event in turn:
                if isinstance(event, TextDelta):
                    said.append(event.text)
                    gate.set()
    assert "".join(said) == "abcdef"
    assert len(said) > 1


async def test_leaving_early_frees_the_endpoint() -> None:
    held = asyncio.Event()

    async def hold(position: int) -> None:
        if position == 2:
            try:
                await asyncio.Event().wait()
            finally:
                held.set()

    async with (
        own_server(Script("abcdef", cut=1), before_piece=hold) as server,
        started(server.url) as engine,
    ):
        async with aclosing(engine.generate(ASK)) as chunks:
            async for chunk in chunks:
                if chunk.pieces:
                    break
            assert server.engine.running == 1
        await asyncio.wait_for(held.wait(), 60)
        assert (server.engine.running, server.engine.abandoned) == (0, 1)


async def test_many_at_once() -> None:
    scripts = [Script(f"answer {number:2}", cut=1) for number in range(12)]
    async with own_server(*scripts) as server, started(server.url) as engine:
        chat = Chat(engine, get_dialect("hermes"))
        turns = [chat.stream(Conversation([UserMessage("Go")])) for _ in scripts]
        said = await asyncio.gather(*[turn.message() for turn in turns])
    assert sorted(message.text for message in said) == [f"answer {number:2}" for number in range(12)]


async def test_the_limit_cuts() -> None:
    async with own_server(Script("abcdef", cut=1)) as server, started(server.url) as engine:
        turn = Chat(engine, get_dialect("hermes")).stream(Conversation([UserMessage("Go")]), Sampling(max_tokens=3))
        message = await turn.message()
    assert (message.text, message.finish) == ("abc", "length")


async def test_a_wrong_call_is_told_and_made_again() -> None:
    async with own_server(WRONG_CALL, CALL) as server, started(server.url) as engine:
        message = await turn_of(engine, QUESTION)
    assert [call.arguments for call in message.tool_calls] == [{"city": "Oslo"}]
    assert "do not satisfy their schema" in server.engine.requests[1].prompt


async def test_an_answer_that_never_satisfies_its_schema() -> None:
    form = ResponseFormat.json_schema(CITY)
    async with own_server('{"town": 1}') as server, started(server.url) as engine:
        with pytest.raises(OutputError, match="No turn of 3 holds what was asked"):
            await turn_of(engine, Conversation([UserMessage("A city")], response_format=form))
    assert len(server.engine.requests) == 3


async def test_keys_are_given_or_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "k")
    async with own_server("Hi", api_key="k") as server:
        for options in ({"api_key": "k"}, {"api_key_env": "SOME_KEY"}):
            async with started(server.url, **options) as engine:
                assert (await turn_of(engine, Conversation([UserMessage("Hello")]))).text == "Hi"
        with pytest.raises(EngineUnavailableError, match="answered 401: "):
            await ChatEngine(server.url, api_key="wrong").start()
        with pytest.raises(EngineUnavailableError, match="variable NO_KEY, which should hold the endpoint's key"):
            await ChatEngine(server.url, api_key_env="NO_KEY").start()


async def test_log_probabilities_and_usage() -> None:
    logprobs = (TokenLogprob("Hi", -0.5, b"Hi", (("Hi", -0.5, b"Hi"), ("Ho", -1.5, b"Ho"))),)
    script = Script(["Hi"], logprobs=logprobs, usage=Usage(7, 1, 2))
    async with own_server(script) as server, started(server.url) as engine:
        chunks = await chunks_of(
            engine, GenerationRequest(messages=ASK.messages, sampling=Sampling(logprobs=2, max_tokens=5))
        )
    assert [each for chunk in chunks for each in chunk.logprobs] == list(logprobs)
    assert chunks[-1] == Chunk(finish="stop", usage=Usage(7, 1, 2))


# --- natively, over our own server ------------------------------------------------------------------------------------


async def test_native_tool_calls() -> None:
    scripts = [Script("Looking.\n" + CALL + CALL.replace("Oslo", "Rome"), cut=5), "It is 5 degrees."]
    async with own_server(*scripts, dialect="hermes") as server, started(server.url, native=True) as engine:
        message = await turn_of(engine, QUESTION, "gemini")
        assert message.text == "Looking."
        assert [call.arguments for call in message.tool_calls] == [{"city": "Oslo"}, {"city": "Rome"}]
        assert message.finish == "tool_calls"
        results = [ToolMessage(call.id, call.name, "5") for call in message.tool_calls]
        whole = Conversation([*QUESTION.messages, message, *results], tools=[WEATHER])
        assert (await turn_of(engine, whole, "gemini")).text == "It is 5 degrees."
    prompt = server.engine.requests[1].prompt
    assert prompt.count("<tool_response>\n5\n</tool_response>") == 2
    assert '"city":"Rome"' in prompt


async def test_native_calls_are_verified_too() -> None:
    wrong, right = (
        stream(calling(0, f'{{"{name}": "Oslo"}}', name="get_weather"), chunk("tool_calls"))
        for name in ("town", "city")
    )
    async with raw_server(MODELS, wrong, right) as (url, bodies), started(url, native=True) as engine:
        message = await turn_of(engine, QUESTION)
    assert [call.arguments for call in message.tool_calls] == [{"city": "Oslo"}]
    assert "do not satisfy their schema" in bodies[1]["messages"][-1]["content"]


# --- natively, event by event -----------------------------------------------------------------------------------------


async def native_events(*chunks: Mapping[str, Any], conversation: Conversation | None = None) -> list[Event]:
    async with raw_server(MODELS, stream(*chunks)) as (url, _), started(url, native=True) as engine:
        turn = Chat(engine, get_dialect("hermes")).stream(conversation or Conversation([UserMessage("?")]))
        return [event async for event in turn]


async def test_native_events_tile_what_came() -> None:
    events = await native_events(
        chunk(role="assistant"),
        chunk(reasoning_content="Hm."),
        chunk(content="So:"),
        calling(0, "", id="call_1", name="f"),
        calling(0, '{"a":'),
        calling(0, " 1}"),
        calling(1, "", id="call_2", name="g"),
        chunk("tool_calls"),
    )
    assert [type(event).__struct_config__.tag for event in events] == [
        "reasoning",
        "text",
        "tool_call_start",
        "tool_call_delta",
        "tool_call_delta",
        "tool_call_end",
        "tool_call_start",
        "tool_call_delta",
        "tool_call_end",
        "finish",
    ]
    assert [event.span for event in events] == [
        (0, 3), (3, 6), (6, 6), (6, 11), (11, 14), (14, 14), (14, 14), (14, 14), (14, 14), (14, 14)
    ]  # fmt: skip
    message = collect(events)
    assert (message.reasoning, message.text, message.finish) == ("Hm.", "So:", "tool_calls")
    assert message.tool_calls == (ToolCall("call_1", "f", {"a": 1}), ToolCall("call_2", "g", {}))
    assert [event.arguments for event in events if isinstance(event, ToolCallDelta)] == ['{"a":', " 1}", "{}"]


@pytest.mark.parametrize(
    ("chunks", "raw", "reason", "finish"),
    [
        ([calling(0, '{"a":', name="f"), chunk("length")], '{"a":', "the call was cut short", "length"),
        ([calling(0, "", name="f"), chunk("length")], "", "the call was cut short", "length"),
        ([calling(0, "[1]", name="f"), chunk("tool_calls")], "[1]", "the arguments are no JSON object", "stop"),
        ([calling(0, "{", name="f"), chunk("content_filter")], "{", "no JSON object", "content_filter"),
    ],
)
async def test_native_calls_that_are_none(chunks: Any, raw: str, reason: str, finish: str) -> None:
    message = collect(await native_events(*chunks))
    assert message.tool_calls == ()
    [malformed] = message.malformed
    assert malformed.raw == raw
    assert reason in malformed.reason
    assert message.finish == finish


async def test_a_native_refusal() -> None:
    message = collect(await native_events(chunk(refusal="I will not."), chunk("stop")))
    assert message.refusal == "I will not."


@pytest.mark.parametrize(
    ("chunks", "reason"),
    [
        ([calling(0, "{}")], "a tool call without a name"),
        (
            [calling(0, "{", name="f"), calling(1, "{}", name="g"), calling(0, "}")],
            "went on with a tool call after it had begun another",
        ),
    ],
)
async def test_native_calls_that_make_no_sense(chunks: Any, reason: str) -> None:
    with pytest.raises(EngineError, match=reason):
        await native_events(*chunks)


async def test_what_is_asked_natively() -> None:
    custom = Tool.custom("run", "Run it.")
    conversation = Conversation(
        [
            SystemMessage("S"),
            DeveloperMessage("D"),
            UserMessage("U"),
            AssistantMessage(text="T", tool_calls=[ToolCall("call_1", "get_weather", {"city": "Oslo"})]),
            ToolMessage("call_1", "get_weather", "5"),
            AssistantMessage(refusal="No."),
            UserMessage("V"),
        ],
        tools=[WEATHER, custom],
        tool_choice="get_weather",
        response_format=ResponseFormat.json_schema(CITY, "city", "A city"),
        reasoning_effort="low",
        parallel_tool_calls=False,
    )
    done = stream(calling(0, '{"city": "Rome"}', name="get_weather"), chunk("tool_calls"))
    async with raw_server(MODELS, done) as (url, bodies), started(url, native=True) as engine:
        await turn_of(engine, conversation)
    function = {"name": "get_weather", "parameters": CITY, "description": "The weather.", "strict": True}
    call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'}}
    assert bodies == [
        {
            "model": "m",
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": [
                {"role": "system", "content": "S"},
                {"role": "system", "content": "D"},
                {"role": "user", "content": "U"},
                {"role": "assistant", "content": "T", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "call_1", "content": "5"},
                {"role": "assistant", "content": None, "refusal": "No."},
                {"role": "user", "content": "V"},
            ],
            "tools": [
                {"type": "function", "function": function},
                {
                    "type": "function",
                    "function": {"name": "run", "parameters": custom.parameters, "description": "Run it."},
                },
            ],
            "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
            "parallel_tool_calls": False,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "city", "schema": CITY, "strict": True, "description": "A city"},
            },
            "reasoning_effort": "low",
        }
    ]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", "auto"),
        ("none", "none"),
        (
            ToolChoice("auto", ("get_weather",)),
            {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "auto",
                    "tools": [{"type": "function", "function": {"name": "get_weather"}}],
                },
            },
        ),
    ],
)
async def test_tool_choices_natively(choice: ToolChoice | str, expected: Any) -> None:
    conversation = Conversation(
        [UserMessage("U")],
        tools=[LOOSE, Tool("other")],
        tool_choice=choice,
        response_format=ResponseFormat("json_object"),
    )
    done = stream(chunk(content="{}"), chunk("stop"))
    async with raw_server(MODELS, done) as (url, bodies), started(url, native=True) as engine:
        await turn_of(engine, conversation)
    assert bodies[0]["tool_choice"] == expected
    assert bodies[0]["response_format"] == {"type": "json_object"}


# --- the wire ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [1000, 3])
@pytest.mark.parametrize("tool", [LOOSE, WEATHER], ids=["loose", "strict"])
async def test_a_made_up_result_ends_the_turn_and_is_reported(tool: Tool, cut: int) -> None:
    """By an endpoint that does not stop where it is told to."""
    output = CALL + MADE_UP + CALL
    said = stream(*(chunk(content=output[start : start + cut]) for start in range(0, len(output), cut)), chunk("stop"))
    async with raw_server(MODELS, said) as (url, bodies), started(url) as engine:
        message = await turn_of(engine, Conversation([UserMessage("The weather?")], tools=[tool]))
    assert [call.arguments for call in message.tool_calls] == [{"city": "Oslo"}]
    assert message.text == ""
    assert message.finish == "tool_calls"
    [malformed] = message.malformed
    assert malformed.reason == "the model made up a tool result"
    assert malformed.raw.startswith("<tool_resp")
    assert len(bodies) == 1


async def test_what_is_asked_in_band() -> None:
    sampling = Sampling(
        max_tokens=5,
        temperature=0.5,
        top_p=0.9,
        seed=7,
        stop=("a", "b", "c", "d", "e"),
        logprobs=0,
        presence_penalty=0.1,
        frequency_penalty=0.2,
        logit_bias={65: -1.0},
    )
    request = GenerationRequest(messages=ASK.messages, sampling=sampling, options={"extra_body": {"x": 1}})
    options = {"limit_field": "max_completion_tokens", "options": {"top_k": 3}}
    async with raw_server(MODELS, HELLO) as (url, bodies), started(url, **options) as engine:
        await chunks_of(engine, request)
    assert bodies == [
        {
            "model": "m",
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": [{"role": "user", "content": "a"}],
            "max_completion_tokens": 5,
            "temperature": 0.5,
            "top_p": 0.9,
            "seed": 7,
            "presence_penalty": 0.1,
            "frequency_penalty": 0.2,
            "stop": ["a", "b", "c", "d"],
            "logprobs": True,
            "logit_bias": {"65": -1.0},
            "top_k": 3,
            "x": 1,
        }
    ]


async def test_results_that_the_model_would_make_up_are_the_first_of_the_stops() -> None:
    async with raw_server(MODELS, HELLO) as (url, bodies), started(url) as engine:
        await turn_of(engine, Conversation([UserMessage("?")]))
    assert bodies[0]["stop"][0] == "<tool_response>"
    assert len(bodies[0]["stop"]) == 4


async def test_reasoning_that_the_endpoint_tells_apart() -> None:
    said = stream(chunk(reasoning="Hm."), chunk(content="<think>\nOh.\n</think>\n\nYes."), chunk("stop"))
    async with raw_server(MODELS, said) as (url, _), started(url) as engine:
        turn = Chat(engine, get_dialect("hermes")).stream(Conversation([UserMessage("?")]))
        events = [event async for event in turn]
    message = collect(events)
    assert (message.reasoning, message.text) == ("Hm.Oh.", "Yes.")
    ends = [0, *(event.span.end for event in events)]
    assert [event.span.start for event in events] == ends[:-1]
    assert turn.reasoning_tokens > 0


async def test_a_tool_call_of_its_own_is_not_lost() -> None:
    async with raw_server(MODELS, stream(calling(0, "{}", name="f"))) as (url, _), started(url) as engine:
        with pytest.raises(EngineError, match="open the engine with native=true"):
            await chunks_of(engine)


async def test_pings_and_line_ends() -> None:
    said = stream(chunk(content="a\u2028"), chunk("stop"), newline="\r\n").replace(b"data: {", b": ping\r\ndata:{", 1)
    said = said.replace(b"Content-Length: ", b"Connection: close\r\nX-Was: ")
    async with raw_server(MODELS, said) as (url, _), started(url) as engine:
        chunks = await chunks_of(engine)
    assert chunks == [Chunk((Piece("a\u2028"),)), Chunk(finish="stop")]


async def test_a_stream_may_end_without_saying_so() -> None:
    said = stream(chunk(content="a"), chunk("length"), done=False)
    async with raw_server(MODELS, said) as (url, _), started(url) as engine:
        assert (await chunks_of(engine))[-1] == Chunk(finish="length")


@pytest.mark.parametrize(
    ("said", "kind", "reason"),
    [
        (refusal("400 Bad", "bad seed"), EngineCapabilityError, "answered 400: bad seed"),
        (refusal("403 No", "not yours"), EngineUnavailableError, "answered 403: not yours"),
        (refusal("404 No", "no model `m`"), EngineUnavailableError, "answered 404: no model `m`"),
        (refusal("408 Slow", "slow"), EngineTimeoutError, "answered 408: slow"),
        (refusal("429 Busy", "slow down", "Retry-After: 99"), EngineBusyError, "answered 429: slow down"),
        (refusal("500 Oops", "oops"), EngineError, "answered 500: oops"),
        (answer(b"<h1>gone</h1>", "502 Bad Gateway"), EngineUnavailableError, "answered 502: <h1>gone</h1>"),
        (stream({"error": {"message": "overloaded"}}), EngineError, "failed: overloaded"),
        (stream({"error": "overloaded"}), EngineError, "failed: overloaded"),
        (answer(b"data: {5}\n\n"), EngineError, "no chat completion chunk"),
        (stream(chunk(content="a"), done=False), EngineUnavailableError, "ended before it was complete"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", EngineUnavailableError, "broke: peer closed"),
    ],
)
async def test_a_generation_that_fails(said: bytes, kind: type[EngineError], reason: str) -> None:
    async with raw_server(MODELS, said, said, said) as (url, _), started(url, patience=0) as engine:
        with pytest.raises(EngineError, match=reason) as caught:
            await chunks_of(engine)
    assert type(caught.value) is kind


async def test_a_context_that_is_too_short_is_told_apart() -> None:
    said = refusal("400 Bad", "This model's maximum context length is 64 tokens.", code="context_length_exceeded")
    async with raw_server(MODELS, said) as (url, _), started(url) as engine:
        with pytest.raises(EngineCapabilityError, match="maximum context length is 64") as caught:
            await chunks_of(engine)
        assert (await engine.model()) == ModelInfo("m", 64)
    assert caught.value.code == "context_length_exceeded"


@pytest.mark.parametrize(
    "failure",
    [refusal("429 Busy", "later", "Retry-After: 0"), refusal("503 Busy", "later", "Retry-After: x"), b""],
    ids=["busy", "unavailable", "broken"],
)
async def test_it_is_asked_again_before_anything_came(failure: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = []
    real_sleep, thread = asyncio.sleep, threading.get_ident()

    async def sleep(seconds: float) -> None:
        if threading.get_ident() == thread:
            waits.append(seconds)
        else:  # a server of another test
            await real_sleep(seconds)

    monkeypatch.setattr("isogloss.engines.chat.asyncio.sleep", sleep)
    async with raw_server(MODELS, failure, HELLO) as (url, bodies), started(url) as engine:
        chunks = await chunks_of(engine)
    assert chunks[0].pieces == (Piece("Hello"),)
    assert len(bodies) == 2
    assert waits == [1.0 if b"503" in failure else 0.0]


async def test_retry_after_may_be_a_date() -> None:
    said = refusal("429 Busy", "later", "Retry-After: Wed, 21 Oct 2099 07:28:00 GMT")
    async with raw_server(MODELS, said) as (url, bodies), started(url) as engine:
        with pytest.raises(EngineBusyError) as caught:
            await chunks_of(engine)
    assert caught.value.retry_after is not None
    assert caught.value.retry_after > 10**9
    assert len(bodies) == 1


async def test_an_endpoint_that_falls_silent() -> None:
    async with raw_server(MODELS, None) as (url, _), started(url, timeout=0.05) as engine:
        with pytest.raises(EngineTimeoutError, match=r"The chat endpoint at .* did not answer in time"):
            await chunks_of(engine)


@pytest.mark.parametrize(
    ("models", "options", "expected"),
    [
        (answer(b'{"data":[{"id":"a"},{"id":"b","context_length":9}]}'), {"model_id": "b"}, ModelInfo("b", 9)),
        (answer(b'{"data":[{"id":"a"}]}'), {"model_id": "hidden"}, ModelInfo("hidden")),
        (answer(b"no", "404 Not Found"), {"model_id": "b"}, ModelInfo("b")),
    ],
)
async def test_the_model(models: bytes, options: dict[str, str], expected: ModelInfo) -> None:
    async with raw_server(models) as (url, _), started(url, **options) as engine:
        assert await engine.model() == expected


@pytest.mark.parametrize(
    ("models", "kind", "reason"),
    [
        (answer(b'{"data":[{"id":"a"},{"id":"b"}]}'), EngineCapabilityError, "it has these|has these: `a`, `b`"),
        (answer(b'{"data":[]}'), EngineCapabilityError, "has these: none"),
        (answer(b"no", "404 Not Found"), EngineUnavailableError, "answered 404: no"),
        (answer(b"no", "400 Bad Request"), EngineCapabilityError, "answered 400: no"),
        (answer(b"<html>"), EngineUnavailableError, "There is no chat endpoint at `http://127.0.0.1:"),
    ],
)
async def test_no_model(models: bytes, kind: type[EngineError], reason: str) -> None:
    async with raw_server(models) as (url, _):
        with pytest.raises(kind, match=reason):
            await ChatEngine(url.replace("//", "//me:secret@")).start()


async def test_a_health_check_that_is_refused() -> None:
    async with raw_server(MODELS, answer(b"no", "400 Bad Request")) as (url, _), started(url) as engine:
        with pytest.raises(EngineUnavailableError, match="answered 400: no"):
            await engine.health()


async def test_what_is_not_for_it() -> None:
    async with raw_server(MODELS) as (url, _), started(url) as engine:
        for request, reason in [
            (GenerationRequest(prompt="a"), "takes messages, not a prompt"),
            (GenerationRequest(messages=(), grammar="start: "), "takes no grammar"),
            (GenerationRequest(messages=(), sampling=Sampling(top_k=1)), "does not take `top_k`"),
            (GenerationRequest(messages=(), options={"mirostat": 1}), "does not know these options: mirostat"),
        ]:
            with pytest.raises(EngineCapabilityError, match=reason):
                await chunks_of(engine, request)
        limited = GenerationRequest(messages=(), sampling=Sampling(max_tokens=0))
        assert await chunks_of(engine, limited) == [Chunk(finish="length", usage=Usage())]
    with pytest.raises(EngineUnavailableError, match="has not been started"):
        await chunks_of(engine)
    with pytest.raises(EngineCapabilityError, match="Expected a URL"):
        ChatEngine("model.gguf")
    with pytest.raises(EngineCapabilityError, match="for limit_field, got `tokens`"):
        ChatEngine("http://a", limit_field="tokens")
