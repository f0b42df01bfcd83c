"""Chat Completions requests to conversations.

The format is that of OpenAI's API as the `openai` package 3.x types it. Every fault is a `ConversationError` whose
``pointer`` is the JSON pointer into the request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import msgspec

from isogloss.errors import ConversationError
from isogloss.json_fields import (
    Fields,
    as_choice,
    as_string,
    invalid,
    items,
    kind_of,
    listed,
    missing,
    parameter,
    shown,
)
from isogloss.messages import (
    AssistantMessage,
    Conversation,
    DeveloperMessage,
    Message,
    ResponseFormat,
    SystemMessage,
    TextGrammar,
    Tool,
    ToolCall,
    ToolChoice,
    ToolMessage,
    UserMessage,
)

REASONING_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

_MODES: tuple[Literal["none", "auto", "required"], ...] = ("none", "auto", "required")
_ALLOWED_MODES: tuple[Literal["auto", "required"], ...] = ("auto", "required")
_TOOL_NAME, _LONGEST_TOOL_NAME = re.compile(r"^[a-zA-Z0-9_.-]+$"), 128
_FORMAT_NAME, _LONGEST_FORMAT_NAME = re.compile(r"^[a-zA-Z0-9_-]+$"), 64
_MEDIA = frozenset(
    {"image_url", "input_audio", "file", "audio", "video_url", "input_image", "input_file", "computer_screenshot"}
)


def conversation_from_openai(request: Mapping[str, Any]) -> Conversation:
    """What a Chat Completions request says; fields that do not belong to the conversation are not looked at.

    Raises `ConversationError`.
    """
    fields = Fields(request, "")
    messages = _messages(fields)
    tools = tools_from_openai(fields.get("tools"), "/tools")
    response_format = response_format_from_openai(fields.get("response_format"), "/response_format")
    if response_format is not None and response_format.kind == "json_object":
        _require_the_word_json(messages)
    return Conversation(
        messages=messages,
        tools=tools,
        tool_choice=tool_choice_from_openai(fields.get("tool_choice"), tools, "/tool_choice"),
        response_format=response_format,
        reasoning_effort=reasoning_effort_from_openai(fields.get("reasoning_effort"), "/reasoning_effort"),
        parallel_tool_calls=fields.boolean("parallel_tool_calls", True),
    )


# --- messages ---------------------------------------------------------------------------------------------------------


def _messages(fields: Fields) -> tuple[Message, ...]:
    fields.required("messages")
    called: dict[str, str] = {}
    messages: list[Message] = []
    for value, pointer in fields.array("messages"):
        message = Fields(value, pointer)
        role = message.choice("role", tuple(_ROLES))
        messages.append(_ROLES[role](message, called))
    if not messages:
        raise invalid("Expected `array` of length >= 1", "/messages", "empty_array")
    return tuple(messages)


def _assistant(message: Fields, called: dict[str, str]) -> AssistantMessage:
    text, refusal = "", message.optional_string("refusal") or ""
    if message.has("content"):
        text, refused = split_content(message.get("content"), message.at("content"), ("text", "refusal"))
        refusal += refused
    reasoning = message.optional_string("reasoning_content") or message.optional_string("reasoning") or ""
    calls = _tool_calls(message)
    for name in ("audio", "function_call"):
        if message.has(name):
            raise invalid(f"Field `{name}` is not supported", message.at(name), "unsupported_parameter")
    if not (calls or refusal or reasoning or message.has("content")):
        raise missing("content", message.pointer)
    called.update((call.id, call.name) for call in calls)
    return AssistantMessage(text=text, reasoning=reasoning, refusal=refusal, tool_calls=calls)


def _tool_result(message: Fields, called: dict[str, str]) -> ToolMessage:
    call_id = message.string("tool_call_id")
    text = content_text(message.required("content"), message.at("content"))
    return ToolMessage(call_id, called_name(call_id, called, message.at("tool_call_id")), text)


def _said_by(kind: type[SystemMessage | DeveloperMessage | UserMessage]) -> Callable[[Fields, dict[str, str]], Message]:
    return lambda message, _: kind(content_text(message.required("content"), message.at("content")))


_ROLES: dict[str, Callable[[Fields, dict[str, str]], Message]] = {
    "system": _said_by(SystemMessage),
    "developer": _said_by(DeveloperMessage),
    "user": _said_by(UserMessage),
    "assistant": _assistant,
    "tool": _tool_result,
}


def content_text(value: object, pointer: str, kinds: tuple[str, ...] = ("text",)) -> str:
    """The text of a message's content, a string or an array of text parts."""
    return split_content(value, pointer, kinds)[0]


