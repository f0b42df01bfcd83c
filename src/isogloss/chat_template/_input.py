"""What a template is given: the conversation as messages and tools in the form that Hugging Face's templates read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import msgspec

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
)


class Variant(NamedTuple):
    """A way to write what templates differ in."""

    arguments_as_text: bool = False
    empty_text: str | None = ""
    short_ids: bool = False
    """Nine letters and digits, which one family demands."""
    empty_tools: bool = False
    """An empty list of tools, where there are none, instead of nothing."""


VARIANTS = (
    Variant(),
    Variant(empty_text=None),
    Variant(arguments_as_text=True),
    Variant(arguments_as_text=True, empty_text=None),
    Variant(short_ids=True),
    Variant(arguments_as_text=True, short_ids=True),
)


def variants_for(conversation: Conversation) -> tuple[Variant, ...]:
    """The ways to write a conversation, the likeliest first."""
    has_calls = any(isinstance(said, AssistantMessage) and said.tool_calls for said in conversation.messages)
    variants = VARIANTS if has_calls else VARIANTS[:1]
    return variants if offered(conversation) else (*variants, Variant(empty_tools=True))


def offered(conversation: Conversation) -> tuple[Tool, ...]:
    """The tools that a template is told of."""
    return () if ToolChoice.of(conversation.tool_choice).mode == "none" else conversation.tools


class Subject(msgspec.Struct, frozen=True, gc=False):
    """What a string is: ``what`` of which message (-1: the name of a tool)."""

    text: str
    message: int
    what: str
    is_required: bool = False
    """Whether a prompt without it would be wrong."""
    is_prose: bool = False
    """Whether it is a whole text, which some templates look into."""


Spell: TypeAlias = "Callable[[str, int], str]"
"""How a string is given to a template: its text, and the number of its `Subject` (-1: nobody said it)."""


def as_it_is(text: str, number: int) -> str:
    """Every string is given as it is."""
    return text


class TemplateInput:
    """The messages and tools for one variant, made for one rendering: templates may change them."""

    def __init__(
        self, conversation: Conversation, variant: Variant, *, has_developers: bool, spell: Spell = as_it_is
    ) -> None:
        self.subjects: list[Subject] = []
        self.positions: list[int] = []
        """Which message of the conversation each of ``messages`` is."""
        self.assistants: set[int] = set()
        """Which of them the assistant said."""
        self.messages: list[dict[str, Any]] = []
        self._variant = variant
        self._has_developers = has_developers
        self._spell = spell
        self._instructions = ""
        for position, message in enumerate(conversation.messages):
            self._add(message, position)
        self.tools: list[dict[str, Any]] | None = [
            {
                "type": "function",
                "function": {
                    "name": self._said(tool.name, -1, f"the tool `{tool.name}`"),
                    "description": spell(tool.description, -1),
                    "parameters": _copied(tool.parameters, spell),
                },
            }
            for tool in offered(conversation)
        ] or ([] if variant.empty_tools else None)

    def _add(self, message: Message, position: int) -> None:
        if isinstance(message, AssistantMessage):
            entry = self._assistant(message, position)
            self.assistants.add(position)
        elif isinstance(message, ToolMessage):
            text = self._prose(message.text, position, "the result")
            call_id = self._id(message.call_id)
            entry = {"role": "tool", "tool_call_id": call_id, "name": self._spell(message.name, -1), "content": text}
        elif isinstance(message, SystemMessage | DeveloperMessage):
            if self._joins_instructions(message, position):
                return
            is_developer = isinstance(message, DeveloperMessage) and self._has_developers
            self._instructions = message.text
            text = self._prose(message.text, position, "the text")
            entry = {"role": "developer" if is_developer else "system", "content": text}
        else:
            entry = {"role": "user", "content": self._prose(message.text, position, "the text")}
        self.messages.append(entry)
        self.positions.append(position)

    def _joins_instructions(self, message: SystemMessage | DeveloperMessage, position: int) -> bool:
        """Instructions in a row at the start become one message where the template has one role for them."""
        if self._has_developers or len(self.messages) != 1 or self.messages[0]["role"] != "system":
            return False
        self._instructions = "\n\n".join([text for text in (self._instructions, message.text) if text])
        self.messages[0]["content"] = self._spell(self._instructions, 0)
        self.positions[0] = position
        self.subjects[0] = msgspec.structs.replace(self.subjects[0], message=position)
        return True

    def _assistant(self, message: AssistantMessage, position: int) -> dict[str, Any]:
        text = self._variant.empty_text
        said = message.text or message.refusal
        if said or not message.tool_calls:
            text = self._prose(said, position, "the text")
        entry: dict[str, Any] = {"role": "assistant", "content": text}
        if message.reasoning:
            reasoning = self._prose(message.reasoning, position, "the reasoning", required=False)
            entry |= dict.fromkeys(("reasoning_content", "thinking", "reasoning"), reasoning)
        if message.tool_calls:
            entry["tool_calls"] = [self._call(call, position) for call in message.tool_calls]
        return entry

    def _call(self, call: ToolCall, position: int) -> dict[str, Any]:
        what = f"the call of `{call.name}`"
        keys = len(self.subjects)
        self.subjects.append(Subject("", position, what, any(key.strip() for key in call.arguments)))
        name = self._said(call.name, position, what)
        arguments = self._argument(call.arguments, keys, position, what)
        if self._variant.arguments_as_text:
            arguments = json.dumps(arguments, ensure_ascii=False)
        return {"id": self._id(call.id), "type": "function", "function": {"name": name, "arguments": arguments}}

    def _argument(self, value: Any, keys: int, position: int, what: str) -> Any:
        if isinstance(value, str):
            return self._said(value, position, what)
        if isinstance(value, dict):
            return {
                self._spell(key, keys): self._argument(member, keys, position, what) for key, member in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._argument(member, keys, position, what) for member in value]
        return value

    def _id(self, call_id: str) -> str:
        if self._variant.short_ids:
            call_id = hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:9]
        return self._spell(call_id, -1)

    def _prose(self, text: str, message: int, what: str, *, required: bool = True) -> str:
        return self._said(text, message, what, required=required, is_prose=True)

    def _said(self, text: str, message: int, what: str, *, required: bool = True, is_prose: bool = False) -> str:
        number = len(self.subjects)
        self.subjects.append(Subject(text, message, what, required and text.strip() != "", is_prose))
        return self._spell(text, number)


def _copied(value: Any, spell: Spell) -> Any:
    """A copy whose strings are spelled as those that nobody said."""
    if isinstance(value, str):
        return spell(value, -1)
    if isinstance(value, dict):
        return {_copied(key, spell): _copied(member, spell) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(member, spell) for member in value]
    return value
