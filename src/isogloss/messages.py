"""What is said: conversations, messages, tools and what is asked of the answer. Frozen values."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, get_args

import msgspec

from isogloss.checks import expect, expect_one_of, expect_texts, expect_tool_name, freeze
from isogloss.errors import ConversationError

_NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
"""Of a tool that says nothing of its parameters: it has none, and its calls carry the empty object."""


LARK_KEYWORD = "x-lark"
"""The keyword of a string's schema that holds a grammar of llguidance's Lark."""


class ToolCall(msgspec.Struct, frozen=True):
    """A call that an assistant made. ``arguments`` is a JSON object; a custom tool's free text is its ``input``."""

    id: str
    name: str
    arguments: dict[str, Any]

    def __post_init__(self) -> None:
        expect(self.arguments, dict, "the arguments of a call", "parse JSON text first")


class MalformedCall(msgspec.Struct, frozen=True):
    """Output that looked like a call and was none: the text and what is wrong with it."""

    raw: str
    reason: str


class SystemMessage(msgspec.Struct, frozen=True, tag="system"):
    """What the provider of the model tells it."""

    text: str

    def __post_init__(self) -> None:
        expect_texts(self, "text")


class DeveloperMessage(msgspec.Struct, frozen=True, tag="developer"):
    """What the author of the application tells the model. Families without that role read it as a system message."""

    text: str

    def __post_init__(self) -> None:
        expect_texts(self, "text")


class UserMessage(msgspec.Struct, frozen=True, tag="user"):
    """What the user says."""

    text: str

    def __post_init__(self) -> None:
        expect_texts(self, "text")


class AssistantMessage(msgspec.Struct, frozen=True, tag="assistant"):
    """One turn of the model. Empty strings where nothing was said."""

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    malformed: tuple[MalformedCall, ...] = ()
    finish: str | None = None

    def __post_init__(self) -> None:
        expect_texts(self, "text", "reasoning", "refusal")
        freeze(self, "tool_calls", ToolCall)
        freeze(self, "malformed", MalformedCall)


class ToolMessage(msgspec.Struct, frozen=True, tag="tool"):
    """The result of a call."""

    call_id: str
    name: str
    text: str
    is_error: bool = False

    def __post_init__(self) -> None:
        expect_texts(self, "call_id", "name", "text")


Message = SystemMessage | DeveloperMessage | UserMessage | AssistantMessage | ToolMessage
_MESSAGES = get_args(Message)


class TextGrammar(msgspec.Struct, frozen=True):
    """What a custom tool's free text must match: llguidance's Lark, or a Rust regular expression."""

    syntax: Literal["lark", "regex"]
    definition: str

    def __post_init__(self) -> None:
        expect_one_of(self.syntax, ("lark", "regex"), "a grammar's syntax")
        expect_texts(self, "definition")


class Tool(msgspec.Struct, frozen=True):
    """Something the model may call.

    ``parameters`` is the JSON Schema of the arguments. ``strict`` asks that calls satisfy it. A custom tool takes free
    text: ``is_custom`` is set, ``grammar`` binds the text if given, and its calls carry ``{"input": text}``.
    """

    name: str
    description: str = ""
    parameters: dict[str, Any] = msgspec.field(default_factory=_NO_PARAMETERS.copy)
    strict: bool = False
    is_custom: bool = False
    grammar: TextGrammar | None = None

    def __post_init__(self) -> None:
        expect_tool_name(self.name)
        expect_texts(self, "description")
        expect(self.parameters, dict, "a tool's parameters", "a JSON Schema; `isogloss.schema.from_type` makes one")

    @classmethod
    def custom(cls, name: str, description: str = "", grammar: TextGrammar | None = None) -> Tool:
        """A tool that takes free text. Its parameters say so as a schema: a regular expression as ``pattern``, a Lark
        grammar under `LARK_KEYWORD`, which notations that write text as it is can hold a model to."""
        text: dict[str, Any] = {"type": "string"}
        if grammar is not None and grammar.syntax == "regex":
            text["pattern"] = f"^(?:{grammar.definition})$"
        elif grammar is not None:
            text[LARK_KEYWORD] = grammar.definition
        parameters = {
            "type": "object",
            "properties": {"input": text},
            "required": ["input"],
            "additionalProperties": False,
        }
        return cls(name, description, parameters, False, True, grammar)

    @classmethod
    def from_openai(cls, tool: Mapping[str, Any]) -> Tool:
        """From an entry of ``tools`` as Chat Completions (nested) or Responses (flat) write it."""
        from isogloss.openai_chat import tool_from_openai

        return tool_from_openai(tool, "")

    @classmethod
    def from_function(cls, function: Callable[..., Any]) -> Tool:
        """From an annotated Python function: its name, its docstring, and a strict schema of its parameters."""
        from isogloss.schema import from_function

        return from_function(function)


