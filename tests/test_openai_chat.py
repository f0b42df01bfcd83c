from __future__ import annotations

import json
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
    TextGrammar,
    Tool,
    ToolCall,
    ToolChoice,
    ToolMessage,
    UserMessage,
)
from isogloss.openai_chat import conversation_from_openai, tool_from_openai

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
SQL = {"type": "custom", "custom": {"name": "sql", "description": "Run it."}}
HELLO = {"role": "user", "content": "Hello"}


def call(call_id: str = "call_1", arguments: object = '{"city": "Oslo"}', name: str = "get_weather") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def read(**fields: Any) -> Conversation:
    return conversation_from_openai({"messages": [HELLO], **fields})


def test_every_role_and_part_is_read() -> None:
    conversation = read(
        model="m",
        messages=[
            {"role": "system", "content": "S"},
            {"role": "developer", "content": [{"type": "text", "text": "D"}]},
            {"role": "user", "content": [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]},
            {
                "role": "assistant",
                "content": "Looking.",
                "reasoning_content": "Hm.",
                "refusal": None,
                "audio": None,
                "tool_calls": [call(), call("call_2", "{}")],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "4 degrees"},
            {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "text", "text": "rain"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "A"}, {"type": "refusal", "refusal": "R"}]},
            {"role": "assistant", "content": None, "refusal": "No."},
        ],
    )
    assert conversation.messages == (
        SystemMessage("S"),
        DeveloperMessage("D"),
        UserMessage("one two"),
        AssistantMessage(
            text="Looking.",
            reasoning="Hm.",
            tool_calls=(ToolCall("call_1", "get_weather", {"city": "Oslo"}), ToolCall("call_2", "get_weather", {})),
        ),
        ToolMessage("call_1", "get_weather", "4 degrees"),
        ToolMessage("call_2", "get_weather", "rain"),
        AssistantMessage(text="A", refusal="R"),
        AssistantMessage(refusal="No."),
    )
    assert conversation.tool_choice == ToolChoice()
    assert conversation.parallel_tool_calls
    assert conversation.response_format is None


def test_a_custom_call_carries_its_input() -> None:
    conversation = read(
        messages=[
            HELLO,
            {
                "role": "assistant",
                "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "sql", "input": "S"}}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "1"},
        ]
    )
    assert conversation.messages[1] == AssistantMessage(tool_calls=(ToolCall("c", "sql", {"input": "S"}),))
    assert conversation.messages[2] == ToolMessage("c", "sql", "1")


@pytest.mark.parametrize("flat", [False, True])
def test_tools_are_read_nested_and_flat(flat: bool) -> None:
    def shape(tool: dict[str, Any]) -> dict[str, Any]:
        return {"type": tool["type"], **tool[tool["type"]]} if flat else tool

    schema = WEATHER["function"]["parameters"]  # type: ignore[index]
    grammar = {"syntax": "lark", "definition": "start: /a+/"}
    form = {"type": "grammar", **grammar} if flat else {"type": "grammar", "grammar": grammar}
    assert tool_from_openai(shape(WEATHER), "") == Tool("get_weather", "The weather.", schema)
    assert Tool.from_openai(shape({"type": "function", "function": {"name": "f", "strict": True}})) == Tool(
        "f", strict=True
    )
    assert tool_from_openai(shape(SQL), "") == Tool.custom("sql", "Run it.")
    assert tool_from_openai(shape({"type": "custom", "custom": {"name": "g", "format": form}}), "") == Tool.custom(
        "g", grammar=TextGrammar("lark", "start: /a+/")
    )
    assert tool_from_openai(
        shape({"type": "custom", "custom": {"name": "g", "format": {"type": "text"}}}), ""
    ) == Tool.custom("g")


FUNCTION_CHOICE = {"type": "function", "function": {"name": "get_weather"}}


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, ToolChoice()),
        ("none", ToolChoice("none")),
        ("auto", ToolChoice("auto")),
        ("required", ToolChoice("required")),
        (FUNCTION_CHOICE, ToolChoice("required", ("get_weather",))),
        ({"type": "function", "name": "get_weather"}, ToolChoice("required", ("get_weather",))),
        ({"type": "custom", "custom": {"name": "sql"}}, ToolChoice("required", ("sql",))),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [FUNCTION_CHOICE]}},
            ToolChoice("auto", ("get_weather",)),
        ),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "custom", "name": "sql"}]},
            ToolChoice("required", ("sql",)),
        ),
    ],
)
def test_tool_choices(choice: object, expected: ToolChoice) -> None:
    assert read(tools=[WEATHER, SQL], tool_choice=choice).tool_choice == expected


