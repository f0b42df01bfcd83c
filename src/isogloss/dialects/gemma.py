"""gemma: calls in braces between tokens of their own (Gemma 4).

    turn      = [ "<|channel>" "thought⏎" text "⏎" "<channel|>" ] { text | call } "<turn|>"
    call      = "<|tool_call>" "call:" name object "<tool_call|>"
    object    = "{" [ key ":" value { "," key ":" value } ] "}"
    value     = '<|"|>' text '<|"|>' | number | "true" | "false" | "null" | object | "[" [ value { "," value } ] "]"
    result    = "<|tool_response>" "response:" name "{value:" value "}" "<tool_response|>"     in the model's own turn

Sample::

    <|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:2}<tool_call|>

All delimiters are control tokens, so text keeps every character. The tools are declared in the system turn in the same
notation. A model that has made its calls is stopped at ``<|tool_response>`` and goes on behind the results. Source: the
chat template of google/gemma-4-31B-it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from isogloss.dialects._brace_calls import BraceCallScanner
from isogloss.dialects._brace_grammar import call_grammar
from isogloss.dialects._gemma_turns import GemmaTurnsDialect
from isogloss.dialects._lexicon import Found
from isogloss.dialects._markers import REFUSALS, Markers
from isogloss.dialects._scanner import Prose
from isogloss.events import ReasoningDelta
from isogloss.grammar import Term
from isogloss.messages import Tool
from isogloss.prompt import PromptWriter

TOKENS: dict[str, str | tuple[str, ...]] = {
    "call": "<|tool_call>",
    "call_close": "<tool_call|>",
    "quote": '<|"|>',
    "think": "<|channel>",
    "think_close": "<channel|>",
    "result": "<|tool_response>",
    "result_close": "<tool_response|>",
    "turn_end": ("<turn|>", "<|turn>", "<eos>"),
    "turn": "<|turn>",
    "thinks": "<|think|>",
    "declaration": "<|tool>",
    "declaration_close": "<tool|>",
    "beginning": "<bos>",
}
MARKERS = Markers({**TOKENS, **REFUSALS}, special=Markers(TOKENS).all)

CHANNEL = "thought\n"
"""The channel that reasoning is in."""


class GemmaScanner(BraceCallScanner):
    """Scans one turn."""

    def __init__(self, tools: Iterable[Tool], starts_in: str, control: frozenset[str]) -> None:
        super().__init__(MARKERS, tools, starts_in, control)
        lexicon = MARKERS.lexicon(("think_close", "turn_end"), control)
        self.reasoning_prose = Prose(ReasoningDelta, lexicon, ("think_close",))
        if starts_in == "reasoning":
            self._mode = self.reasoning_prose

    def _on_think(self, found: Found) -> None:
        self._state = self._channel

    def _channel(self) -> bool:
        """The line that names the channel; there is only one."""
        line = self._text[self._pos : self._pos + len(CHANNEL)]
        if not self._final and CHANNEL.startswith(line) and line != CHANNEL:
            return False
        self._pos += len(CHANNEL) if line == CHANNEL else line.startswith("\n")
        self._enter(self.reasoning_prose)
        return True


class Gemma(GemmaTurnsDialect):
    """Calls in braces between tokens of their own."""

    name = "gemma"
    title = "Gemma 4"
    markers = MARKERS
    model_ids = r"gemma-?4"
    templates = r"<\|tool_call>"
    opening_role: ClassVar[str] = "system"

    def write_opening(self, writer: PromptWriter, system: str, tools: Sequence[Tool], *, thinks: bool) -> None:
        if thinks:
            writer.marker("<|think|>")
            writer.text("\n")
        writer.text(system)
        self.write_declarations(writer, tools)

    def starts_in(self, prompt: str) -> str:
        return super().starts_in(prompt.rstrip().removesuffix(CHANNEL.rstrip()))

    def write_reasoning(self, writer: PromptWriter, text: str) -> None:
        writer.marker("<|channel>")
        writer.text(f"{CHANNEL}{text}\n")
        writer.marker("<channel|>")

    def call_grammar(self, tools: Sequence[Tool], parallel: bool) -> Term:
        return call_grammar(tools, self.markers)

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> GemmaScanner:
        return GemmaScanner(tools, starts_in, control)
