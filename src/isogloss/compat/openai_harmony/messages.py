"""Conversations as the package has them: pydantic models that change in place."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, NoReturn

from pydantic import BaseModel, Field

from isogloss.dialects._harmony_builtins import BROWSER, PYTHON, Namespace
from isogloss.dialects._harmony_prompt import IDENTITY, KNOWLEDGE_CUTOFF


class Role(str, Enum):
    """Who speaks."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    DEVELOPER = "developer"
    TOOL = "tool"

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        raise ValueError(f"Unknown role: {value!r}")


class Author(BaseModel):
    """A role, and a name: for a tool the name of the tool."""

    role: Role
    name: str | None = None

    @classmethod
    def new(cls, role: Role, name: str) -> Author:
        return cls(role=role, name=name)


class Content(BaseModel):
    """A part of a message."""

    def to_dict(self) -> dict[str, Any]:
        raise NotImplementedError


class TextContent(Content):
    """Text."""

    text: str

    def to_dict(self) -> dict[str, Any]:
        return {"type": "text", "text": self.text}


class ToolDescription(BaseModel):
    """A function that the model may call. ``parameters`` is a JSON Schema, ``None`` where it takes nothing."""

    name: str
    description: str
    parameters: dict[str, Any] | None = None

    @classmethod
    def new(cls, name: str, description: str, parameters: dict[str, Any] | None = None) -> ToolDescription:
        return cls(name=name, description=description, parameters=parameters)


class ReasoningEffort(str, Enum):
    """How long the model reasons."""

    LOW = "Low"
    MEDIUM = "Medium"
    HIGH = "High"


class ChannelConfig(BaseModel):
    """The channels that the system message names, and whether every message must have one."""

    valid_channels: list[str]
    channel_required: bool

    @classmethod
    def require_channels(cls, channels: list[str]) -> ChannelConfig:
        return cls(valid_channels=channels, channel_required=True)


class ToolNamespaceConfig(BaseModel):
    """Functions under one name."""

    name: str
    description: str | None = None
    tools: list[ToolDescription]

    @staticmethod
    def browser() -> ToolNamespaceConfig:
        return _namespace_config(BROWSER)

    @staticmethod
    def python() -> ToolNamespaceConfig:
        return _namespace_config(PYTHON)


def _namespace_config(namespace: Namespace) -> ToolNamespaceConfig:
    tools = [ToolDescription.new(tool.name, tool.description, tool.parameters) for tool in namespace.tools]
    return ToolNamespaceConfig(name=namespace.name, description=namespace.description, tools=tools)


def _default_channels() -> ChannelConfig:
    return ChannelConfig.require_channels(["analysis", "commentary", "final"])


class SystemContent(Content):
    """What the system message says."""

    model_identity: str | None = IDENTITY
    reasoning_effort: ReasoningEffort | None = ReasoningEffort.MEDIUM
    conversation_start_date: str | None = None
    knowledge_cutoff: str | None = KNOWLEDGE_CUTOFF
    channel_config: ChannelConfig | None = Field(default_factory=_default_channels)
    tools: dict[str, ToolNamespaceConfig] | None = None

    @classmethod
    def new(cls) -> SystemContent:
        return cls()

    def with_model_identity(self, model_identity: str) -> SystemContent:
        self.model_identity = model_identity
        return self

    def with_reasoning_effort(self, reasoning_effort: ReasoningEffort) -> SystemContent:
        self.reasoning_effort = reasoning_effort
        return self

    def with_conversation_start_date(self, conversation_start_date: str) -> SystemContent:
        self.conversation_start_date = conversation_start_date
        return self

    def with_knowledge_cutoff(self, knowledge_cutoff: str) -> SystemContent:
        self.knowledge_cutoff = knowledge_cutoff
        return self

    def with_channel_config(self, channel_config: ChannelConfig) -> SystemContent:
        self.channel_config = channel_config
        return self

    def with_required_channels(self, channels: list[str]) -> SystemContent:
        return self.with_channel_config(ChannelConfig.require_channels(channels))

    def with_tools(self, ns_config: ToolNamespaceConfig) -> SystemContent:
        if self.tools is None:
            self.tools = {}
        self.tools[ns_config.name] = ns_config
        return self

    def with_browser_tool(self) -> SystemContent:
        return self.with_tools(ToolNamespaceConfig.browser())

    def with_python_tool(self) -> SystemContent:
        return self.with_tools(ToolNamespaceConfig.python())

    def to_dict(self) -> dict[str, Any]:
        return {**self.model_dump(exclude_none=True), "type": "system_content"}

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> SystemContent:
        return cls(**raw)