def test_what_is_asked_of_the_answer() -> None:
    schema = {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "string"}}}
    conversation = read(
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "description": "d"}},
        reasoning_effort="low",
        parallel_tool_calls=False,
    )
    assert conversation.response_format == ResponseFormat.json_schema(schema, "n", "d", strict=False)
    assert conversation.response_format is not None
    assert list((conversation.response_format.schema or {})["properties"]) == ["z", "a"]
    assert conversation.reasoning_effort == "low"
    assert not conversation.parallel_tool_calls
    assert read(response_format={"type": "text"}).response_format is None


def test_json_mode_needs_the_word() -> None:
    request = {"response_format": {"type": "json_object"}}
    with pytest.raises(ConversationError) as caught:
        read(**request)
    assert caught.value.message == (
        "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
    )
    assert caught.value.pointer == "/messages"
    told = read(messages=[{"role": "system", "content": "Answer in JSON."}, HELLO], **request)
    assert told.response_format == ResponseFormat("json_object")


def assistant(**fields: Any) -> dict[str, Any]:
    return {"messages": [HELLO, {"role": "assistant", **fields}]}


def user(content: object) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}]}


FAULTS: list[tuple[dict[str, Any], str, str]] = [
    ({"messages": None}, "Object missing required field `messages`", ""),
    ({"messages": "hi"}, "Expected `array`, got `str`", "/messages"),
    ({"messages": []}, "Expected `array` of length >= 1", "/messages"),
    ({"messages": ["hi"]}, "Expected `object`, got `str`", "/messages/0"),
    ({"messages": [{"content": "x"}]}, "Object missing required field `role`", "/messages/0"),
    (
        {"messages": [{"role": "robot", "content": "x"}]},
        "Invalid value: 'robot'. Supported values are: 'system', 'developer', 'user', 'assistant', and 'tool'.",
        "/messages/0/role",
    ),
    ({"messages": [{"role": 1, "content": "x"}]}, "Expected `str`, got `int`", "/messages/0/role"),
    ({"messages": [{"role": "user"}]}, "Object missing required field `content`", "/messages/0"),
    (user(5), "Expected `str | array`, got `int`", "/messages/0/content"),
    (user(["x"]), "Expected `object`, got `str`", "/messages/0/content/0"),
    (user([{"type": "text"}]), "Object missing required field `text`", "/messages/0/content/0"),
    (user([{"type": "text", "text": True}]), "Expected `str`, got `bool`", "/messages/0/content/0/text"),
    (
        user([{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": "u"}}]),
        "Content of type 'image_url' is not supported: only text can be read",
        "/messages/0/content/1/type",
    ),
    (
        user([{"type": "input_audio", "input_audio": {}}]),
        "Content of type 'input_audio' is not supported: only text can be read",
        "/messages/0/content/0/type",
    ),
    (
        user([{"type": "refusal", "refusal": "x"}]),
        "Invalid value: 'refusal'. Supported values are: 'text'.",
        "/messages/0/content/0/type",
    ),
    (user("a\ud800b"), "Invalid Unicode: a lone surrogate at character 1", "/messages/0/content"),
    (assistant(), "Object missing required field `content`", "/messages/1"),
    (assistant(content=None, tool_calls=[]), "Object missing required field `content`", "/messages/1"),
    (assistant(tool_calls={}), "Expected `array`, got `object`", "/messages/1/tool_calls"),
    (
        assistant(tool_calls=[call(arguments={"city": "Oslo"})]),
        "Expected `str`, got `object`",
        "/messages/1/tool_calls/0/function/arguments",
    ),
    (
        assistant(tool_calls=[call(arguments="[1]")]),
        "Expected the JSON text of an `object`, got `array`",
        "/messages/1/tool_calls/0/function/arguments",
    ),
    (
        assistant(tool_calls=[call(arguments='{"city": Oslo}')]),
        "Arguments are not valid JSON: JSON is malformed: invalid character (byte 9)",
        "/messages/1/tool_calls/0/function/arguments",
    ),
    (
        assistant(tool_calls=[call(arguments="")]),
        "Arguments are not valid JSON: Input data was truncated",
        "/messages/1/tool_calls/0/function/arguments",
    ),
    (
        assistant(tool_calls=[call(arguments='{"a":' * 100_000)]),
        "Arguments are nested too deeply",
        "/messages/1/tool_calls/0/function/arguments",
    ),
    (
        assistant(tool_calls=[call(), call()]),
        "Call id 'call_1' is used twice",
        "/messages/1/tool_calls/1/id",
    ),
    (
        assistant(tool_calls=[{"id": "c", "type": "retrieval"}]),
        "Invalid value: 'retrieval'. Supported values are: 'function' and 'custom'.",
        "/messages/1/tool_calls/0/type",
    ),
    (
        assistant(tool_calls=[{"id": "c", "type": "function"}]),
        "Object missing required field `function`",
        "/messages/1/tool_calls/0",
    ),
    (assistant(function_call={"name": "f"}), "Field `function_call` is not supported", "/messages/1/function_call"),
    (
        {"messages": [HELLO, {"role": "tool", "tool_call_id": "c", "content": "x"}]},
        "No tool call with id 'c' precedes this result: nothing was called so far",
        "/messages/1/tool_call_id",
    ),
    (
        {
            "messages": [
                {"role": "assistant", "tool_calls": [call()]},
                {"role": "tool", "tool_call_id": "c", "content": "x"},
            ]
        },
        "No tool call with id 'c' precedes this result: the calls so far are 'call_1'",
        "/messages/1/tool_call_id",
    ),
    ({"tools": "x"}, "Expected `array`, got `str`", "/tools"),
    ({"tools": [5]}, "Expected `object`, got `int`", "/tools/0"),
    (
        {"tools": [{"type": "web_search"}]},
        "Invalid value: 'web_search'. Supported values are: 'function' and 'custom'.",
        "/tools/0/type",
    ),
    ({"tools": [{"type": "function", "function": {}}]}, "Object missing required field `name`", "/tools/0/function"),
    (
        {"tools": [{"type": "function", "function": {"name": "get weather"}}]},
        "Invalid 'tools[0].function.name': string does not match pattern. "
        "Expected a string that matches the pattern '^[a-zA-Z0-9_.-]+$', but got 'get weather' instead.",
        "/tools/0/function/name",
    ),
    (
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": []}}]},
        "Expected `object`, got `array`",
        "/tools/0/function/parameters",
    ),
    (
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "string"}}}]},
        "Invalid schema for function 'f': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"string\"'.",
        "/tools/0/function/parameters/type",
    ),
    (
        {"tools": [{"type": "function", "function": {"name": "f", "strict": "yes"}}]},
        "Expected `bool`, got `str`",
        "/tools/0/function/strict",
    ),
    ({"tools": [WEATHER, WEATHER]}, "Tool name 'get_weather' is used twice", "/tools/1/function/name"),
    (
        {"tools": [WEATHER, {"type": "function", "name": "get_weather"}]},
        "Tool name 'get_weather' is used twice",
        "/tools/1/name",
    ),
    (
        {"tools": [{"type": "custom", "custom": {"name": "g", "format": {"type": "grammar", "grammar": {}}}}]},
        "Object missing required field `syntax`",
        "/tools/0/custom/format/grammar",
    ),
    (
        {"tool_choice": "must"},
        "Invalid value: 'must'. Supported values are: 'none', 'auto', and 'required'.",
        "/tool_choice",
    ),
    ({"tool_choice": "required"}, "'tool_choice' is only allowed when 'tools' are specified.", "/tool_choice"),
    (
        {"tool_choice": FUNCTION_CHOICE},
        "Tool choice 'get_weather' is not one of the function tools: none were given",
        "/tool_choice/function/name",
    ),
    (
        {"tools": [WEATHER], "tool_choice": {"type": "custom", "name": "get_weather"}},
        "Tool choice 'get_weather' is not one of the custom tools: none were given",
        "/tool_choice/name",
    ),
    (
        {"tools": [WEATHER], "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}},
        "Expected `array` of length >= 1",
        "/tool_choice/allowed_tools/tools",
    ),
    (
        {
            "tools": [WEATHER],
            "tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [FUNCTION_CHOICE, {"type": "function", "name": "x"}]},
            },
        },
        "Tool choice 'x' is not one of the function tools: 'get_weather'",
        "/tool_choice/allowed_tools/tools/1/name",
    ),
    ({"parallel_tool_calls": 0}, "Expected `bool`, got `int`", "/parallel_tool_calls"),
    (
        {"response_format": {"type": "object"}},
        "Invalid value: 'object'. Supported values are: 'json_object', 'json_schema', and 'text'.",
        "/response_format/type",
    ),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n"}}},
        "Object missing required field `schema`",
        "/response_format/json_schema",
    ),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}},
        "Object missing required field `name`",
        "/response_format/json_schema",
    ),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n" * 65, "schema": {}}}},
        "Invalid 'response_format.json_schema.name': string too long. "
        "Expected a string with maximum length 64, but got a string with length 65 instead.",
        "/response_format/json_schema/name",
    ),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a b", "schema": {}}}},
        "Invalid 'response_format.json_schema.name': string does not match pattern. "
        "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$', but got 'a b' instead.",
        "/response_format/json_schema/name",
    ),
    (
        {"reasoning_effort": "extreme"},
        "Invalid value: 'extreme'. Supported values are: "
        "'none', 'minimal', 'low', 'medium', 'high', 'xhigh', and 'max'.",
        "/reasoning_effort",
    ),
]


