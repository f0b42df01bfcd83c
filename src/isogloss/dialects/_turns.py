"""The order of a conversation, for families that write one turn after the other, each in a way of its own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from isogloss.dialects._base import BlockDialect, last_user_position, offered, runs
from isogloss.dialects._markers import REFUSAL, REFUSAL_CLOSE
from isogloss.messages import AssistantMessage, Conversation, DeveloperMessage, SystemMessage, Tool, ToolMessage
from isogloss.prompt import PromptWriter


def said(message: AssistantMessage) -> str:
    """The visible text of an assistant's turn, a refusal included."""
    return message.text or (f"{REFUSAL}{message.refusal}{REFUSAL_CLOSE}" if message.refusal else "")


class TurnsDialect(BlockDialect):
    """A dialect that gives the pieces of `write_conversation`. What system and developer messages say is told at the
    start, wherever they stand."""

    @abstractmethod
    def write_opening(self, writer: PromptWriter, system: str, told: str) -> None:
        """Write what comes before the first turn. ``told`` are the tools and the answer's format; both may be empty."""

    @abstractmethod
    def write_user(self, writer: PromptWriter, text: str) -> None:
        """Write a user's turn."""

    @abstractmethod
    def write_assistant(
        self, writer: PromptWriter, message: AssistantMessage, reasoning: str | None, tools: Sequence[Tool]
    ) -> None:
        """Write an assistant's turn. ``reasoning`` is what of it is kept: an empty string where the model was to think
        and did not, ``None`` in old turns and where it was not to think."""

    @abstractmethod
    def write_results_turn(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        """Write the turn that reports a run of results."""

    @abstractmethod
    def write_generation_prompt(self, writer: PromptWriter, *, thinks: bool) -> None:
        """Write the start of the assistant's turn. ``thinks``: the model is to think first."""

    def write_conversation(self, writer: PromptWriter, conversation: Conversation, generation_prompt: bool) -> None:
        messages = conversation.messages
        system = [m.text for m in messages if isinstance(m, SystemMessage | DeveloperMessage) and m.text]
        told = self.tool_prompt(offered(conversation), conversation.response_format)
        self.write_opening(writer, "\n\n".join(system), told)
        thinks = conversation.reasoning_effort != "none"
        open_turn = last_user_position(messages)
        position = -1
        for run in runs(messages):
            position += len(run)
            writer.message = position
            first = run[0]
            if isinstance(first, AssistantMessage):
                is_open = position > open_turn
                reasoning = first.reasoning if is_open or self.keeps_reasoning else ""
                kept = reasoning if reasoning or (is_open and thinks) else None
                self.write_assistant(writer, first, kept, conversation.tools)
            elif isinstance(first, ToolMessage):
                self.write_results_turn(writer, run)  # type: ignore[arg-type]
            elif not isinstance(first, SystemMessage | DeveloperMessage):
                self.write_user(writer, first.text)
        writer.message = -1
        if generation_prompt:
            self.write_generation_prompt(writer, thinks=thinks)
