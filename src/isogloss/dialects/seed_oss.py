"""seed_oss: functions with tagged parameters between ``<seed:tool_call>`` tags (ByteDance Seed-OSS).

    turn      = [ "<seed:think>" text "</seed:think>" ] { text | call } "<seed:eos>"
    call      = "<seed:tool_call>" "<function=" name ">" { parameter } "</function>" "</seed:tool_call>"
    parameter = "<parameter=" key ">" value "</parameter>"
    value     = a string as it is, anything else as JSON
    result    = text                                                                     in a turn of role tool

Sample::

    <seed:tool_call>
    <function=get_weather>
    <parameter=city>Paris</parameter>
    </function>
    </seed:tool_call>

No line break around a value belongs to the markup. Reflections on the budget of thinking
(``<seed:cot_budget_reflect>``) are reasoning. Source: the chat template of ByteDance-Seed/Seed-OSS-36B-Instruct.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from isogloss.dialects._enclosing import enclose
from isogloss.dialects._function_calls import BEGINNINGS, PATTERNS, write_function, written_name
from isogloss.dialects._markers import REFUSALS, Markers
from isogloss.dialects._role_turns import RoleTurnsDialect
from isogloss.dialects._tag_grammar import calls, parameters
from isogloss.dialects._tag_writing import write_call
from isogloss.dialects._tool_call_tags import ToolCallTagScanner
from isogloss.grammar import Literal, Marker, Term, sequence
from isogloss.messages import Tool, ToolCall, ToolMessage
from isogloss.prompt import PromptWriter
from isogloss.schema.view import SchemaView

BOS, EOS = "<seed:bos>", "<seed:eos>"
MARKERS = Markers(
    {
        "call": "<seed:tool_call>",
        "call_close": "</seed:tool_call>",
        "bare_call": "<function=",
        "think": "<seed:think>",
        "think_close": "</seed:think>",
        "turn_end": (EOS, BOS),
        "turn": BOS,
        **REFUSALS,
    },
    special=(BOS, EOS, "<seed:tool_call>", "</seed:tool_call>", "<seed:think>", "</seed:think>"),
    patterns=PATTERNS,
    first=BEGINNINGS,
)


class SeedOssScanner(ToolCallTagScanner):
    """Scans one turn."""

    framed: ClassVar[bool] = False


class SeedOss(RoleTurnsDialect):
    """Functions with tagged parameters between seed:tool_call tags."""

    name = "seed_oss"
    title = "ByteDance Seed-OSS"
    markers = MARKERS
    model_ids = r"seed-?oss"
    templates = r"seed:tool_call"
    keeps_reasoning = True
    gap: ClassVar[str] = "\n\n"

    def write_generation_prompt(self, writer: PromptWriter, *, thinks: bool) -> None:
        super().write_generation_prompt(writer, thinks=thinks)
        if not thinks:
            enclose(writer, MARKERS, "think", "")

    def write_calls(self, writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
        for position, call in enumerate(calls):
            if position:
                writer.text("\n")
            write_call(writer, self, call, tools, _write_call)

    def write_results(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        writer.text("\n\n".join([result.text for result in results]))

    def write_reasoning(self, writer: PromptWriter, text: str) -> None:
        enclose(writer, MARKERS, "think", text)
        writer.text("\n")

    def call_grammar(self, tools: Sequence[Tool], parallel: bool) -> Term:
        return sequence(calls(tools, _function), Literal("</function>\n"), Marker("</seed:tool_call>"))

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> SeedOssScanner:
        return SeedOssScanner(MARKERS, tools, starts_in, control)


def _write_call(writer: PromptWriter, call: ToolCall, texts: Mapping[str, str]) -> None:
    writer.marker("<seed:tool_call>")
    writer.text("\n")
    write_function(writer, call.name, texts)
    writer.text("\n")
    writer.marker("</seed:tool_call>")


def _function(tool: Tool) -> Term:
    arguments = parameters(tool.parameters, _opener, Literal("</parameter>\n"), spell=written_name)
    return sequence(Literal(f"\n<function={written_name(tool.name)}>\n"), arguments)


def _opener(key: Term, view: SchemaView | None) -> Term:
    return sequence(Literal("<parameter="), key, Literal(">"))
