"""Responses requests to conversations.

The format is that of OpenAI's API as the `openai` package 3.x types it. A turn of the model is several items here
(reasoning, message, calls); they are put back together. Every fault is a `ConversationError` whose ``pointer`` is the
JSON pointer into the request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from isogloss.errors import ConversationError
from isogloss.json_fields import Fields, as_string, invalid, items, shown
from isogloss.messages import (
    AssistantMessage,
    Conversation,
    DeveloperMessage,
    Message,
    SystemMessage,
    Tool,
    ToolCall,
    ToolChoice,
    ToolMessage,
    UserMessage,
)
from isogloss.openai_chat import (
    arguments_from_json,
    called_name,
    content_text,
    mentions_json,
    reasoning_effort_from_openai,
    response_format_from_openai,
    split_content,
    tool_choice_from_openai,
    tool_from_openai,
)

_ITEM_TYPES = (
    "message",
    "reasoning",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "code_interpreter_call",
    "web_search_call",
)
_PYTHON = "python"
"""The tool whose calls are items of the type ``code_interpreter_call``."""

_SPEAKERS: dict[str, type[SystemMessage | DeveloperMessage | UserMessage]] = {
    "system": SystemMessage,
    "developer": DeveloperMessage,
    "user": UserMessage,
}


def conversation_from_responses(
    request: Mapping[str, Any],
    history: Iterable[Mapping[str, Any]] = (),
    hosted: Mapping[str, Sequence[Tool]] | None = None,
) -> Conversation:
    """What a Responses request says; fields that do not belong to the conversation are not looked at.

    ``history`` are the items that ``previous_response_id`` or ``conversation`` stand for; they come before the input.
    ``instructions`` are a developer message in front of everything. Function tools that do not say ``strict`` are
    made strict, as that API does. ``hosted`` are the tools that stand for the types of tools that are run here. Raises
    `ConversationError`.
    """
    fields = Fields(request, "")
    said = _messages(fields, history)
    hosted = hosted or {}
    tools = _tools(fields, hosted)
    text = Fields(fields.get("text") or {}, "/text")
    response_format = response_format_from_openai(text.get("format"), "/text/format")
    if response_format is not None and response_format.kind == "json_object" and not mentions_json(said):
        raise ConversationError(
            "Response input messages must contain the word 'json' in some form to use 'text.format' of type "
            "'json_object'.",
            pointer="/input",
        )
    instructions = fields.optional_string("instructions")
    reasoning = Fields(fields.get("reasoning") or {}, "/reasoning")
    return Conversation(
        messages=(DeveloperMessage(instructions), *said) if instructions else said,
        tools=tools,
        tool_choice=_tool_choice(fields, tools, hosted),
        response_format=response_format,
        reasoning_effort=reasoning_effort_from_openai(reasoning.get("effort"), "/reasoning/effort"),
        parallel_tool_calls=fields.boolean("parallel_tool_calls", True),
    )


def _messages(fields: Fields, history: Iterable[Mapping[str, Any]]) -> tuple[Message, ...]:
    turns = _Turns()
    for position, earlier in enumerate(history):
        turns.add(Fields(earlier, f"/history/{position}"))
    given = fields.required("input")
    if isinstance(given, str):
        turns.say(UserMessage(as_string(given, "/input")))
    else:
        for item, pointer in items(given, "/input"):
            turns.add(Fields(item, pointer))
    messages = turns.messages()
    if not messages:
        raise invalid("Expected `array` of length >= 1", "/input", "empty_array")
    return messages


class _Turns:
    """Puts items together to messages: reasoning, text and calls of one turn become one assistant message."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._called: dict[str, str] = {}
        self._reasoning: list[str] = []
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[str, ToolCall] = {}

    def messages(self) -> tuple[Message, ...]:
        self._end_turn()
        return tuple(self._messages)

    def say(self, message: Message) -> None:
        self._end_turn()
        self._messages.append(message)

    def add(self, item: Fields) -> None:
        kind = item.choice("type", _ITEM_TYPES) if item.has("type") else "message"
        if kind == "message":
            self._message(item)
        elif kind == "reasoning":
            self._reason(item)
        elif kind in ("function_call", "custom_tool_call"):
            self._call(item, is_custom=kind == "custom_tool_call")
        elif kind in ("code_interpreter_call", "web_search_call"):
            self._run_call(item, is_python=kind == "code_interpreter_call")
        else:
            self._result(item)

    def _message(self, item: Fields) -> None:
        role = item.choice("role", (*_SPEAKERS, "assistant"))
        content = item.required("content")
        if role != "assistant":
            self.say(_SPEAKERS[role](content_text(content, item.at("content"), ("input_text",))))
            return
        if (self._text or self._refusal) and not self._calls:
            self._end_turn()
        text, refusal = split_content(content, item.at("content"), ("output_text", "refusal", "input_text"))
        self._text.append(text)
        self._refusal.append(refusal)

    def _reason(self, item: Fields) -> None:
        if self._text or self._refusal or self._calls:
            self._end_turn()
        for name in ("content", "summary"):
            texts = [Fields(part, place).string("text") for part, place in item.array(name)]
            if texts:
                self._reasoning.extend(texts)
                return

    def _call(self, item: Fields, *, is_custom: bool) -> None:
        if item.get("status") == "incomplete":
            return  # It was cut short, and a call that was cut short is not a call.
        call_id = item.string("call_id")
        if call_id in self._calls:
            raise invalid(f"Call id {shown(call_id)} is used twice", item.at("call_id"))
        name = item.string("name")
        if is_custom:
            arguments: dict[str, Any] = {"input": item.string("input")}
        else:
            arguments = arguments_from_json(item.string("arguments"), item.at("arguments"))
        self._calls[call_id] = ToolCall(call_id, name, arguments)
        self._called[call_id] = name

    def _run_call(self, item: Fields, *, is_python: bool) -> None:
        """A call that was run where the model was, with its result. One without a result says nothing to a model."""
        call_id = item.string("id")
        if is_python:
            logs = [Fields(output, place).optional_string("logs") or "" for output, place in item.array("outputs")]
            name, result = _PYTHON, "".join(logs) if item.has("outputs") else None
            arguments: dict[str, Any] = {"input": item.optional_string("code") or ""}
        else:
            name, result = item.optional_string("name") or "", item.optional_string("output")
            arguments = arguments_from_json(item.optional_string("arguments") or "{}", item.at("arguments"))
        if result is None or not name:
            return
        self._calls[call_id] = ToolCall(call_id, name, arguments)
        self.say(ToolMessage(call_id, name, result))

    def _result(self, item: Fields) -> None:
        call_id = item.string("call_id")
        name = called_name(call_id, self._called, item.at("call_id"))
        text = content_text(item.required("output"), item.at("output"), ("input_text", "output_text"))
        self.say(ToolMessage(call_id, name, text))

    def _end_turn(self) -> None:
        if not (self._reasoning or self._text or self._refusal or self._calls):
            return
        self._messages.append(
            AssistantMessage(
                text="".join(self._text),
                reasoning="".join(self._reasoning),
                refusal="".join(self._refusal),
                tool_calls=tuple(self._calls.values()),
            )
        )
        self._reasoning, self._text, self._refusal, self._calls = [], [], [], {}


