"""Conversations of the Gemma family from its function calling models on: declarations in the notation of the calls,
and results within the model's own turn, which goes on behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from isogloss.dialects._base import BlockDialect
from isogloss.dialects._brace_calls import write_braces, write_calls, write_results
from isogloss.dialects._conversations import instructions, last_user_position, offered, runs
from isogloss.dialects._told import format_prompt, paragraphs
from isogloss.dialects._turns import said
from isogloss.messages import (
    AssistantMessage,
    Conversation,
    DeveloperMessage,
    SystemMessage,
    Tool,
    ToolCall,
    ToolMessage,
)
from isogloss.prompt import PromptWriter
from isogloss.schema.view import SchemaView, shared_view


class GemmaTurnsDialect(BlockDialect):
    """A dialect with turns ``turn ROLE⏎ text turn_end⏎``. ``opening_role`` speaks first."""

    opening_role: ClassVar[str]

    def write_opening(self, writer: PromptWriter, system: str, tools: Sequence[Tool], *, thinks: bool) -> None:
        """Write what the opening turn says; nothing where there is nothing to say."""
        raise NotImplementedError

    def write_calls(self, writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
        write_calls(writer, calls, tools, self.markers)

    def write_results(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        write_results(writer, results, self.markers)

    def write_conversation(self, writer: PromptWriter, conversation: Conversation, generation_prompt: bool) -> None:
        messages = conversation.messages
        self._write_beginning(writer, conversation)
        open_turn = last_user_position(messages)
        is_model = False  # whether the model's turn is open
        for position, spoken in runs(messages):
            writer.message = position
            if isinstance(spoken, SystemMessage | DeveloperMessage):
                continue
            if isinstance(spoken, AssistantMessage | list):
                if not is_model:
                    self._open(writer, "model")
            elif is_model:
                self._close(writer)
            is_model = isinstance(spoken, list)
            if isinstance(spoken, list):
                self.write_results(writer, spoken)
            elif isinstance(spoken, AssistantMessage):
                is_model = self._write_assistant(writer, spoken, conversation, position, open_turn)
            else:
                self._open(writer, "user")
                writer.text(spoken.text)
                self._close(writer)
        writer.message = -1
        if generation_prompt and not is_model:
            self._open(writer, "model")

    def _write_beginning(self, writer: PromptWriter, conversation: Conversation) -> None:
        system = paragraphs(instructions(conversation.messages), format_prompt(conversation.response_format))
        thinks = conversation.reasoning_effort != "none"
        draft = PromptWriter()
        self.write_opening(draft, system, offered(conversation), thinks=thinks)
        segments = draft.prompt().segments
        writer.marker(self.markers["beginning"])
        if segments:
            self._open(writer, self.opening_role)
            writer.extend(segments)
            self._close(writer)

    def _write_assistant(
        self,
        writer: PromptWriter,
        message: AssistantMessage,
        conversation: Conversation,
        position: int,
        open_turn: int,
    ) -> bool:
        """Write what the model said. True when its turn stays open for the results of its calls."""
        writer.is_assistant = True
        if message.reasoning and (position > open_turn or self.keeps_reasoning):
            self.write_reasoning(writer, message.reasoning)
        writer.text(said(message))
        self.write_calls(writer, message.tool_calls, conversation.tools)
        following = conversation.messages[position + 1 : position + 2]
        stays_open = bool(following) and isinstance(following[0], ToolMessage)
        if not stays_open:
            writer.marker(self.markers["turn_end"])
        writer.is_assistant = False
        if not stays_open:
            writer.text("\n")
        return stays_open

    def _open(self, writer: PromptWriter, role: str) -> None:
        writer.marker(self.markers["turn"])
        writer.text(f"{role}\n")

    def _close(self, writer: PromptWriter) -> None:
        writer.marker(self.markers["turn_end"])
        writer.text("\n")

    def write_declarations(self, writer: PromptWriter, tools: Sequence[Tool]) -> None:
        """Declare the tools as the family's templates do."""
        for tool in tools:
            view = shared_view(tool.parameters)
            parameters = {key: value for key, value in _declared(view).items() if key != "description"}
            declared = {"description": tool.description, "parameters": parameters}
            writer.marker(self.markers["declaration"])
            writer.text(f"declaration:{tool.name}")
            write_braces(writer, declared, None, self.markers, is_read_back=False)
            writer.marker(self.markers["declaration_close"])


def _declared(view: SchemaView, path: tuple[int, ...] = ()) -> dict[str, Any]:
    """What a template tells of a schema: references followed (but not within themselves), types in upper case."""
    declared: dict[str, Any] = {}
    description = view.annotation("description")
    if isinstance(description, str):
        declared["description"] = description
    types = _type_names(view)
    if types and len(view.types) > 1 and view.allows_null:
        declared["nullable"] = True
    if view.const_values is not None:
        declared["enum"] = [value for value in view.const_values if value is not None]
    if id(view) not in path:
        path = (*path, id(view))
        if "OBJECT" in types and view.properties:
            declared["properties"] = {key: _declared(member, path) for key, member in view.properties.items()}
            required = [key for key in view.properties if key in view.required]
            if required:
                declared["required"] = required
        if "ARRAY" in types and view.items is not None:
            declared["items"] = _declared(view.items, path)
    if types:
        declared["type"] = types[0] if len(types) == 1 else types
    return declared


def _type_names(view: SchemaView) -> list[str]:
    """The types by the names that templates give them; none where any is permitted."""
    if view.types >= {"object", "array", "string", "number", "boolean"}:
        return []
    names = view.types - {"null"} if len(view.types) > 1 else view.types
    return [name.upper() for name in sorted(names) if not (name == "integer" and "number" in names)]
