"""qwen3_coder: functions with tagged parameters (Qwen3-Coder, Qwen3.5 and later, Nemotron 3, Step 3.5, Trinity).

    turn      = [ "<think>" text "</think>" ] { text | call } "<|im_end|>"
    call      = "<tool_call>" "<function=" name ">" { parameter } "</function>" "</tool_call>"
    parameter = "<parameter=" key ">" value "</parameter>"
    value     = text, with one line break on either side that belongs to the markup
    result    = "<tool_response>" text "</tool_response>"      in a user turn

Sample::

    <tool_call>
    <function=get_weather>
    <parameter=city>
    Paris
    </parameter>
    </function>
    </tool_call>

Reads the JSON form of Qwen3 too. Source: the chat templates of Qwen/Qwen3-Coder-30B-A3B-Instruct and Qwen/Qwen3.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from isogloss.dialects._function_calls import is_name, value_end
from isogloss.dialects._tag_grammar import calls, parameters
from isogloss.dialects._tool_call_tags import ToolCallTagScanner
from isogloss.dialects.qwen3 import MARKERS, Qwen3
from isogloss.errors import UnrepresentableError
from isogloss.grammar import Literal, Marker, Term, sequence
from isogloss.messages import Tool, ToolCall
from isogloss.notations.markup import escape_tags
from isogloss.notations.markup import write as write_markup
from isogloss.prompt import PromptWriter
from isogloss.schema.view import SchemaView


class Qwen3Coder(Qwen3):
    """Functions with tagged parameters between tool_call tags."""

    name = "qwen3_coder"
    title = "Qwen3-Coder, Qwen3.5 and later, Nemotron 3, Step 3.5"
    model_ids = r"qwen-?3.*coder|qwen-?3\.\d|nemotron-?3|step-?3[.p]5|trinity|nanbeige"
    templates = r"<function="
    results_role: ClassVar[str] = "user"

    def write_calls(self, writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
        schemas = {tool.name: tool.parameters for tool in tools}
        for position, call in enumerate(calls):
            if position:
                writer.text("\n")
            view = SchemaView(schemas[call.name]) if call.name in schemas else None
            writer.marker("<tool_call>")
            writer.text(f"\n<function={_name(call.name)}>\n")
            for key, value in call.arguments.items():
                text = write_markup(value, None if view is None else view.member(key))
                writer.text(f"<parameter={_name(key)}>\n{_enclosed(text, value, self.markers['call_close'])}\n")
            writer.text("</function>\n")
            writer.marker("</tool_call>")

    def call_grammar(self, tools: Sequence[Tool], parallel: bool) -> Term:
        return sequence(calls(tools, _function), Literal("</function>\n"), Marker("</tool_call>"))

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> ToolCallTagScanner:
        return ToolCallTagScanner(MARKERS, tools, starts_in, control)


def _function(tool: Tool) -> Term:
    arguments = parameters(tool.parameters, _opener, Literal("\n</parameter>\n"), spell=_name)
    return sequence(Literal(f"\n<function={_name(tool.name)}>\n"), arguments)


def _opener(key: Term, view: SchemaView | None) -> Term:
    return sequence(Literal("<parameter="), key, Literal(">\n"))


def _name(text: str) -> str:
    if not is_name(text):
        raise UnrepresentableError(f"A <function=...> tag cannot carry the name {text!r}")
    return text


def _enclosed(text: str, value: object, call_close: str) -> str:
    """The value with its closer; raises where the scanner would end it earlier."""
    closed = f"{text}\n</parameter>"
    found = value_end(call_close).find(closed + "\n</function>", 0, True)
    if isinstance(found, int) or found.start != len(text) + 1:
        if not isinstance(value, str):
            return f"{escape_tags(text)}\n</parameter>"
        raise UnrepresentableError(f"A <parameter=...> tag cannot carry a string that closes it: {text[:80]!r}")
    return closed
