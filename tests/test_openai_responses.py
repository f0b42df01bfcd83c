from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.errors import ConversationError
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
from isogloss.openai_responses import conversation_from_responses

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = {"type": "function", "name": "get_weather", "strict": False, "parameters": SCHEMA}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "get_weather",
    "arguments": '{"city":"Oslo"}',
}
RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "4 degrees"}


def read(**fields: Any) -> Conversation:
    return conversation_from_responses({"input": "Hello", **fields})


def output(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text, "logprobs": []}]}


def reasoning(text: str) -> dict[str, Any]:
    return {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "short"}],
        "content": [{"type": "reasoning_text", "text": text}],
    }


def test_a_string_and_instructions() -> None:
    conversation = read(instructions="Be brief.", reasoning={"effort": "high", "summary": "auto"})
    assert conversation.messages == (DeveloperMessage("Be brief."), UserMessage("Hello"))
    assert conversation.reasoning_effort == "high"
    assert read(instructions=None, text=None, reasoning=None, tools=None).messages == (UserMessage("Hello"),)


def test_the_items_of_a_turn_become_one_message() -> None:
    conversation = read(
        input=[
            {"role": "system", "content": "S"},
            {"role": "developer", "content": "D"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "U"}]},
            reasoning("First."),
            output("Looking."),
            CALL,
            {"type": "custom_tool_call", "call_id": "call_2", "name": "sql", "input": "SELECT 1"},
            RESULT,
            {
                "type": "custom_tool_call_output",
                "call_id": "call_2",
                "output": [{"type": "input_text", "text": "1"}],
            },
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Second."}]},
            output("It is cold."),
            output("Really."),
            reasoning("Third."),
            {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        ]
    )
    assert conversation.messages == (
        SystemMessage("S"),
        DeveloperMessage("D"),
        UserMessage("U"),
        AssistantMessage(
            text="Looking.",
            reasoning="First.",
            tool_calls=(
                ToolCall("call_1", "get_weather", {"city": "Oslo"}),
                ToolCall("call_2", "sql", {"input": "SELECT 1"}),
            ),
        ),
        ToolMessage("call_1", "get_weather", "4 degrees"),
        ToolMessage("call_2", "sql", "1"),
        AssistantMessage(text="It is cold.", reasoning="Second."),
        AssistantMessage(text="Really."),
        AssistantMessage(reasoning="Third.", refusal="No."),
    )


def test_text_after_a_call_stays_in_its_turn() -> None:
    conversation = read(input=[output("a"), CALL, output("b"), RESULT])
    assert conversation.messages == (
        AssistantMessage(text="ab", tool_calls=(ToolCall("call_1", "get_weather", {"city": "Oslo"}),)),
        ToolMessage("call_1", "get_weather", "4 degrees"),
    )


def test_a_call_that_was_cut_short_is_no_call() -> None:
    cut = {**CALL, "status": "incomplete", "arguments": '{"ci'}
    conversation = read(input=[{"role": "user", "content": "U"}, output("a"), cut])
    assert conversation.messages == (UserMessage("U"), AssistantMessage(text="a"))


def test_history_comes_before_the_input() -> None:
    conversation = conversation_from_responses(
        {"input": [RESULT], "instructions": "I"}, history=[{"role": "user", "content": "U"}, CALL]
    )
    assert [type(message) for message in conversation.messages] == [
        DeveloperMessage,
        UserMessage,
        AssistantMessage,
        ToolMessage,
    ]


