"""Transcripts from every dialect to every other."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from isogloss.dialects import dialect_names, get_dialect
from isogloss.errors import ConversationError
from isogloss.messages import (
    AssistantMessage,
    Conversation,
    SystemMessage,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from isogloss.transcripts import Converter, read_results, read_transcript

TOOL = Tool(
    "look_up",
    "Look something up",
    {"type": "object", "properties": {"word": {"type": "string"}, "limit": {"type": "integer"}}},
)
FUNCTION = {"name": TOOL.name, "description": TOOL.description, "parameters": TOOL.parameters}
TOOLS = [{"type": "function", "function": FUNCTION}]
CALLS = (ToolCall("1", "look_up", {"word": "a < b & 'c'", "limit": 3}), ToolCall("2", "look_up", {"word": "007"}))
RESULTS = [ToolMessage("1", "look_up", 'first "<b>result</b>"'), ToolMessage("2", "look_up", "second")]
PAIRS = list(itertools.permutations(dialect_names(), 2))


def in_band(name: str) -> dict[str, Any]:
    messages = (
        UserMessage("Two words, please."),
        AssistantMessage("Let me look.", tool_calls=CALLS),
        *RESULTS,
        AssistantMessage("Found both."),
    )
    plain = get_dialect(name).inband(Conversation(messages, (TOOL,)))
    told = [{"role": type(m).__struct_config__.tag, "content": m.text} for m in plain.messages]
    return {"id": 7, "messages": told, "tools": TOOLS}


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_a_conversation_says_the_same_in_any_other_dialect(source: str, target: str) -> None:
    done = Converter(get_dialect(source), get_dialect(target)).convert(in_band(source))
    assert done.losses == ()
    assert done.transcript == in_band(target)


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_an_output_says_the_same_in_any_other_dialect(source: str, target: str) -> None:
    turn = AssistantMessage("Let me look.", reasoning="Twice.", tool_calls=CALLS)
    output, starts_in = _rendered(source, turn)
    done = Converter(get_dialect(source), get_dialect(target)).convert(
        {"output": output, "starts_in": starts_in, "tools": TOOLS}
    )
    assert done.transcript is not None
    assert (done.transcript["output"], done.transcript["starts_in"]) == _rendered(target, turn)


def _rendered(name: str, turn: AssistantMessage) -> tuple[str, str]:
    dialect = get_dialect(name)
    prompt = dialect.render(Conversation((UserMessage(""),), (TOOL,))).text
    return dialect.render_output(turn, (TOOL,)), dialect.starts_in(prompt)


@pytest.mark.parametrize("name", dialect_names())
@pytest.mark.parametrize("count", [1, 2, 3])
def test_results_are_read_back_as_they_were_written(name: str, count: int) -> None:
    framed = get_dialect(name).render_results([ToolMessage("1", "f", "text")]) != "text"
    end = "\n" if framed else ""  # without a frame, line breaks are what tells results apart
    results = [ToolMessage(str(n), f"tool_{n}", f'text {n} "<tag>" | {end}') for n in range(count)]
    found = read_results(get_dialect(name), get_dialect(name).render_results(results), count)
    assert [result.text for result in found] == [result.text for result in results]
    assert read_results(get_dialect(name), "What a <nice> day.") == []


def test_what_is_no_call_is_a_loss() -> None:
    done = Converter(get_dialect("hermes"), get_dialect("qwen3_coder")).convert({"output": "Hm. <tool_call>nothing"})
    assert done.transcript == {"output": "Hm."}
    assert [loss.pointer for loss in done.losses] == ["/output"]


def test_what_the_target_cannot_carry_is_no_transcript() -> None:
    call = {"name": "f", "arguments": {"bad>key": 1}}
    output = f"<tool_call>\n{json.dumps(call)}\n</tool_call>"
    done = Converter(get_dialect("hermes"), get_dialect("qwen3_coder")).convert({"output": output})
    assert done.transcript is None
    assert "bad>key" in done.losses[0].reason


def test_structured_messages_are_taken_too() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "look_up", "arguments": '{"word": "x"}'}}
    messages = [
        {"role": "user", "content": "One word."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "found"},
    ]
    done = Converter(get_dialect("hermes"), get_dialect("hermes")).convert({"messages": messages})
    assert done.transcript is not None
    assert [message["content"] for message in done.transcript["messages"]] == [
        "One word.",
        '<tool_call>\n{"name":"look_up","arguments":{"word":"x"}}\n</tool_call>',
        "<tool_response>\nfound\n</tool_response>",
    ]


@pytest.mark.parametrize("transcript", [{}, {"messages": 3}, {"messages": ["x"]}, {"output": "", "tools": [{}]}])
def test_what_is_no_transcript_is_refused(transcript: dict[str, Any]) -> None:
    with pytest.raises(ConversationError):
        Converter(get_dialect("hermes"), get_dialect("qwen3")).convert(transcript)


@pytest.mark.parametrize("name", dialect_names())
def test_a_transcript_is_read_as_the_conversation_that_it_holds(name: str) -> None:
    read = read_transcript(get_dialect(name), in_band(name))
    assert read.losses == ()
    asked, called, *results, found = read.conversation.messages
    assert (asked.text, found.text) == ("Two words, please.", "Found both.")
    assert isinstance(called, AssistantMessage)
    assert called.text == "Let me look."
    assert [(call.name, call.arguments) for call in called.tool_calls] == [(c.name, c.arguments) for c in CALLS]
    assert [(result.text, getattr(result, "name", None)) for result in results] == [
        (result.text, "look_up") for result in RESULTS
    ]
    assert [tool.name for tool in read.conversation.tools] == ["look_up"]


def test_instructions_around_the_tools_are_kept() -> None:
    dialect = get_dialect("hermes")
    conversation = Conversation((SystemMessage("Be kind."), UserMessage("Hello.")), (TOOL,))
    told = [{"role": type(m).__struct_config__.tag, "content": m.text} for m in dialect.inband(conversation).messages]
    read = read_transcript(dialect, {"messages": told, "tools": TOOLS})
    assert read.conversation.messages == conversation.messages


@pytest.mark.parametrize("transcript", [{"output": "x"}, {"messages": [{"role": "user", "content": 3}]}])
def test_what_holds_no_conversation(transcript: dict[str, Any]) -> None:
    with pytest.raises(ConversationError):
        read_transcript(get_dialect("hermes"), transcript)


FENCED = 'Look:\n\n```tool_call\n<tool_call>\n{"name": "look_up", "arguments": {}}\n</tool_call>\n```'
A_CALL = '[look_up(word="a")]'


@pytest.mark.parametrize(
    ("transcript", "target"),
    [
        ({"output": FENCED}, "functiongemma"),
        ({"output": A_CALL}, "pythonic"),
        ({"messages": [{"role": "assistant", "content": A_CALL}]}, "pythonic"),
    ],
)
def test_text_that_would_hide_a_call_or_be_one_is_a_loss(transcript: dict[str, Any], target: str) -> None:
    done = Converter(get_dialect("qwen3"), get_dialect(target)).convert({**transcript, "tools": TOOLS})
    assert done.transcript is None
    assert [loss.reason for loss in done.losses] == [f"With this text, {target} would read other calls"]


@pytest.mark.parametrize("tools", [5, True, {"type": "function"}, "look_up"])
def test_tools_that_are_no_array(tools: object) -> None:
    with pytest.raises(ConversationError, match="Expected `array`"):
        Converter(get_dialect("qwen3"), get_dialect("hermes")).convert({"output": "Hi", "tools": tools})
