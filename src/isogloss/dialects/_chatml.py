"""ChatML turns: ``<|im_start|>role⏎text<|im_end|>⏎``, shared by the families that use them."""

from __future__ import annotations

from typing import ClassVar

from isogloss.dialects._base import BlockDialect, last_user_position, offered, runs
from isogloss.messages import (
    AssistantMessage,
    Conversation,
    DeveloperMessage,
    SystemMessage,
    ToolMessage,
)
from isogloss.prompt import PromptWriter

TURN = "<|im_start|>"
TURN_END = "<|im_end|>"


class ChatMLDialect(BlockDialect):
    """A dialect whose turns are ChatML. ``results_role`` is the role that reports tool results."""

    results_role: ClassVar[str]
    one_result_a_turn: ClassVar[bool] = False
    gap: ClassVar[str] = "\n"
    """What is written between text and the calls that follow it."""

    def write_beginning(self, writer: PromptWriter, system: str, conversation: Conversation) -> None:
        """Write what comes before the first turn: the system text, the tools, the format of the answer."""
        told = self.tool_prompt(offered(conversation), conversation.response_format)
        text = "\n\n".join([text for text in (system, told) if text])
        if text:
            self._turn(writer, "system", text)

    def write_conversation(self, writer: PromptWriter, conversation: Conversation, generation_prompt: bool) -> None:
        messages = conversation.messages
        system = [m.text for m in messages if isinstance(m, SystemMessage | DeveloperMessage) and m.text]
        self.write_beginning(writer, "\n\n".join(system), conversation)
        open_turn = last_user_position(messages)
        position = -1
        for run in runs(messages):
            position += len(run)
            first = run[0]
            writer.message = position
            if isinstance(first, SystemMessage | DeveloperMessage):
                continue
            if isinstance(first, ToolMessage):
                for results in [[result] for result in run] if self.one_result_a_turn else [run]:
                    self._open(writer, self.results_role)
                    self.write_results(writer, results)  # type: ignore[arg-type]
                    self._close(writer)
            elif isinstance(first, AssistantMessage):
                self._write_assistant(writer, first, conversation, keep_reasoning=position > open_turn)
            else:
                self._turn(writer, "user", first.text)
        writer.message = -1
        if generation_prompt:
            self._open(writer, "assistant")
            self._write_generation_prompt(writer, conversation)

    def _write_generation_prompt(self, writer: PromptWriter, conversation: Conversation) -> None:
        """What the template writes for the model at the start of its turn; nothing in most families."""

    def _write_assistant(
        self, writer: PromptWriter, message: AssistantMessage, conversation: Conversation, keep_reasoning: bool
    ) -> None:
        self._open(writer, "assistant")
        writer.is_assistant = True
        if message.reasoning and (keep_reasoning or self.keeps_reasoning):
            self.write_reasoning(writer, message.reasoning)
        if message.text:
            writer.text(message.text)
        elif message.refusal:
            writer.text(f"<refusal>{message.refusal}</refusal>")
        if message.tool_calls:
            if message.text:
                writer.text(self.gap)
            self.write_calls(writer, message.tool_calls, conversation.tools)
        writer.marker(TURN_END)
        writer.is_assistant = False
        writer.text("\n")

    def _turn(self, writer: PromptWriter, role: str, text: str) -> None:
        self._open(writer, role)
        writer.text(text)
        self._close(writer)

    def _open(self, writer: PromptWriter, role: str) -> None:
        writer.marker(TURN)
        writer.text(f"{role}\n")

    def _close(self, writer: PromptWriter) -> None:
        writer.marker(TURN_END)
        writer.text("\n")
