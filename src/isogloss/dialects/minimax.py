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

from isogloss.dialects._invoke_calls import InvokeCallScanner, InvokeTags, block_grammar, patterns, syntax, write_block
from isogloss.dialects._markers import REFUSALS, THINK, Markers
from isogloss.dialects._turns import TurnsDialect, said
from isogloss.grammar import Marker, Term
from isogloss.messages import AssistantMessage, Tool, ToolCall, ToolMessage
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
        **THINK,
        **REFUSALS,
    },
    special=(BEGINNING, TURN, TURN_END, "<minimax:tool_call>", "</minimax:tool_call>", "<think>", "</think>"),
    patterns={**patterns(TAGS), "think": THINKING.block(), "think_close": THINKING.closing(THINKING.blocks)},
    beginning=TAGS.beginning("think"),
)


class MiniMax(TurnsDialect):
    """Invokes in a minimax:tool_call block."""

    name = "minimax"
    title = "MiniMax M2 to M2.7"
    markers = MARKERS
    model_ids = r"minimax-?m2"
    templates = r"minimax:tool_call"

    def write_opening(self, writer: PromptWriter, system: str, told: str) -> None:
        writer.marker(BEGINNING)
        texts = (system or "You are a helpful assistant.", told)
        self._write_turn(writer, "system", "\n\n".join([text for text in texts if text]))

    def write_user(self, writer: PromptWriter, text: str) -> None:
        self._write_turn(writer, "user", text)

    def write_assistant(
        self, writer: PromptWriter, message: AssistantMessage, reasoning: str | None, tools: Sequence[Tool]
    ) -> None:
        _open(writer, "ai")
        writer.is_assistant = True
        if reasoning is not None:
            self.write_reasoning(writer, reasoning)
        text = said(message)
        writer.text(text)
        if message.tool_calls:
            writer.text("\n" if text else "")
            self.write_calls(writer, message.tool_calls, tools)
        writer.marker(TURN_END)
        writer.is_assistant = False
        writer.text("\n")

    def write_results_turn(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        _open(writer, "tool")
        self.write_results(writer, results)
        _close(writer)

    def write_generation_prompt(self, writer: PromptWriter, *, thinks: bool) -> None:
        _open(writer, "ai")
        if thinks:
            writer.marker("<think>")
            writer.text("\n")

    def write_calls(self, writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
        write_block(writer, self, calls, tools)

    def write_results(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        writer.text("\n".join([f"<response>{result.text}</response>" for result in results]))

    def write_reasoning(self, writer: PromptWriter, text: str) -> None:
        writer.marker("<think>")
        writer.text(f"\n{text}\n")
        writer.marker("</think>")
        writer.text("\n\n")

    def call_grammar(self, tools: Sequence[Tool], parallel: bool) -> Term:
        return block_grammar(tools, parallel, Marker("</minimax:tool_call>"))

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> InvokeCallScanner:
        return InvokeCallScanner(syntax(TAGS, MARKERS, control), MARKERS, tools, starts_in, control)

    def _write_turn(self, writer: PromptWriter, role: str, text: str) -> None:
        _open(writer, role)
        writer.text(text)
        _close(writer)


def _open(writer: PromptWriter, role: str) -> None:
    writer.marker(TURN)
    writer.text(f"{role}\n")


def _close(writer: PromptWriter) -> None:
    writer.marker(TURN_END)
    writer.text("\n")
