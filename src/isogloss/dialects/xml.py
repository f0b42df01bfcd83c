"""xml: invokes with tagged parameters in a ``<tool_calls>`` block, for models that were trained on no format.

    turn      = [ "<thinking>" text "</thinking>" ] { text | block }
    block     = "<tool_calls>" { call } "</tool_calls>"
    call      = '<invoke name="' name '">' { parameter } "</invoke>"
    parameter = '<parameter name="' key '">' value "</parameter>"
    value     = a string as it is, anything else as JSON; an attribute string="true" or "false" may say which
    result    = "<tool_response>" text "</tool_response>"                          in a human turn

Sample::

    <tool_calls>
    <invoke name="get_weather">
    <parameter name="city">Paris</parameter>
    </invoke>
    </tool_calls>

Reads all that the anthropic dialect reads: calls without a block or in one of another name, tags with any prefix. No
family's own format, and never chosen for a model by its name.
"""

from __future__ import annotations

from collections.abc import Sequence

from isogloss.dialects._enclosing import enclose_results
from isogloss.dialects._human_assistant import HUMAN, HumanAssistantDialect
from isogloss.dialects._invoke_calls import InvokeCallScanner, block_grammar, syntax, write_block
from isogloss.dialects._markers import REFUSALS, Markers
from isogloss.dialects.anthropic import BEGINNING, PATTERNS, TAGS
from isogloss.grammar import Marker, Term
from isogloss.messages import Tool, ToolCall, ToolMessage
from isogloss.prompt import PromptWriter

MARKERS = Markers(
    {
        "call": "<tool_calls>",
        "call_close": "</tool_calls>",
        "bare_call": "invoke name=",
        "think": "<thinking>",
        "think_close": "</thinking>",
        "result": "<tool_response>",
        "result_close": "</tool_response>",
        **REFUSALS,
    },
    patterns=PATTERNS,
    beginning=BEGINNING,
    stop=(HUMAN, "<tool_response>"),
)


class Xml(HumanAssistantDialect):
    """Invokes in a tool_calls block."""

    name = "xml"
    title = "Generic: models trained on no format"
    markers = MARKERS

    def write_calls(self, writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
        write_block(writer, self, calls, tools)

    def write_results(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        enclose_results(writer, self.markers, results)

    def call_grammar(self, tools: Sequence[Tool], parallel: bool) -> Term:
        return block_grammar(tools, parallel, Marker("</tool_calls>"))

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> InvokeCallScanner:
        return InvokeCallScanner(syntax(TAGS, MARKERS, control), MARKERS, tools, starts_in, control)
