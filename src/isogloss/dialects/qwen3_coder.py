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

from collections.abc import Mapping, Sequence
from typing import ClassVar

from isogloss.dialects._function_calls import write_function, written_name
from isogloss.dialects._tag_grammar import calls, parameters
from isogloss.dialects._tag_writing import write_call
from isogloss.dialects._tool_call_tags import ToolCallTagScanner
from isogloss.dialects.qwen3 import MARKERS, Qwen3
from isogloss.grammar import Literal, Marker, Term, sequence
from isogloss.messages import Tool, ToolCall
from isogloss.prompt import PromptWriter
from isogloss.schema.view import SchemaView


class Qwen3Coder(Qwen3):
    """Functions with tagged parameters between tool_call tags."""

    name = "qwen3_coder"
    title = "Qwen3-Coder, Qwen3.5 and later, Nemotron 3, Step 3.5"
    model_ids = r"qwen-?3.*coder|qwen-?3\.\d|nemotron-?3|step-?3[.p]5|trinity|nanbeige"
    templates = r"\A(?=[\s\S]*<function=)(?=[\s\S]*<parameter=)(?![\s\S]*seed:tool_call)"
    results_role: ClassVar[str] = "user"
    gap: ClassVar[str] = "\n\n"

    def write_calls(self, writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
        for position, call in enumerate(calls):
            if position:
                writer.text("\n")
            write_call(writer, self, call, tools, _write_call)

    def call_grammar(self, tools: Sequence[Tool], parallel: bool) -> Term:
        return sequence(calls(tools, _function), Literal("</function>\n"), Marker("</tool_call>"))

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> ToolCallTagScanner:
        return ToolCallTagScanner(MARKERS, tools, starts_in, control)


def _write_call(writer: PromptWriter, call: ToolCall, texts: Mapping[str, str]) -> None:
    writer.marker("<tool_call>")
    writer.text("\n")
    write_function(writer, call.name, texts, frame="\n")
    writer.text("\n")
    writer.marker("</tool_call>")


def _function(tool: Tool) -> Term:
    arguments = parameters(tool.parameters, _opener, Literal("\n</parameter>\n"), spell=written_name)
    return sequence(Literal(f"\n<function={written_name(tool.name)}>\n"), arguments)


def _opener(key: Term, view: SchemaView | None) -> Term:
    return sequence(Literal("<parameter="), key, Literal(">\n"))
