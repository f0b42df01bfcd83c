"""Conversations over the embedded engine with the demo model."""

from __future__ import annotations

import json
from contextlib import aclosing

import pytest

from isogloss.chat import Chat
from isogloss.dialects import get_dialect
from isogloss.engines import Sampling
from isogloss.engines.llamacpp import LlamaCppEngine
from isogloss.events import ToolCallDelta, ToolCallEnd, collect
from isogloss.messages import Conversation, ResponseFormat, Tool, UserMessage

pytestmark = [pytest.mark.anyio, pytest.mark.engine]

GREEDY = Sampling(temperature=0, max_tokens=120)
CITY = {"type": "string", "pattern": "^[A-Z][a-z]{2,20}$"}
WEATHER = Tool(
    "get_weather",
    "The weather forecast for a city",
    {"type": "object", "properties": {"city": CITY}, "required": ["city"], "additionalProperties": False},
    strict=True,
)
PLACE = ResponseFormat.json_schema(
    {
        "type": "object",
        "properties": {"city": CITY, "size": {"enum": ["small", "big"]}},
        "required": ["city", "size"],
        "additionalProperties": False,
    }
)


def chat_over(engine: LlamaCppEngine) -> Chat:
    return Chat(engine, get_dialect("hermes"))


async def test_a_plain_answer_with_its_log_probabilities(llamacpp_engine: LlamaCppEngine) -> None:
    turn = chat_over(llamacpp_engine).stream(
        Conversation([UserMessage("What is the capital of France?")]), Sampling(temperature=0, logprobs=2)
    )
    updates = [update async for update in turn.updates()]
    message = collect([update.event for update in updates])
    assert (message.text, message.finish) == ("The capital of France is Paris.", "stop")
    logprobs = [entry for update in updates for entry in update.logprobs]
    assert b"".join(entry.data for entry in logprobs).decode() == message.text
    assert all(len(entry.top) == 2 and entry.logprob <= 0 for entry in logprobs)
    assert turn.usage.completion_tokens >= len(logprobs)


async def test_a_call_that_is_required_is_made(llamacpp_engine: LlamaCppEngine) -> None:
    conversation = Conversation(
        [UserMessage("What is the weather in Paris?")],
        tools=[WEATHER],
        tool_choice="required",
        parallel_tool_calls=False,
    )
    events = [event async for event in chat_over(llamacpp_engine).stream(conversation, GREEDY)]
    [call] = collect(events).tool_calls
    assert call.name == "get_weather"
    assert call.arguments["city"].isalpha()
    streamed = "".join(event.arguments for event in events if isinstance(event, ToolCallDelta))
    assert [json.loads(streamed)] == [event.arguments for event in events if isinstance(event, ToolCallEnd)]


async def test_an_answer_satisfies_its_schema(llamacpp_engine: LlamaCppEngine) -> None:
    conversation = Conversation([UserMessage("Paris is a big city. Say so in JSON.")], response_format=PLACE)
    message = await chat_over(llamacpp_engine).stream(conversation, GREEDY).message()
    assert message.finish == "stop"
    assert list(json.loads(message.text)) == ["city", "size"]


async def test_stop_strings_and_leaving_early_free_the_engine(llamacpp_engine: LlamaCppEngine) -> None:
    chat = chat_over(llamacpp_engine)
    conversation = Conversation([UserMessage("Count from 1 to 100.")])
    message = await chat.stream(conversation, Sampling(temperature=0, stop=("3",))).message()
    assert "3" not in message.text
    for _ in range(8):  # twice as many as it works on at once
        async with aclosing(chat.stream(conversation, Sampling(temperature=0))) as turn:
            async for _event in turn:
                break
    assert (await chat.stream(conversation, Sampling(max_tokens=1)).message()).finish == "length"
