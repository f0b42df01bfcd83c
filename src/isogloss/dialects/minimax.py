"""minimax: invokes with tagged parameters in a ``<minimax:tool_call>`` block (MiniMax M2, M2.1, M2.5, M2.7).

    turn      = "<think>" text "</think>" { text | block } "[e~["
    block     = "<minimax:tool_call>" { call } "</minimax:tool_call>"
    call      = '<invoke name="' name '">' { parameter } "</invoke>"
    parameter = '<parameter name="' key '">' value "</parameter>"
    value     = a string as it is, anything else as JSON
    results   = "]~b]tool" { "<response>" text "</response>" } "[e~["

Sample::

    <minimax:tool_call>
    <invoke name="get_weather">
    <parameter name="city">Paris</parameter>
    </invoke>
    </minimax:tool_call>

The model starts inside ``<think>``, which the prompt has opened. M1 and M3 speak other languages. Reads what the
anthropic dialect reads besides. Source: the chat template of MiniMaxAI/MiniMax-M2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from isogloss.dialects._invoke_calls import InvokeCallScanner, InvokeTags, block_grammar, patterns, syntax, write_block
from isogloss.dialects._markers import REFUSALS, THINK, Markers
from isogloss.dialects._role_turns import RoleTurnsDialect
from isogloss.grammar import Marker, Term
from isogloss.messages import Tool, ToolCall, ToolMessage
from isogloss.prompt import PromptWriter

BEGINNING, TURN, TURN_END = "]~!b[", "]~b]", "[e~["
TAGS = InvokeTags(blocks="tool_calls?|function_calls")
THINKING = InvokeTags(blocks="think|thinking")
MARKERS = Markers(
    {
        "call": "<minimax:tool_call>",
        "call_close": "</minimax:tool_call>",
        "bare_call": "invoke name=",
        "turn_end": (TURN_END, TURN, BEGINNING),
        "turn": TURN,
        **THINK,
        **REFUSALS,
    },
    special=(BEGINNING, TURN, TURN_END, "<minimax:tool_call>", "</minimax:tool_call>", "<think>", "</think>"),
    patterns={**patterns(TAGS), "think": THINKING.block(), "think_close": THINKING.closing(THINKING.blocks)},
    beginning=TAGS.beginning("think"),
)


class MiniMax(RoleTurnsDialect):
    """Invokes in a minimax:tool_call block."""

    name = "minimax"
    title = "MiniMax M2 to M2.7"
    markers = MARKERS
    model_ids = r"minimax-?m2"
    templates = r"minimax:tool_call"
    assistant_role: ClassVar[str] = "ai"
    one_result_a_turn: ClassVar[bool] = False
    behind_turn: ClassVar[str] = "\n"

    def write_opening(self, writer: PromptWriter, system: str, told: str) -> None:
        writer.marker(BEGINNING)
        super().write_opening(writer, system or "You are a helpful assistant.", told)

    def write_thoughts(self, writer: PromptWriter, reasoning: str | None) -> None:
        if reasoning is not None:
            self.write_reasoning(writer, reasoning)

    def write_generation_prompt(self, writer: PromptWriter, *, thinks: bool) -> None:
        super().write_generation_prompt(writer, thinks=thinks)
        if thinks:
            writer.marker("<think>")
            writer.text("\n")

    def write_calls(self, writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
        write_block(writer, self, calls, tools)

    def write_results(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        writer.text("\n".join([f"<response>{result.text}</response>" for result in results]))

    def call_grammar(self, tools: Sequence[Tool], parallel: bool) -> Term:
        return block_grammar(tools, parallel, Marker("</minimax:tool_call>"))

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> InvokeCallScanner:
        return InvokeCallScanner(syntax(TAGS, MARKERS, control), MARKERS, tools, starts_in, control)
