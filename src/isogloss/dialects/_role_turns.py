"""Turns that are alike but for who speaks: a marker and the role, the text, and a marker that ends it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from isogloss.dialects._told import paragraphs
from isogloss.dialects._turns import TurnsDialect, said
from isogloss.messages import AssistantMessage, Tool, ToolMessage
from isogloss.prompt import PromptWriter


class RoleTurnsDialect(TurnsDialect):
    """A dialect whose markers have ``turn`` (or which gives `open_turn`) and ``turn_end``."""

    assistant_role: ClassVar[str] = "assistant"
    results_role: ClassVar[str] = "tool"
    one_result_a_turn: ClassVar[bool] = True
    gap: ClassVar[str] = "\n"
    """What is written between text and the calls that follow it."""
    behind_turn: ClassVar[str] = ""
    """What is written behind the marker that ends a turn."""

    def open_turn(self, writer: PromptWriter, role: str) -> None:
        """Write what stands in front of what a role says."""
        writer.marker(self.markers["turn"])
        writer.text(f"{role}\n")

    def close_turn(self, writer: PromptWriter) -> None:
        """Write what stands behind it."""
        writer.marker(self.markers["turn_end"])
        writer.is_assistant = False
        writer.text(self.behind_turn)

    def write_turn(self, writer: PromptWriter, role: str, text: str) -> None:
        """Write a whole turn."""
        self.open_turn(writer, role)
        writer.text(text)
        self.close_turn(writer)

    def write_opening(self, writer: PromptWriter, system: str, told: str) -> None:
        opening = paragraphs(system, told)
        if opening:
            self.write_turn(writer, "system", opening)

    def write_user(self, writer: PromptWriter, text: str) -> None:
        self.write_turn(writer, "user", text)

    def write_assistant(
        self, writer: PromptWriter, message: AssistantMessage, reasoning: str | None, tools: Sequence[Tool]
    ) -> None:
        self.open_turn(writer, self.assistant_role)
        writer.is_assistant = True
        self.write_thoughts(writer, reasoning)
        text = said(message)
        writer.text(text)
        if message.tool_calls:
            writer.text(self.gap if text else "")
            self.write_calls(writer, message.tool_calls, tools)
        self.close_turn(writer)

    def write_thoughts(self, writer: PromptWriter, reasoning: str | None) -> None:
        """Write what of an assistant's reasoning is kept, as `write_assistant` is given it."""
        if reasoning:
            self.write_reasoning(writer, reasoning)

    def write_results_turn(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        for reported in [[result] for result in results] if self.one_result_a_turn else [results]:
            self.open_turn(writer, self.results_role)
            self.write_results(writer, reported)
            self.close_turn(writer)

    def write_results(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        """The text alone, for families in which the role says that it is a result."""
        writer.text("\n".join([result.text for result in results]))

    def write_generation_prompt(self, writer: PromptWriter, *, thinks: bool) -> None:
        self.open_turn(writer, self.assistant_role)
