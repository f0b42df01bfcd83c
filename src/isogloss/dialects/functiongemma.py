"""functiongemma: calls in braces between tokens of their own (FunctionGemma, which is a Gemma 3).

    turn      = { text | call } "<end_of_turn>"
    call      = "<start_function_call>" "call:" name object "<end_function_call>"
    object    = "{" [ key ":" value { "," key ":" value } ] "}"
    value     = "<escape>" text "<escape>" | number | "true" | "false" | "null" | object
              | "[" [ value { "," value } ] "]"
    result    = "<start_function_response>" "response:" name "{value:" value "}" "<end_function_response>"
                in the model's own turn

Sample::

    <start_function_call>call:get_weather{city:<escape>Paris<escape>,days:2}<end_function_call>

The tools are declared in a developer's turn in the same notation. The model does not think. It is stopped at
``<start_function_response>`` and goes on behind the results. Source: Google's guide to FunctionGemma's formatting.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from isogloss.dialects._brace_calls import BraceCallScanner
from isogloss.dialects._brace_grammar import call_grammar
from isogloss.dialects._enclosing import enclose
from isogloss.dialects._gemma_turns import GemmaTurnsDialect
from isogloss.dialects._markers import REFUSALS, THINK, Markers
from isogloss.dialects._told import paragraphs
from isogloss.grammar import Term
from isogloss.messages import Tool
from isogloss.prompt import PromptWriter

TOKENS: dict[str, str | tuple[str, ...]] = {
    "call": "<start_function_call>",
    "call_close": "<end_function_call>",
    "quote": "<escape>",
    "result": "<start_function_response>",
    "result_close": "<end_function_response>",
    "turn_end": ("<end_of_turn>", "<start_of_turn>", "<eos>"),
    "turn": "<start_of_turn>",
    "declaration": "<start_function_declaration>",
    "declaration_close": "<end_function_declaration>",
    "beginning": "<bos>",
}
MARKERS = Markers({**TOKENS, **THINK, **REFUSALS}, special=Markers(TOKENS).all)

TRIGGER = "You are a model that can do function calling with the following functions"
"""The sentence by which the model was taught that functions are declared."""


class FunctionGemma(GemmaTurnsDialect):
    """Calls in braces between tokens of their own, strings between ``<escape>``."""

    name = "functiongemma"
    title = "FunctionGemma"
    markers = MARKERS
    model_ids = r"function-?gemma"
    templates = r"<start_function_call>"
    opening_role: ClassVar[str] = "developer"

    def write_opening(self, writer: PromptWriter, system: str, tools: Sequence[Tool], *, thinks: bool) -> None:
        writer.text(paragraphs(system, TRIGGER if tools else ""))
        self.write_declarations(writer, tools)

    def write_reasoning(self, writer: PromptWriter, text: str) -> None:
        """The family has no way of its own to think; reasoning that came from elsewhere is marked as most mark it."""
        enclose(writer, MARKERS, "think", text)

    def call_grammar(self, tools: Sequence[Tool], parallel: bool) -> Term:
        return call_grammar(tools, self.markers)

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> BraceCallScanner:
        return BraceCallScanner(MARKERS, tools, starts_in, control)
