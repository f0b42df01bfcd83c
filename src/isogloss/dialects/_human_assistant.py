"""Turns as ``Human:`` and ``Assistant:`` in plain text, for formats that no open model's template defines."""

from __future__ import annotations

from collections.abc import Sequence

from isogloss.dialects._turns import TurnsDialect, said
from isogloss.messages import AssistantMessage, Tool, ToolMessage
from isogloss.prompt import PromptWriter

HUMAN = "\n\nHuman:"
ASSISTANT = "\n\nAssistant:"


class HumanAssistantDialect(TurnsDialect):
    """A dialect without control tokens; results come in a human turn."""

    def write_opening(self, writer: PromptWriter, system: str, told: str) -> None:
        writer.text("\n\n".join([text for text in (system, told) if text]))

    def write_user(self, writer: PromptWriter, text: str) -> None:
        writer.text(f"{HUMAN} {text}")

    def write_assistant(
        self, writer: PromptWriter, message: AssistantMessage, reasoning: str | None, tools: Sequence[Tool]
    ) -> None:
        writer.text(f"{ASSISTANT} ")
        writer.is_assistant = True
        if reasoning:
            self.write_reasoning(writer, reasoning)
        text = said(message)
        writer.text(text)
        if message.tool_calls:
            writer.text("\n\n" if text else "")
            self.write_calls(writer, message.tool_calls, tools)
        writer.is_assistant = False

    def write_results_turn(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        writer.text(f"{HUMAN} ")
        self.write_results(writer, results)

    def write_generation_prompt(self, writer: PromptWriter, *, thinks: bool) -> None:
        writer.text(f"{ASSISTANT} ")

    def write_reasoning(self, writer: PromptWriter, text: str) -> None:
        writer.text(f"{self.markers['think']}\n{text}\n{self.markers['think_close']}\n\n")
