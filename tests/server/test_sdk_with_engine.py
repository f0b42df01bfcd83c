"""The official Python client, synchronous and asynchronous, against the embedded engine with the demo model: a
structured answer, a tool loop of two turns and a stream, in both APIs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import openai
import pytest
from pydantic import BaseModel

from isogloss.chat import Chat
from isogloss.dialects import get_dialect
from isogloss.engines.llamacpp import LlamaCppEngine

from .conftest import Served, serving

pytestmark = [pytest.mark.anyio, pytest.mark.engine]

MODEL: Any = {"model": "default", "temperature": 0}
WEATHER_QUESTION: Any = {"role": "user", "content": "What is the weather in Paris?"}
CAPITAL: Any = [{"role": "user", "content": "What is the capital of France?"}]


class Place(BaseModel):
    city: Literal["Paris", "Rome"]
    visited: bool


class get_weather(BaseModel):  # noqa: N801 - the name of the tool
    """The weather of a city."""

    city: Literal["Paris", "Rome"]
    days: Literal[1, 2]


CHAT_TOOL = openai.pydantic_function_tool(get_weather)
TOOL: Any = {"type": "function", **CHAT_TOOL["function"]}


@pytest.fixture(scope="module")
def served(demo_model_path: Path) -> Iterator[Served]:
    if find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed")
    engine = LlamaCppEngine(demo_model_path, context_length=2048, parallel=2, threads=1)
    with serving(Chat(engine, get_dialect("hermes"), may_refuse=False)) as running:
        yield running


def test_structured_answers(served: Served) -> None:
    client = served.client()
    completion = client.chat.completions.parse(**MODEL, messages=CAPITAL, response_format=Place)
    response = client.responses.parse(**MODEL, input=CAPITAL, text_format=Place)
    assert isinstance(completion.choices[0].message.parsed, Place)
    assert isinstance(response.output_parsed, Place)


def test_a_tool_loop_of_chat_completions(served: Served) -> None:
    completions = served.client().chat.completions
    messages = [WEATHER_QUESTION]
    asked: Any = {**MODEL, "tools": [CHAT_TOOL], "parallel_tool_calls": False}
    first = completions.parse(**asked, messages=messages, tool_choice="required").choices[0]
    assert first.finish_reason == "tool_calls"
    [call] = first.message.tool_calls or []
    assert isinstance(call.function.parsed_arguments, get_weather)
    messages += [first.message.to_dict(), {"role": "tool", "tool_call_id": call.id, "content": "Sunny, 21 degrees."}]
    second = completions.create(**asked, messages=messages, tool_choice="none", max_completion_tokens=40).choices[0]
    assert second.message.content
    assert second.message.tool_calls is None


def test_a_tool_loop_of_responses(served: Served) -> None:
    responses = served.client().responses
    asked: Any = {**MODEL, "tools": [TOOL], "parallel_tool_calls": False}
    first = responses.parse(**asked, input=[WEATHER_QUESTION], tool_choice="required")
    [call] = [item for item in first.output if item.type == "function_call"]
    get_weather.model_validate_json(call.arguments)
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "Sunny, 21 degrees."}
    second = responses.create(
        **asked, input=[result], previous_response_id=first.id, tool_choice="none", max_output_tokens=40
    )
    assert second.output_text


def test_streams(served: Served) -> None:
    client = served.client()
    with client.chat.completions.stream(**MODEL, messages=CAPITAL) as chat_stream:
        said = "".join(event.delta for event in chat_stream if event.type == "content.delta")
        assert said == chat_stream.get_final_completion().choices[0].message.content
    with client.responses.stream(**MODEL, input=CAPITAL) as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
        assert "".join(deltas) == stream.get_final_response().output_text
    assert said == "".join(deltas) == "The capital of France is Paris."
    assert len(deltas) > 3


def test_a_stream_of_a_call(served: Served) -> None:
    asked: Any = {**MODEL, "tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False}
    with served.client().responses.stream(**asked, input=[WEATHER_QUESTION]) as stream:
        deltas = [event.delta for event in stream if event.type == "response.function_call_arguments.delta"]
        [call] = stream.get_final_response().output
    assert call.type == "function_call"
    assert "".join(deltas) == call.arguments
    get_weather.model_validate(json.loads(call.arguments))


async def test_the_asynchronous_client(served: Served) -> None:
    async with served.async_client() as client:
        created = await client.chat.completions.create(**MODEL, messages=CAPITAL)
        assert created.choices[0].message.content == "The capital of France is Paris."
        parsed = await client.responses.parse(**MODEL, input=CAPITAL, text_format=Place)
        assert isinstance(parsed.output_parsed, Place)
        async with client.responses.stream(**MODEL, input=CAPITAL) as stream:
            assert (await stream.get_final_response()).output_text == "The capital of France is Paris."