class DeveloperContent(Content):
    """What the developer message says."""

    instructions: str | None = None
    tools: dict[str, ToolNamespaceConfig] | None = None

    @classmethod
    def new(cls) -> DeveloperContent:
        return cls()

    def with_instructions(self, instructions: str) -> DeveloperContent:
        self.instructions = instructions
        return self

    def with_tools(self, ns_config: ToolNamespaceConfig) -> DeveloperContent:
        if self.tools is None:
            self.tools = {}
        self.tools[ns_config.name] = ns_config
        return self

    def with_function_tools(self, tools: Sequence[ToolDescription]) -> DeveloperContent:
        return self.with_tools(ToolNamespaceConfig(name="functions", description=None, tools=list(tools)))

    def to_dict(self) -> dict[str, Any]:
        return {**self.model_dump(exclude_none=True), "type": "developer_content"}

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> DeveloperContent:
        return cls(**raw)


CONTENTS: dict[str, type[Content]] = {
    "text": TextContent,
    "system_content": SystemContent,
    "developer_content": DeveloperContent,
}


class Message(BaseModel):
    """A message on a channel, to a recipient."""

    author: Author
    content: list[Content] = Field(default_factory=list)
    channel: str | None = None
    recipient: str | None = None
    content_type: str | None = None

    @classmethod
    def from_author_and_content(cls, author: Author, content: str | Content) -> Message:
        return cls(author=author, content=[_as_content(content)])

    @classmethod
    def from_role_and_content(cls, role: Role, content: str | Content) -> Message:
        return cls.from_author_and_content(Author(role=role), content)

    @classmethod
    def from_role_and_contents(cls, role: Role, contents: Sequence[Content]) -> Message:
        return cls(author=Author(role=role), content=list(contents))

    def adding_content(self, content: str | Content) -> Message:
        self.content.append(_as_content(content))
        return self

    def with_channel(self, channel: str) -> Message:
        self.channel = channel
        return self

    def with_recipient(self, recipient: str) -> Message:
        self.recipient = recipient
        return self

    def with_content_type(self, content_type: str) -> Message:
        self.content_type = content_type
        return self

    def to_dict(self) -> dict[str, Any]:
        out = {**self.author.model_dump(), "content": [part.to_dict() for part in self.content]}
        for name in ("channel", "recipient", "content_type"):
            value = getattr(self, name)
            if value is not None:
                out[name] = value
        return out

    def to_json(self) -> str:
        return json.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Message:
        author = Author(role=Role(data["role"]), name=data.get("name"))
        raw_content = data["content"]
        if isinstance(raw_content, str):
            raw_content = [{"type": "text", "text": raw_content}]
        message = cls(author=author, content=[_content_from_dict(raw) for raw in raw_content])
        message.channel = data.get("channel")
        message.recipient = data.get("recipient")
        message.content_type = data.get("content_type")
        return message


def _as_content(content: str | Content) -> Content:
    return TextContent(text=content) if isinstance(content, str) else content


def _content_from_dict(raw: dict[str, Any]) -> Content:
    kind = CONTENTS.get(raw.get("type", ""))
    if kind is None:
        raise ValueError(f"Unknown content variant: {raw}")
    return kind(**raw)


class Conversation(BaseModel):
    """Messages in order."""

    messages: list[Message] = Field(default_factory=list)

    @classmethod
    def from_messages(cls, messages: Sequence[Message]) -> Conversation:
        return cls(messages=list(messages))

    def __iter__(self) -> Iterator[Message]:  # type: ignore[override]
        return iter(self.messages)

    def to_dict(self) -> dict[str, Any]:
        return {"messages": [message.to_dict() for message in self.messages]}

    def to_json(self) -> str:
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, payload: str) -> Conversation:
        return cls(messages=[Message.from_dict(message) for message in json.loads(payload)["messages"]])