class ToolChoice(msgspec.Struct, frozen=True):
    """Whether and what the model must call: a mode, and the names it may choose from (``None``: any tool)."""

    mode: Literal["auto", "none", "required"] = "auto"
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        expect_one_of(self.mode, ("auto", "none", "required"), "the mode of a tool choice")
        if self.names is not None:
            freeze(self, "names", str)

    @classmethod
    def named(cls, name: str) -> ToolChoice:
        """Exactly this tool must be called."""
        return cls("required", (name,))

    @classmethod
    def of(cls, choice: str | ToolChoice) -> ToolChoice:
        """``auto``, ``none`` and ``required`` are modes; any other string names a tool."""
        if isinstance(choice, ToolChoice):
            return choice
        expect(choice, str, "a tool choice")
        mode = _MODES.get(choice)
        return cls.named(choice) if mode is None else mode

    def allowed(self, tools: Iterable[Tool]) -> tuple[Tool, ...]:
        """Those of the tools that may be called under this choice. Raises `ConversationError` for an unknown name."""
        if self.mode == "none":
            return ()
        tools = tuple(tools)
        if self.names is None:
            return tools
        known = {tool.name for tool in tools}
        for name in self.names:
            if name not in known:
                raise ConversationError(
                    f"Tool choice {name!r} is not one of the tools: {', '.join(sorted(known)) or 'none were given'}",
                    pointer="/tool_choice",
                )
        return tuple(tool for tool in tools if tool.name in self.names)


_MODES = {"auto": ToolChoice("auto"), "none": ToolChoice("none"), "required": ToolChoice("required")}


class ResponseFormat(msgspec.Struct, frozen=True):
    """What the answer must be: any text, any JSON object, or JSON that satisfies ``schema``.

    ``may_refuse``: the model is told how to refuse, and may.
    """

    kind: Literal["text", "json_object", "json_schema"] = "text"
    schema: dict[str, Any] | None = None
    name: str = "response"
    description: str = ""
    strict: bool = True
    may_refuse: bool = True

    def __post_init__(self) -> None:
        expect_one_of(self.kind, ("text", "json_object", "json_schema"), "a response format")
        if self.kind == "json_schema":
            expect(self.schema, dict, "a response format's schema", "`isogloss.schema.from_type` makes one of a type")

    @classmethod
    def json_schema(
        cls, schema: dict[str, Any], name: str = "response", description: str = "", *, strict: bool = True
    ) -> ResponseFormat:
        """An answer that satisfies ``schema``."""
        return cls("json_schema", schema, name, description, strict)


class Conversation(msgspec.Struct, frozen=True):
    """All that a prompt is made of. A string for ``tool_choice`` is read by `ToolChoice.of`.

    Raises `ConversationError` for a choice of a tool that is not there, and for two tools of one name.
    """

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | str = "auto"
    response_format: ResponseFormat | None = None
    reasoning_effort: str | None = None
    parallel_tool_calls: bool = True

    def __post_init__(self) -> None:
        freeze(self, "messages", _MESSAGES, "`Conversation.from_openai` takes requests as OpenAI's API has them")
        freeze(self, "tools", Tool, "`Tool.from_openai` and `Tool.from_function` make them")
        hint = "`ResponseFormat.json_schema` takes a schema"
        expect(self.response_format, (ResponseFormat, type(None)), "a response format", hint)
        expect(self.reasoning_effort, (str, type(None)), "a reasoning effort")
        choice = ToolChoice.of(self.tool_choice)
        choice.allowed(self.tools)
        msgspec.structs.force_setattr(self, "tool_choice", choice)
        seen: set[str] = set()
        for position, tool in enumerate(self.tools):
            if tool.name in seen:
                raise ConversationError(f"Tool name {tool.name!r} is used twice", pointer=f"/tools/{position}/name")
            seen.add(tool.name)

    @classmethod
    def from_openai(cls, request: Mapping[str, Any]) -> Conversation:
        """From a Chat Completions request (or its ``messages``, ``tools``, ... alone). Raises `ConversationError`."""
        from isogloss.openai_chat import conversation_from_openai

        return conversation_from_openai(request)

    @classmethod
    def from_responses(cls, request: Mapping[str, Any]) -> Conversation:
        """From a Responses request. Raises `ConversationError`."""
        from isogloss.openai_responses import conversation_from_responses

        return conversation_from_responses(request)


def new_call_id() -> str:
    """A fresh random id for a call whose format has none."""
    return "call_" + secrets.token_hex(12)