def _tools(fields: Fields, hosted: Mapping[str, Sequence[Tool]]) -> tuple[Tool, ...]:
    given = [(Fields(entry, place), place) for entry, place in fields.array("tools")]
    ours = [tool for entry, _ in given for tool in hosted.get(_type_of(entry), ())]
    theirs = [(entry, place) for entry, place in given if _type_of(entry) not in hosted]
    tools: dict[str, Tool] = {}
    for entry, place in theirs:
        tool = tool_from_openai(entry.members, place)
        if tool.name in tools or tool.name in {one.name for one in ours}:
            kind = "custom" if tool.is_custom else "function"
            raise invalid(f"Tool name {tool.name!r} is used twice", entry.nested(kind).at("name"))
        tools[tool.name] = tool if entry.has("strict") else _made_strict(tool)
    return (*tools.values(), *{tool.name: tool for tool in ours}.values())


def _tool_choice(fields: Fields, tools: Sequence[Tool], hosted: Mapping[str, Sequence[Tool]]) -> ToolChoice:
    given = fields.get("tool_choice")
    if isinstance(given, Mapping):
        names = {tool.name for tool in tools}
        ours = hosted.get(_type_of(Fields(given, "/tool_choice")), ())
        if ours and all(tool.name in names for tool in ours):
            return ToolChoice("required", tuple(tool.name for tool in ours))
    return tool_choice_from_openai(given, tools, "/tool_choice")


def _type_of(entry: Fields) -> str:
    kind = entry.get("type")
    return kind if isinstance(kind, str) else ""


def _made_strict(tool: Tool) -> Tool:
    """The tool with its schema in the strict subset, or as it was when the subset cannot hold the schema."""
    if tool.is_custom:
        return tool
    from isogloss.schema import to_strict

    schema, losses = to_strict(tool.parameters)
    return tool if losses else msgspec.structs.replace(tool, parameters=schema, strict=True)