def split_content(value: object, pointer: str, kinds: tuple[str, ...]) -> tuple[str, str]:
    """The joined text and the joined refusal of a message's content. ``kinds`` are the part types allowed in it."""
    if isinstance(value, str):
        return as_string(value, pointer), ""
    if not isinstance(value, (list, tuple)):
        raise ConversationError(f"Expected `str | array`, got `{kind_of(value)}`", pointer=pointer, code="invalid_type")
    texts: list[str] = []
    refusals: list[str] = []
    for item, place in items(value, pointer):
        part = Fields(item, place)
        kind = part.string("type")
        if kind in _MEDIA:
            raise invalid(
                f"Content of type {kind!r} is not supported: only text can be read",
                part.at("type"),
                "unsupported_content_type",
            )
        if as_choice(kind, kinds, part.at("type")) == "refusal":
            refusals.append(part.string("refusal"))
        else:
            texts.append(part.string("text"))
    return "".join(texts), "".join(refusals)


# --- calls ------------------------------------------------------------------------------------------------------------


def _tool_calls(message: Fields) -> tuple[ToolCall, ...]:
    calls: dict[str, ToolCall] = {}
    for value, pointer in message.array("tool_calls"):
        entry = Fields(value, pointer)
        call_id = entry.string("id")
        if call_id in calls:
            raise invalid(f"Call id {shown(call_id)} is used twice", entry.at("id"))
        kind = entry.choice("type", ("function", "custom")) if entry.has("type") else "function"
        call = entry.object(kind)
        if kind == "custom":
            calls[call_id] = ToolCall(call_id, call.string("name"), {"input": call.string("input")})
        else:
            arguments = arguments_from_json(call.string("arguments"), call.at("arguments"))
            calls[call_id] = ToolCall(call_id, call.string("name"), arguments)
    return tuple(calls.values())


def arguments_from_json(text: str, pointer: str) -> dict[str, Any]:
    """A call's arguments from their JSON text, which must be an object."""
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise invalid(f"Arguments are not valid JSON: {error}", pointer, "invalid_json") from None
    except RecursionError:
        raise invalid("Arguments are nested too deeply", pointer, "invalid_json") from None
    if not isinstance(value, dict):
        raise invalid(f"Expected the JSON text of an `object`, got `{kind_of(value)}`", pointer)
    return value


def called_name(call_id: str, called: Mapping[str, str], pointer: str) -> str:
    """The name of the tool that an earlier message called under this id."""
    name = called.get(call_id)
    if name is None:
        known = f"the calls so far are {listed(called)}" if called else "nothing was called so far"
        raise invalid(f"No tool call with id {shown(call_id)} precedes this result: {known}", pointer)
    return name


# --- tools ------------------------------------------------------------------------------------------------------------


def tools_from_openai(value: object, pointer: str) -> tuple[Tool, ...]:
    """The entries of ``tools``. Raises `ConversationError`, also for a name that is used twice."""
    tools: dict[str, Tool] = {}
    for entry, place in () if value is None else items(value, pointer):
        tool = tool_from_openai(Fields(entry, place).members, place)
        if tool.name in tools:
            kind = "custom" if tool.is_custom else "function"
            raise invalid(f"Tool name {tool.name!r} is used twice", Fields(entry, place).nested(kind).at("name"))
        tools[tool.name] = tool
    return tuple(tools.values())


def tool_from_openai(tool: Mapping[str, Any], pointer: str) -> Tool:
    """A tool as Chat Completions (nested) or Responses (flat) write it. ``pointer`` is its place in the request.

    A name is 1 to 128 of ``a-z A-Z 0-9 _ . -``. Raises `ConversationError`.
    """
    entry = Fields(tool, pointer)
    kind = entry.choice("type", ("function", "custom"))
    fields = entry.nested(kind)
    name = _name(fields, _TOOL_NAME, _LONGEST_TOOL_NAME)
    description = fields.optional_string("description") or ""
    if kind == "custom":
        return Tool.custom(name, description, _text_grammar(fields))
    strict = fields.boolean("strict", False)
    if not fields.has("parameters"):
        return Tool(name, description, strict=strict)
    parameters = dict(fields.object("parameters").members)
    if parameters.get("type", "object") != "object":
        raise invalid(
            f"Invalid schema for function {name!r}: schema must be a JSON Schema of 'type: \"object\"', "
            f"got 'type: {msgspec.json.encode(parameters['type']).decode()}'.",
            fields.at("parameters") + "/type",
            "invalid_function_parameters",
        )
    return Tool(name, description, parameters, strict)


