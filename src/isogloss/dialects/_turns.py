"""The order of a conversation, for families that write one turn after the other, each in a way of its own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from isogloss.dialects._base import BlockDialect
from isogloss.dialects._conversations import Run, instructions, last_user_position, offered, runs
from isogloss.dialects._markers import REFUSAL, REFUSAL_CLOSE
from isogloss.messages import (
    AssistantMessage,
    Conversation,
    DeveloperMessage,
    SystemMessage,
    Tool,
    ToolMessage,
)
from isogloss.prompt import PromptWriter


def said(message: AssistantMessage) -> str:
    """The visible text of an assistant's turn, a refusal included."""
    return message.text or (f"{REFUSAL}{message.refusal}{REFUSAL_CLOSE}" if message.refusal else "")


class TurnsDialect(BlockDialect):
    """A dialect that gives the pieces of `write_conversation`. What system and developer messages say is told at the
    start, wherever they stand."""

    empties_reasoning: ClassVar[bool] = False
    """Whether an empty block stands in old turns where their reasoning was."""

    tools_keep_turns_open: ClassVar[bool] = False
    """Whether no turn of a conversation with tools is old."""

    def write_opening(self, writer: PromptWriter, system: str, told: str) -> None:
        """Write what comes before the first turn. ``told`` are the tools and the answer's format; both may be empty."""
        raise NotImplementedError

    def write_beginning(self, writer: PromptWriter, system: str, conversation: Conversation) -> None:
        """Write what comes before the first turn, for families that declare tools in a way of their own. Others give
        `write_opening`."""
        self.write_opening(writer, system, self.tool_prompt(offered(conversation), conversation.response_format))

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

    def write_between(self, writer: PromptWriter, runs: Sequence[Run]) -> None:
        """Write what comes between two turns of the assistant: users' messages and runs of results, each a turn."""
        for run in runs:
            writer.message = run.position
            if isinstance(run.spoken, list):
                self.write_results_turn(writer, run.spoken)
            else:
                self.write_user(writer, run.spoken.text)

    @abstractmethod
    def write_generation_prompt(self, writer: PromptWriter, *, thinks: bool) -> None:
        """Write the start of the assistant's turn. ``thinks``: the model is to think first."""

    def write_conversation(self, writer: PromptWriter, conversation: Conversation, generation_prompt: bool) -> None:
        conversation = self.prepared(conversation)
        messages = conversation.messages
        self.write_beginning(writer, instructions(messages), conversation)
        thinks = conversation.reasoning_effort != "none"
        stays_open = self.tools_keep_turns_open and offered(conversation)
        open_turn = -1 if stays_open else last_user_position(messages)
        between: list[Run] = []
        for run in runs(messages):
            position, message = run
            if isinstance(message, SystemMessage | DeveloperMessage):
                continue
            if not isinstance(message, AssistantMessage):
                between.append(run)
                continue
            self.write_between(writer, between)
            between = []
            writer.message = position
            is_open = position > open_turn
            reasoning = message.reasoning if is_open or self.keeps_reasoning else ""
            is_marked = thinks and (is_open or self.empties_reasoning)
            kept = reasoning if reasoning or is_marked else None
            self.write_assistant(writer, message, kept, conversation.tools)
        self.write_between(writer, between)
        writer.message = -1
        if generation_prompt:
            self.write_generation_prompt(writer, thinks=thinks)
