"""A real vLLM server: ``make test-vllm`` starts one and names it. Without one these tests are skipped."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import anyio
import httpx
import pytest

from isogloss.chat import Chat
from isogloss.dialects import get_dialect
from isogloss.engines import GenerationRequest, Sampling
from isogloss.engines.vllm import VllmEngine
from isogloss.errors import EngineCapabilityError
from isogloss.events import ToolCallDelta, collect
from isogloss.messages import Conversation, ResponseFormat, TextGrammar, Tool, UserMessage

URL = os.environ.get("ISOGLOSS_VLLM_URL", "")
MODEL = os.environ.get("ISOGLOSS_VLLM_MODEL", "")
BACKEND = os.environ.get("ISOGLOSS_VLLM_BACKEND", "")
pytestmark = [pytest.mark.anyio, pytest.mark.skipif(not URL, reason="no vLLM server is named: make test-vllm")]

GREEDY = Sampling(temperature=0, max_tokens=120)
PLACE: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}, "size": {"enum": ["small", "big"]}},
    "required": ["city", "size"],
    "additionalProperties": False,
}
LISTED = {**PLACE, "properties": {**PLACE["properties"], "city": {"enum": ["Oslo", "Paris"]}}}


def asked(schema: dict[str, Any]) -> Conversation:
    tool = Tool("get_weather", "The weather forecast for a city", schema, strict=True)
    said = [UserMessage("What is the weather in Paris?")]
    return Conversation(said, tools=[tool], tool_choice="required", parallel_tool_calls=False)


@pytest.fixture
async def engine() -> AsyncIterator[VllmEngine]:
    engine = VllmEngine(URL, tokenizer=MODEL)
    await engine.start()
    yield engine
    await engine.close()


def chat_over(engine: VllmEngine, dialect: str = "hermes") -> Chat:
    return Chat(engine, get_dialect(dialect))


async def test_what_is_found_out(engine: VllmEngine) -> None:
    model = await engine.model()
    assert (model.id, model.context_length) == ("m", 1024)
    assert model.chat_template is not None
    assert "<|im_start|>" in model.chat_template
    await engine.health()
    with pytest.raises(EngineCapabilityError, match="does not constrain output with"):
        await VllmEngine(URL, grammar="xgrammar" if BACKEND == "guidance" else "guidance").start()


async def test_the_folder_of_the_server_is_found() -> None:
    engine = VllmEngine(URL)
    await engine.start()
    assert engine.tokenizer is not None
    assert engine.tokenizer.special_tokens["<|im_end|>"] == 2
    await engine.close()


async def test_its_own_tokenizer_cannot_be_used(engine: VllmEngine) -> None:
    """When this fails, vLLM has learnt to take text for text, and `Tokenizer`s over it could be written."""
    assert engine.tokenizer is not None
    body = {"model": "m", "prompt": "a<|im_end|>", "add_special_tokens": False}
    async with httpx.AsyncClient(trust_env=False, timeout=120) as client:
        told = (await client.post(f"{URL}/tokenize", json=body)).json()["tokens"]
        half = engine.tokenizer.encode("日")[:1]
        text = (await client.post(f"{URL}/detokenize", json={"model": "m", "tokens": half})).json()["prompt"]
    assert told[-1] == engine.tokenizer.special_tokens["<|im_end|>"]
    assert text == "\ufffd"


async def test_leaving_early_frees_the_place(engine: VllmEngine) -> None:
    request = GenerationRequest(prompt="Count to a thousand.", options={"ignore_eos": True})
    async with aclosing(engine.generate(request)) as chunks:
        assert (await anext(chunks)).token_ids
    with anyio.fail_after(60):
        while await running():
            pass


async def running() -> float:
    """How many generations the server works on."""
    async with httpx.AsyncClient(trust_env=False, timeout=120) as client:
        text = (await client.get(f"{URL}/metrics")).text
    return sum(map(float, re.findall(r"^vllm:num_requests_running\{.*\} (\S+)$", text, re.MULTILINE)))


async def test_the_prompt_is_reused_and_counted(engine: VllmEngine) -> None:
    chat = chat_over(engine)
    said = Conversation([UserMessage("Say one word. " * 60)])
    for _ in range(2):
        turn = chat.stream(said, Sampling(temperature=0, max_tokens=2))
        await turn.message()
    assert turn.usage.cached_tokens >= 128  # a block of the cache, on the CPU


async def test_a_plain_answer(engine: VllmEngine) -> None:
    turn = chat_over(engine).stream(Conversation([UserMessage("What is the capital of France?")]), GREEDY)
    message = await turn.message()
    assert "Paris" in message.text
    assert message.finish == "stop"
    assert turn.usage.prompt_tokens > 0


@pytest.mark.parametrize("dialect", ["hermes", "qwen3_coder", "xml"])
async def test_a_call_that_is_required_is_made(engine: VllmEngine, dialect: str) -> None:
    events = [event async for event in chat_over(engine, dialect).stream(asked(LISTED), GREEDY)]
    message = collect(events)
    assert message.malformed == ()
    [call] = message.tool_calls
    assert call.name == "get_weather"
    assert call.arguments["size"] in ("small", "big")
    streamed = [event.arguments for event in events if isinstance(event, ToolCallDelta)]
    assert json.loads("".join(streamed)) == call.arguments


async def test_a_length_in_text_between_tags(engine: VllmEngine) -> None:
    """A structural tag has no way to say it."""
    turn = chat_over(engine, "xml").stream(asked(PLACE), GREEDY)
    if BACKEND == "guidance":
        [call] = (await turn.message()).tool_calls
        assert len(call.arguments["city"]) <= 20
    else:
        with pytest.raises(EngineCapabilityError, match="cannot hold text to the language of"):
            await turn.message()


async def test_an_answer_satisfies_its_schema(engine: VllmEngine) -> None:
    form = ResponseFormat.json_schema(PLACE)
    conversation = Conversation([UserMessage("Paris is a big city. Say so in JSON.")], response_format=form)
    message = await chat_over(engine).stream(conversation, GREEDY).message()
    assert json.loads(message.text)["size"] in ("small", "big")


async def test_what_only_guidance_can_say(engine: VllmEngine) -> None:
    tool = Tool.custom("run", "Run a command.", TextGrammar("lark", 'start: "ls" | "pwd"'))
    conversation = Conversation([UserMessage("Run something.")], tools=[tool], tool_choice="required")
    turn = chat_over(engine, "qwen3_coder").stream(conversation, GREEDY)
    if BACKEND == "guidance":
        assert (await turn.message()).tool_calls[0].arguments["input"] in ("ls", "pwd")
    else:
        with pytest.raises(EngineCapabilityError, match="start vLLM with --structured-outputs-config"):
            await turn.message()


@pytest.mark.skipif(BACKEND != "guidance", reason="forces the output by a grammar in Lark")
@pytest.mark.parametrize("stream", [False, True])
async def test_our_parsers_in_its_server(stream: bool) -> None:
    """The model is made to say a turn, which the server reads with our scanner."""
    called = {"name": "get_weather", "arguments": {"city": "Paris", "size": "big"}}
    said = f"<think>\nHm.\n</think>\n\nLooking.\n<tool_call>\n{json.dumps(called)}\n</tool_call>"
    body: dict[str, Any] = {
        "model": "m",
        "messages": [{"role": "user", "content": "Go on."}],
        "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": PLACE}}],
        "structured_outputs": {"grammar": f"%llguidance {{}}\nstart: {json.dumps(said)}"},
        "max_tokens": 200,
        "stream": stream,
    }
    async with httpx.AsyncClient(trust_env=False, timeout=120) as client:
        answer = await client.post(f"{URL}/v1/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    reasoning, content, arguments = read_stream(answer.text) if stream else read(answer.json())
    assert (reasoning.strip(), content.strip()) == ("Hm.", "Looking.")
    assert json.loads(arguments) == called["arguments"]


def read(answer: dict[str, Any]) -> tuple[str, str, str]:
    [choice] = answer["choices"]
    [call] = choice["message"]["tool_calls"]
    assert choice["finish_reason"] == "tool_calls"
    assert call["function"]["name"] == "get_weather"
    return choice["message"]["reasoning"], choice["message"]["content"], call["function"]["arguments"]


def read_stream(text: str) -> tuple[str, str, str]:
    events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    choices = [choice for event in events for choice in event["choices"]]
    calls = [call["function"] for choice in choices for call in choice["delta"].get("tool_calls") or ()]
    assert [call["name"] for call in calls if call.get("name")] == ["get_weather"]
    assert choices[-1]["finish_reason"] == "tool_calls"
    told = ("".join(choice["delta"].get(name) or "" for choice in choices) for name in ("reasoning", "content"))
    return (*told, "".join(call.get("arguments") or "" for call in calls))  # type: ignore[return-value]
