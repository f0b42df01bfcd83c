"""Conversations to tokens, each piece of a message encoded by itself, so that no text can become a control token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from isogloss.compat.openai_harmony.messages import (
    CONTENTS,
    Content,
    DeveloperContent,
    Message,
    Role,
    SystemContent,
    TextContent,
    ToolNamespaceConfig,
)
from isogloss.compat.openai_harmony.vocabulary import CALL, CHANNEL, CONSTRAIN, END, MESSAGE, START, Vocabulary
from isogloss.dialects._harmony_builtins import Namespace
from isogloss.dialects._harmony_header import CONSTRAIN as CONSTRAIN_TEXT
from isogloss.dialects._harmony_prompt import developer_text, system_text, tools_text

_PLACES = {SystemContent: Role.SYSTEM, DeveloperContent: Role.DEVELOPER}


class Renderer:
    """Renders with one vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._encode = vocabulary.tokenizer.encode
        self._encode_name = lru_cache(maxsize=1024)(self._encode)

    def conversation(self, messages: Sequence[Message], drops_analysis: bool, next_role: str = "") -> list[int]:
        """The tokens of a conversation. Raises `RuntimeError`."""
        has_functions = any(_has_functions(message) for message in messages)
        first_final = _first_answer(messages) if drops_analysis else 0
        tokens: list[int] = []
        for position, message in enumerate(messages):
            if position >= first_final or message.channel != "analysis":
                tokens += self.message(message, has_functions)
        if next_role:
            tokens.append(START)
            tokens += self._encode_name(next_role)
        return tokens

    def message(self, message: Message, has_functions: bool) -> list[int]:
        """The tokens of one message. Raises `RuntimeError`."""
        role = message.author.role
        tokens = [START, *self._encode_name(_who(message))]
        if message.author.name is not None and role is not Role.TOOL:
            tokens += self._encode_name(f":{message.author.name}")
        if message.recipient is not None and message.recipient != "all":
            tokens += self._encode_name(f" to={message.recipient}")
        if message.channel is not None:
            tokens.append(CHANNEL)
            tokens += self._encode_name(message.channel)
        if message.content_type is not None:
            tokens += self._content_type(message.content_type)
        tokens.append(MESSAGE)
        for content in message.content:
            tokens += self._encode(_text(content, role, has_functions))
        tokens.append(CALL if role is Role.ASSISTANT and message.recipient is not None else END)
        return tokens

    def _content_type(self, content_type: str) -> list[int]:
        if not content_type.startswith(CONSTRAIN_TEXT):
            return self._encode_name(f" {content_type}")
        kind = content_type.removeprefix(CONSTRAIN_TEXT)
        return [*self._encode_name(" "), CONSTRAIN, *self._encode_name(kind)]


def _has_functions(message: Message) -> bool:
    return any(
        isinstance(content, DeveloperContent) and content.tools and _functions(content.tools)
        for content in message.content
    )


def _functions(tools: Mapping[str, ToolNamespaceConfig]) -> bool:
    functions = tools.get("functions")
    return functions is not None and bool(functions.tools)


def _first_answer(messages: Sequence[Message]) -> int:
    """Where the first answer is, if the last message of the assistant is an answer; reasoning before it is dropped."""
    last = next((message for message in reversed(messages) if message.author.role is Role.ASSISTANT), None)
    if last is None or last.channel != "final":
        return 0
    return next(position for position, message in enumerate(messages) if message.channel == "final")


def _who(message: Message) -> str:
    if message.author.role is not Role.TOOL:
        return str(message.author.role.value)
    if message.author.name is None:
        raise RuntimeError("Tools should have a name!")
    return message.author.name


def _text(content: Content, role: Role, has_functions: bool) -> str:
    if isinstance(content, TextContent):
        return content.text
    if not isinstance(content, (SystemContent, DeveloperContent)):
        return _text(_known(content), role, has_functions)
    place = _PLACES[type(content)]
    if role is not place:
        raise RuntimeError(
            f"{type(content).__name__} may only appear in {place.value} messages, found in {role.value.capitalize()}"
        )
    if isinstance(content, DeveloperContent):
        return developer_text(content.instructions, _tools(content.tools))
    channels = content.channel_config
    return system_text(
        identity=content.model_identity,
        knowledge_cutoff=content.knowledge_cutoff,
        current_date=content.conversation_start_date,
        effort=None if content.reasoning_effort is None else content.reasoning_effort.value.lower(),
        tools=_tools(content.tools),
        channels=() if channels is None else channels.valid_channels,
        channel_required=channels is not None and channels.channel_required,
        has_functions=has_functions,
    )


def _known(content: Content) -> Content:
    """A content of somebody's own class, by what it says of itself."""
    fields = content.to_dict()
    kind = CONTENTS.get(fields.get("type", ""))
    if kind is None:
        raise ValueError(f"Unknown content variant: {fields}")
    return kind(**fields)


def _tools(tools: Mapping[str, ToolNamespaceConfig] | None) -> str:
    namespaces = [space for _, space in sorted((tools or {}).items())]
    return tools_text([Namespace(space.name, space.description, space.tools) for space in namespaces], compat=True)
