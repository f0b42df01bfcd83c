"""Turns as ``Human:`` and ``Assistant:`` in plain text, for formats that no open model's template defines."""

from __future__ import annotations

from typing import ClassVar

from isogloss.dialects._role_turns import RoleTurnsDialect
from isogloss.dialects._told import paragraphs
from isogloss.prompt import PromptWriter

HUMAN = "\n\nHuman:"
ASSISTANT = "\n\nAssistant:"


class HumanAssistantDialect(RoleTurnsDialect):
    """A dialect without control tokens; results come in a human turn."""

    results_role: ClassVar[str] = "user"
    one_result_a_turn: ClassVar[bool] = False
    gap: ClassVar[str] = "\n\n"

    def open_turn(self, writer: PromptWriter, role: str) -> None:
        writer.text(f"{ASSISTANT if role == self.assistant_role else HUMAN} ")

    def close_turn(self, writer: PromptWriter) -> None:
        writer.is_assistant = False

    def write_opening(self, writer: PromptWriter, system: str, told: str) -> None:
        writer.text(paragraphs(system, told))
