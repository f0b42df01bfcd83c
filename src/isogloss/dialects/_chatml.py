"""ChatML turns: ``<|im_start|>role⏎text<|im_end|>⏎``, shared by the families that use them."""

from __future__ import annotations

from typing import ClassVar

from isogloss.dialects._role_turns import RoleTurnsDialect
from isogloss.prompt import PromptWriter

TURN = "<|im_start|>"
TURN_END = "<|im_end|>"


class ChatMLDialect(RoleTurnsDialect):
    """A dialect whose turns are ChatML."""

    one_result_a_turn: ClassVar[bool] = False
    behind_turn: ClassVar[str] = "\n"

    def open_turn(self, writer: PromptWriter, role: str) -> None:
        writer.marker(TURN)
        writer.text(f"{role}\n")