@pytest.mark.parametrize(("fields", "message", "pointer"), FAULTS)
def test_faults_name_their_place(fields: dict[str, Any], message: str, pointer: str) -> None:
    with pytest.raises(ConversationError) as caught:
        read(**fields)
    assert (caught.value.message, caught.value.pointer) == (message, pointer)
    assert str(caught.value) == (f"{message} - at `{pointer}`" if pointer else message)


def test_long_values_are_shortened_in_messages() -> None:
    with pytest.raises(ConversationError) as caught:
        read(messages=[{"role": "x" * 1_000_000, "content": ""}])
    assert len(caught.value.message) < 300
    calls = [call(f"call_{number}") for number in range(1000)]
    with pytest.raises(ConversationError) as caught:
        read(
            messages=[{"role": "assistant", "tool_calls": calls}, {"role": "tool", "tool_call_id": "c", "content": ""}]
        )
    assert len(caught.value.message) < 500
    assert caught.value.message.endswith("'call_19', ...")


def test_a_request_that_is_no_object() -> None:
    with pytest.raises(ConversationError, match="Expected `object`, got `array`"):
        conversation_from_openai([])  # type: ignore[arg-type]


def test_ten_megabytes_are_read() -> None:
    text = "ä" * 5_000_000
    conversation = read(
        messages=[
            {"role": "user", "content": text},
            {"role": "assistant", "tool_calls": [call(arguments=json.dumps({"city": text}))]},
            {"role": "tool", "tool_call_id": "call_1", "content": text},
        ]
    )
    assert conversation.messages[0] == UserMessage(text)
    assert conversation.messages[1].tool_calls[0].arguments == {"city": text}  # type: ignore[union-attr]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["messages", "tools", "tool_choice", "response_format", "type", "role", "content", "function", "name", "text"]
)
WORDS = st.sampled_from(["user", "assistant", "tool", "function", "text", "json_schema", "allowed_tools", "auto"])
REQUESTS = st.recursive(
    JSON | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=25,
)


def pointer_of_fault(request: dict[str, Any]) -> str | None:
    try:
        conversation_from_openai(request)
    except ConversationError as error:
        return error.pointer
    return ""


@settings(max_examples=200)
@given(st.dictionaries(NAMES, REQUESTS, max_size=6))
def test_any_json_is_read_or_refused_with_a_pointer(request: dict[str, Any]) -> None:
    assert pointer_of_fault(request) is not None
