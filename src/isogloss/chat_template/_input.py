"""What a template is given: the conversation as messages and tools in the form that Hugging Face's templates read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from isogloss.messages import (
    AssistantMessage,
    Conversation,
    DeveloperMessage,
    Message,
    SystemMessage,
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


class Subject(NamedTuple):
    """What a string is: ``what`` of which message (-1: the name of a tool)."""

    text: str
    message: int
    what: str
    is_required: bool = False
    """Whether a prompt without it would be wrong."""
    is_prose: bool = False
    """Whether it is a whole text, which some templates look into."""


class Said(NamedTuple):
    """A string, with the number of its `Subject`."""

    text: str
    number: int


class JsonText(NamedTuple):
    """A value that is given as JSON."""

    value: Any


class TemplateInput:
    """The messages and tools for one variant. Their strings are plain, or `Said` where it matters who said them."""

    def __init__(self, conversation: Conversation, variant: Variant, *, has_developers: bool) -> None:
        self.subjects: list[Subject] = []
        self.positions: list[int] = []
        """Which message of the conversation each of ``messages`` is."""
        self.messages: list[dict[str, Any]] = []
        self._variant = variant
        self._has_developers = has_developers
        for position, message in enumerate(conversation.messages):
            self._add(message, position)
        choice = ToolChoice.of(conversation.tool_choice)
        offered = () if choice.mode == "none" else conversation.tools
        self.tools: list[dict[str, Any]] | None = [
            {
                "type": "function",
                "function": {
                    "name": self._said(tool.name, -1, f"the tool `{tool.name}`"),
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
            for tool in offered
        ] or ([] if variant.empty_tools else None)

    def _add(self, message: Message, position: int) -> None:
        if isinstance(message, AssistantMessage):
            entry = self._assistant(message, position)
        elif isinstance(message, ToolMessage):
            text = self._prose(message.text, position, "the result")
            call_id = self._id(message.call_id)
            entry = {"role": "tool", "tool_call_id": call_id, "name": message.name, "content": text}
        elif isinstance(message, SystemMessage | DeveloperMessage):
            if self._joins_instructions(message, position):
                return
            is_developer = isinstance(message, DeveloperMessage) and self._has_developers
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
        opening: Said = self.messages[0]["content"]
        joined = "\n\n".join([text for text in (opening.text, message.text) if text])
        self.messages[0]["content"] = Said(joined, opening.number)
        self.positions[0] = position
        self.subjects[opening.number] = self.subjects[opening.number]._replace(message=position)
        return True

    def _assistant(self, message: AssistantMessage, position: int) -> dict[str, Any]:
        text: Said | str | None = self._variant.empty_text
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

        def marked(value: Any) -> Any:
            if isinstance(value, str):
                return self._said(value, position, what)
            if isinstance(value, dict):
                return {Said(key, keys): marked(member) for key, member in value.items()}
            return [marked(member) for member in value] if isinstance(value, list) else value

        name = self._said(call.name, position, what)
        arguments = marked(call.arguments)
        if self._variant.arguments_as_text:
            arguments = JsonText(arguments)
        return {"id": self._id(call.id), "type": "function", "function": {"name": name, "arguments": arguments}}

    def _id(self, call_id: str) -> str:
        if not self._variant.short_ids:
            return call_id
        return hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:9]

    def _prose(self, text: str, message: int, what: str, *, required: bool = True) -> Said:
        return self._said(text, message, what, required=required, is_prose=True)

    def _said(self, text: str, message: int, what: str, *, required: bool = True, is_prose: bool = False) -> Said:
        self.subjects.append(Subject(text, message, what, required and text.strip() != "", is_prose))
        return Said(text, len(self.subjects) - 1)


def instantiated(value: Any, spell: Callable[[str, int], str]) -> Any:
    """A copy of ``value`` whose strings are what ``spell`` makes of them and their numbers (-1: a plain string)."""
    if isinstance(value, Said):
        return spell(value.text, value.number)
    if isinstance(value, JsonText):
        return json.dumps(instantiated(value.value, spell), ensure_ascii=False)
    if isinstance(value, str):
        return spell(value, -1)
    if isinstance(value, dict):
        return {instantiated(key, spell): instantiated(member, spell) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [instantiated(member, spell) for member in value]
    return value
