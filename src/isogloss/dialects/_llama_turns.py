"""Turns of the Llama family: a header with the role, the text, and a token that ends it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from isogloss.dialects._role_turns import RoleTurnsDialect
from isogloss.messages import ToolMessage
from isogloss.notations.json import write as write_json
from isogloss.prompt import PromptWriter


class LlamaTurnsDialect(RoleTurnsDialect):
    """A dialect whose markers have ``beginning`` and ``turn_named`` besides.

    The family has no way of its own to think; reasoning that came from elsewhere is marked as most mark it.
    """

    results_role: ClassVar[str] = "ipython"

    def open_turn(self, writer: PromptWriter, role: str) -> None:
        writer.marker(self.markers["turn"])
        writer.text(role)
        writer.marker(self.markers["turn_named"])
        writer.text("\n\n")

    def write_opening(self, writer: PromptWriter, system: str, told: str) -> None:
        writer.marker(self.markers["beginning"])
        super().write_opening(writer, system, told)

    def write_results(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        writer.text("\n".join([write_json(result.text) for result in results]))