def test_tools_and_formats_are_flat() -> None:
    conversation = read(
        tools=[WEATHER, {"type": "custom", "name": "sql"}],
        tool_choice={
            "type": "allowed_tools",
            "mode": "required",
            "tools": [{"type": "function", "name": "get_weather"}],
        },
        parallel_tool_calls=False,
        text={"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}, "verbosity": "low"},
    )
    assert conversation.tools == (Tool("get_weather", "", SCHEMA), Tool.custom("sql"))
    assert conversation.tool_choice == ToolChoice("required", ("get_weather",))
    assert conversation.response_format == ResponseFormat.json_schema(SCHEMA, "n")
    assert not conversation.parallel_tool_calls


def test_a_function_that_does_not_say_strict_is_made_strict() -> None:
    parameters = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
    silent = {"type": "function", "name": "f", "parameters": parameters}
    made, same = read(tools=[silent, {**silent, "name": "g", "strict": False}]).tools
    assert made.strict
    assert made.parameters["additionalProperties"] is False
    assert made.parameters["required"] == ["city", "days"]
    assert same == Tool("g", "", parameters)


def test_json_mode_needs_the_word_in_the_input() -> None:
    text = {"format": {"type": "json_object"}}
    with pytest.raises(ConversationError) as caught:
        read(text=text, instructions="Answer in JSON.")
    assert caught.value.message == (
        "Response input messages must contain the word 'json' in some form to use 'text.format' of type 'json_object'."
    )
    assert caught.value.pointer == "/input"
    assert read(text=text, input="As json, please").response_format == ResponseFormat("json_object")


FAULTS: list[tuple[dict[str, Any], str, str]] = [
    ({"input": None}, "Object missing required field `input`", ""),
    ({"input": 5}, "Expected `array`, got `int`", "/input"),
    ({"input": []}, "Expected `array` of length >= 1", "/input"),
    ({"input": ["x"]}, "Expected `object`, got `str`", "/input/0"),
    ({"input": [{"content": "x"}]}, "Object missing required field `role`", "/input/0"),
    (
        {"input": [{"type": "image_generation_call"}]},
        "Invalid value: 'image_generation_call'. Supported values are: 'message', 'reasoning', 'function_call', "
        "'function_call_output', 'custom_tool_call', 'custom_tool_call_output', 'code_interpreter_call', and "
        "'web_search_call'.",
        "/input/0/type",
    ),
    (
        {"input": [{"role": "tool", "content": "x"}]},
        "Invalid value: 'tool'. Supported values are: 'system', 'developer', 'user', and 'assistant'.",
        "/input/0/role",
    ),
    ({"input": [{"role": "user"}]}, "Object missing required field `content`", "/input/0"),
    (
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "u"}]}]},
        "Content of type 'input_image' is not supported: only text can be read",
        "/input/0/content/0/type",
    ),
    (
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]},
        "Content of type 'input_file' is not supported: only text can be read",
        "/input/0/content/0/type",
    ),
    (
        {"input": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]},
        "Invalid value: 'text'. Supported values are: 'input_text'.",
        "/input/0/content/0/type",
    ),
    ({"input": [{**CALL, "call_id": None}]}, "Object missing required field `call_id`", "/input/0"),
    (
        {"input": [{**CALL, "arguments": "[]"}]},
        "Expected the JSON text of an `object`, got `array`",
        "/input/0/arguments",
    ),
    ({"input": [CALL, CALL]}, "Call id 'call_1' is used twice", "/input/1/call_id"),
    (
        {"input": [RESULT]},
        "No tool call with id 'call_1' precedes this result: nothing was called so far",
        "/input/0/call_id",
    ),
    ({"input": [CALL, {**RESULT, "output": None}]}, "Object missing required field `output`", "/input/1"),
    ({"instructions": 1}, "Expected `str`, got `int`", "/instructions"),
    ({"reasoning": "high"}, "Expected `object`, got `str`", "/reasoning"),
    (
        {"reasoning": {"effort": "huge"}},
        "Invalid value: 'huge'. Supported values are: 'none', 'minimal', 'low', 'medium', 'high', 'xhigh', and 'max'.",
        "/reasoning/effort",
    ),
    (
        {"text": {"format": {"type": "json_schema", "name": "n"}}},
        "Object missing required field `schema`",
        "/text/format",
    ),
    (
        {"tools": [{"type": "mcp"}]},
        "Invalid value: 'mcp'. Supported values are: 'function' and 'custom'.",
        "/tools/0/type",
    ),
    ({"tools": [WEATHER, WEATHER]}, "Tool name 'get_weather' is used twice", "/tools/1/name"),
    (
        {"tools": [WEATHER], "tool_choice": {"type": "function", "name": "x"}},
        "Tool choice 'x' is not one of the function tools: 'get_weather'",
        "/tool_choice/name",
    ),
]


@pytest.mark.parametrize(("fields", "message", "pointer"), FAULTS)
def test_faults_name_their_place(fields: dict[str, Any], message: str, pointer: str) -> None:
    with pytest.raises(ConversationError) as caught:
        read(**fields)
    assert (caught.value.message, caught.value.pointer) == (message, pointer)


def test_ten_megabytes_are_read() -> None:
    text = "ä" * 5_000_000
    conversation = read(input=[{"role": "user", "content": text}, output(text)])
    assert conversation.messages == (UserMessage(text), AssistantMessage(text=text))


NAMES = st.sampled_from(["type", "role", "content", "call_id", "output", "arguments", "name", "text", "summary"])
WORDS = st.sampled_from(["user", "assistant", "message", "function_call", "function_call_output", "reasoning", "{}"])
ITEMS = st.recursive(
    st.none() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=20,
)


def pointer_of_fault(request: dict[str, Any]) -> str | None:
    try:
        conversation_from_responses(request)
    except ConversationError as error:
        return error.pointer
    return ""


@settings(max_examples=200)
@given(ITEMS)
def test_any_json_is_read_or_refused_with_a_pointer(items: Any) -> None:
    assert pointer_of_fault({"input": items}) is not None