def _text_grammar(fields: Fields) -> TextGrammar | None:
    if not fields.has("format"):
        return None
    form = fields.object("format")
    if form.choice("type", ("text", "grammar")) == "text":
        return None
    grammar = form.nested("grammar")
    return TextGrammar(grammar.choice("syntax", ("lark", "regex")), grammar.string("definition"))


def tool_choice_from_openai(value: object, tools: Iterable[Tool], pointer: str) -> ToolChoice:
    """A mode, a named tool or an allowed subset, in either API's shape. Raises `ConversationError`."""
    if value is None:
        return ToolChoice()
    kinds: dict[str, str] = {tool.name: "custom" if tool.is_custom else "function" for tool in tools}
    if isinstance(value, str):
        mode = as_choice(value, _MODES, pointer)
        if mode == "required" and not kinds:
            raise invalid("'tool_choice' is only allowed when 'tools' are specified.", pointer)
        return ToolChoice(mode)
    fields = Fields(value, pointer)
    if fields.choice("type", ("allowed_tools", "function", "custom")) != "allowed_tools":
        return ToolChoice.named(_chosen_name(fields, kinds))
    allowed = fields.nested("allowed_tools")
    allowed_mode = allowed.choice("mode", _ALLOWED_MODES)
    allowed.required("tools")
    names = tuple(_chosen_name(Fields(entry, place), kinds) for entry, place in allowed.array("tools"))
    if not names:
        raise invalid("Expected `array` of length >= 1", allowed.at("tools"), "empty_array")
    return ToolChoice(allowed_mode, names)


def _chosen_name(entry: Fields, kinds: Mapping[str, str]) -> str:
    kind = entry.choice("type", ("function", "custom"))
    fields = entry.nested(kind)
    name = fields.string("name")
    if kinds.get(name) != kind:
        candidates = listed(name for name, known in kinds.items() if known == kind) or "none were given"
        raise invalid(f"Tool choice {shown(name)} is not one of the {kind} tools: {candidates}", fields.at("name"))
    return name


# --- what is asked of the answer --------------------------------------------------------------------------------------


def response_format_from_openai(value: object, pointer: str) -> ResponseFormat | None:
    """``response_format`` (nested) or ``text.format`` (flat). Plain text asks nothing: ``None``."""
    if value is None:
        return None
    fields = Fields(value, pointer)
    kind = fields.choice("type", ("json_object", "json_schema", "text"))
    if kind == "text":
        return None
    if kind == "json_object":
        return ResponseFormat("json_object")
    form = fields.nested("json_schema")
    return ResponseFormat.json_schema(
        dict(form.object("schema").members),
        _name(form, _FORMAT_NAME, _LONGEST_FORMAT_NAME),
        form.optional_string("description") or "",
        strict=form.boolean("strict", False),
    )


def reasoning_effort_from_openai(value: object, pointer: str) -> str | None:
    return None if value is None else as_choice(value, REASONING_EFFORTS, pointer)


def mentions_json(messages: Iterable[Message]) -> bool:
    """Whether any message has the word: OpenAI's guard against asking for JSON without telling the model."""
    return any("json" in message.text.lower() for message in messages)


def _require_the_word_json(messages: Iterable[Message]) -> None:
    if not mentions_json(messages):
        raise ConversationError(
            "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
            pointer="/messages",
        )


def _name(fields: Fields, pattern: re.Pattern[str], longest: int) -> str:
    name = fields.string("name")
    fault = None
    if not pattern.fullmatch(name):
        fault = (
            "string does not match pattern. "
            f"Expected a string that matches the pattern '{pattern.pattern}', but got {shown(name)} instead."
        )
    elif len(name) > longest:
        fault = (
            f"string too long. Expected a string with maximum length {longest}, "
            f"but got a string with length {len(name)} instead."
        )
    if fault is not None:
        raise invalid(f"Invalid '{parameter(fields.at('name'))}': {fault}", fields.at("name"))
    return name
