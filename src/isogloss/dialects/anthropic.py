"""anthropic: invokes with tagged parameters in a ``<function_calls>`` block (Claude's prompt-level format).

    turn      = [ "<thinking>" text "</thinking>" ] { text | block }
    block     = "<function_calls>" { call } "</function_calls>"
    call      = '<invoke name="' name '">' { parameter } "</invoke>"
    parameter = '<parameter name="' key '">' value "</parameter>"
    value     = a string as it is, anything else as JSON; an attribute string="true" or "false" may say which
    results   = "<function_results>" { result | error } "</function_results>"      in a human turn
    result    = "<result>" "<tool_name>" name "</tool_name>" "<stdout>" text "</stdout>" "</result>"
    error     = "<error>" "<tool_name>" name "</tool_name>" "<stderr>" text "</stderr>" "</error>"

Sample::

    <function_calls>
    <invoke name="get_weather">
    <parameter name="city">Paris</parameter>
    </invoke>
    </function_calls>

Calls without a block are read too, and tags with any namespace prefix (live models write one). Names and keys are
escaped as XML asks; values are not. Source: Anthropic's published prompt format for tools.
"""

from __future__ import annotations

from collections.abc import Sequence

from isogloss.dialects._human_assistant import HUMAN, HumanAssistantDialect
from isogloss.dialects._invoke_calls import (
    InvokeCallScanner,
    InvokeTags,
    block_grammar,
    escape_attribute,
    patterns,
    syntax,
    write_block,
)
from isogloss.dialects._markers import REFUSALS, Markers
from isogloss.grammar import Marker, Term
from isogloss.messages import Tool, ToolCall, ToolMessage
from isogloss.prompt import PromptWriter

TAGS = InvokeTags()
THINKING = InvokeTags(blocks="thinking|think|scratchpad")
RESULTS = InvokeTags(blocks="function_results|tool_response")
PATTERNS = {
    **patterns(TAGS),
    "think": THINKING.block(),
    "think_close": THINKING.closing(THINKING.blocks),
    "result": RESULTS.block(),
    "result_close": RESULTS.closing(RESULTS.blocks),
}
BEGINNING = TAGS.beginning(*THINKING.blocks.split("|"), *RESULTS.blocks.split("|"))
MARKERS = Markers(
    {
        "call": "<function_calls>",
        "call_close": "</function_calls>",
        "bare_call": "invoke name=",
        "think": "<thinking>",
        "think_close": "</thinking>",
        "result": "<function_results>",
        "result_close": "</function_results>",
        **REFUSALS,
    },
    patterns=PATTERNS,
    beginning=BEGINNING,
    stop=(HUMAN, "<function_results>"),
)


class Anthropic(HumanAssistantDialect):
    """Invokes in a function_calls block."""

    name = "anthropic"
    title = "Claude's prompt-level format"
    markers = MARKERS
    model_ids = r"claude"
    templates = r"\A(?=[\s\S]*<(?:antml:)?function_calls>)(?=[\s\S]*<(?:antml:)?invoke)"

    def write_calls(self, writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
        write_block(writer, self, calls, tools)

    def write_results(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        blocks = [_result(result) for result in results]
        writer.marker("<function_results>")
        writer.text("\n" + "\n".join(blocks) + "\n")
        writer.marker("</function_results>")

    def call_grammar(self, tools: Sequence[Tool], parallel: bool) -> Term:
        return block_grammar(tools, parallel, Marker("</function_calls>"))

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> InvokeCallScanner:
        return InvokeCallScanner(syntax(TAGS, MARKERS, control), MARKERS, tools, starts_in, control)


def _result(result: ToolMessage) -> str:
    block, stream = ("error", "stderr") if result.is_error else ("result", "stdout")
    name = escape_attribute(result.name)
    return f"<{block}>\n<tool_name>{name}</tool_name>\n<{stream}>\n{result.text}\n</{stream}>\n</{block}>"
