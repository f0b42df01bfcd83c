"""Turns of the Llama family: a header with the role, the text, and a token that ends it."""

from __future__ import annotations

from collections.abc import Sequence

from isogloss.dialects._turns import TurnsDialect, said
from isogloss.messages import AssistantMessage, Tool, ToolMessage
from isogloss.notations.json import write as write_json
from isogloss.prompt import PromptWriter


class LlamaTurnsDialect(TurnsDialect):
    """A dialect whose markers have ``beginning``, ``turn``, ``turn_named`` and ``turn_end``.

    The family has no way of its own to think; reasoning that came from elsewhere is marked as most mark it.
    """

    def write_opening(self, writer: PromptWriter, system: str, told: str) -> None:
        writer.marker(self.markers["beginning"])
        opening = "\n\n".join([text for text in (system, told) if text])
        if opening:
            self._write_turn(writer, "system", opening)

    def write_user(self, writer: PromptWriter, text: str) -> None:
        self._write_turn(writer, "user", text)

    def write_assistant(
        self, writer: PromptWriter, message: AssistantMessage, reasoning: str | None, tools: Sequence[Tool]
    ) -> None:
        self._open(writer, "assistant")
        writer.is_assistant = True
        if reasoning:
            self.write_reasoning(writer, reasoning)
        text = said(message)
        writer.text(text)
        if message.tool_calls:
            writer.text("\n" if text else "")
            self.write_calls(writer, message.tool_calls, tools)
        writer.marker(self.markers["turn_end"])
        writer.is_assistant = False

    def write_results_turn(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        for result in results:
            self._write_turn(writer, "ipython", write_json(result.text))

    def write_generation_prompt(self, writer: PromptWriter, *, thinks: bool) -> None:
        self._open(writer, "assistant")

    def write_results(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        writer.text("\n".join([write_json(result.text) for result in results]))

    def write_reasoning(self, writer: PromptWriter, text: str) -> None:
        writer.marker("<think>")
        writer.text(f"\n{text}\n")
        writer.marker("</think>")
        writer.text("\n\n")

    def _open(self, writer: PromptWriter, role: str) -> None:
        writer.marker(self.markers["turn"])
        writer.text(role)
        writer.marker(self.markers["turn_named"])
        writer.text("\n\n")

    def _write_turn(self, writer: PromptWriter, role: str, text: str) -> None:
        self._open(writer, role)
        writer.text(text)
        writer.marker(self.markers["turn_end"])
