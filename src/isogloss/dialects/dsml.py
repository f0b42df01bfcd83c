"""dsml: invokes with tagged parameters whose tags bear DeepSeek's mark (DeepSeek V3.2, V4, V4.1).

    turn      = "<think>" text "</think>" { text | block } "<｜end▁of▁sentence｜>"
    block     = "<｜DSML｜tool_calls>" { call } "</｜DSML｜tool_calls>"
    call      = '<｜DSML｜invoke name="' name '">' { parameter } "</｜DSML｜invoke>"
    parameter = '<｜DSML｜parameter name="' key '" string="' ("true" | "false") '">' value "</｜DSML｜parameter>"
    value     = the string as it is where string="true", else JSON
    results   = "<｜User｜>" { "<tool_result>" text "</tool_result>" }

Sample::

    <｜DSML｜tool_calls>
    <｜DSML｜invoke name="get_weather">
    <｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜tool_calls>

Rendered as V4 writes it. Read too: the block's name in V3.2 (``function_calls``) and V4.1 (`` calls``, with a blank
behind the mark), calls without a block, and marks with doubled, ASCII or other bars, as they come out of engines that
spell the token as text. The attribute decides what is a string; the schema where there is none. Source: the encoders
and chat templates of deepseek-ai/DeepSeek-V3.2 and DeepSeek-V4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import regex

from isogloss.dialects._conversations import Run
from isogloss.dialects._enclosing import enclose
from isogloss.dialects._invoke_calls import InvokeCallScanner, InvokeTags, escape_attribute, patterns, syntax
from isogloss.dialects._lexicon import spell
from isogloss.dialects._markers import REFUSALS, THINK, Markers
from isogloss.dialects._tag_grammar import calls, parameters
from isogloss.dialects._tag_writing import write_call
from isogloss.dialects._told import paragraphs
from isogloss.dialects._turns import TurnsDialect, said
from isogloss.grammar import JsonValue, Literal, Marker, Repeat, Term, choice, sequence
from isogloss.messages import AssistantMessage, Tool, ToolCall, ToolMessage
from isogloss.notations.markup import write_declared
from isogloss.notations.markup_grammar import raw_value
from isogloss.prompt import PromptWriter
from isogloss.schema.view import SchemaView

MARK = "｜DSML｜"
BEGIN, END, USER, ASSISTANT = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>"
KINDS: Mapping[str, str | tuple[str, ...]] = {
    "call": f"<{MARK}tool_calls>",
    "call_close": f"</{MARK}tool_calls>",
    "bare_call": MARK,
    "result": ("<tool_result>", "<function_results>"),
    "result_close": ("</tool_result>", "</function_results>"),
    "turn_end": (END, USER, ASSISTANT, BEGIN),
    **THINK,
    **REFUSALS,
}
BLOCKS = r"[a-z_]{2,24}+(?<!invoke|parameter)"


def _markers(tags: InvokeTags) -> Markers:
    return Markers(
        KINDS,
        special=(MARK, BEGIN, END, USER, ASSISTANT, "<think>", "</think>"),
        patterns={**patterns(tags), "parameter_close": tags.closing(tags.parameter)},
        beginning=tags.beginning(),
    )


def _tags(lead: str, mark: str) -> InvokeTags:
    return InvokeTags(lead=lead, blocks=BLOCKS, end=r"(?:>|(?=\s{0,8}<))", mark=mark)


_BARS = r"[｜|‖]{0,2}+\s{0,4}+"
TEXT_TAGS = _tags(rf"{_BARS}DSML\s{{0,4}}+{_BARS}", "[｜|‖D]")
MARKERS = _markers(TEXT_TAGS)

_TOKEN = regex.escape(spell(MARK, frozenset((MARK,))))
TOKEN_TAGS = _tags(rf"{_TOKEN}\s{{0,4}}+", _TOKEN[0])
"""The tags where the engine delivers the mark as a control token."""
TOKEN_MARKERS = _markers(TOKEN_TAGS)


class Dsml(TurnsDialect):
    """Invokes whose tags bear DeepSeek's mark."""

    name = "dsml"
    title = "DeepSeek V3.2, V4, V4.1"
    markers = MARKERS
    model_ids = r"deepseek-?v-?(3\.2(?!.*exp)|4)"
    templates = r"DSML"
    tools_keep_turns_open = True

    def write_opening(self, writer: PromptWriter, system: str, told: str) -> None:
        writer.marker(BEGIN)
        writer.text(paragraphs(system, told))

    def write_between(self, writer: PromptWriter, runs: Sequence[Run]) -> None:
        """All that comes between two turns of the assistant is one turn of the user."""
        for place, run in enumerate(runs):
            writer.message = run.position
            if place:
                writer.text("\n\n")
            else:
                writer.marker(USER)
            if isinstance(run.spoken, list):
                self.write_results(writer, run.spoken)
            else:
                writer.text(run.spoken.text)

    def write_user(self, writer: PromptWriter, text: str) -> None:
        writer.marker(USER)
        writer.text(text)

    def write_results_turn(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        writer.marker(USER)
        self.write_results(writer, results)

    def write_assistant(
        self, writer: PromptWriter, message: AssistantMessage, reasoning: str | None, tools: Sequence[Tool]
    ) -> None:
        writer.marker(ASSISTANT)
        writer.is_assistant = True
        if reasoning is None:
            writer.marker("</think>")
        else:
            self.write_reasoning(writer, reasoning)
        text = said(message)
        writer.text(text)
        if message.tool_calls:
            writer.text("\n\n")
            self.write_calls(writer, message.tool_calls, tools)
        writer.marker(END)
        writer.is_assistant = False

    def write_generation_prompt(self, writer: PromptWriter, *, thinks: bool) -> None:
        writer.marker(ASSISTANT)
        writer.marker("<think>" if thinks else "</think>")

    def write_calls(self, writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
        _tag(writer, "<", "tool_calls>\n")
        for call in calls:
            write_call(writer, self, call, tools, _write_invoke, write_declared)
        _tag(writer, "</", "tool_calls>")

    def write_results(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        writer.text("\n\n".join([f"<tool_result>{result.text}</tool_result>" for result in results]))

    def write_reasoning(self, writer: PromptWriter, text: str) -> None:
        enclose(writer, MARKERS, "think", text)

    def call_grammar(self, tools: Sequence[Tool], parallel: bool) -> Term:
        invokes = Repeat(calls(tools, _invoke_grammar), 1, None if parallel else 1)
        return sequence(Literal("\n"), invokes, MARKERS.term(f"</{MARK}tool_calls>"))

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> InvokeCallScanner:
        tags, markers = (TOKEN_TAGS, TOKEN_MARKERS) if MARK in control else (TEXT_TAGS, MARKERS)
        return InvokeCallScanner(syntax(tags, markers, control), markers, tools, starts_in, control)


def _tag(writer: PromptWriter, before: str, after: str) -> None:
    writer.text(before)
    writer.marker(MARK)
    writer.text(after)


def _write_invoke(writer: PromptWriter, call: ToolCall, texts: Mapping[str, str]) -> None:
    _tag(writer, "<", f'invoke name="{escape_attribute(call.name)}">\n')
    for key, text in texts.items():
        is_string = "true" if isinstance(call.arguments[key], str) else "false"
        _tag(writer, "<", f'parameter name="{escape_attribute(key)}" string="{is_string}">{text}')
        _tag(writer, "</", "parameter>\n")
    _tag(writer, "</", "invoke>\n")


# -- the grammar


def _invoke_grammar(tool: Tool) -> Term:
    arguments = parameters(
        tool.parameters,
        _parameter_opener,
        MARKERS.term(f"</{MARK}parameter>\n"),
        (Marker(MARK),),
        spell=escape_attribute,
        value_and_closer=_value_and_closer,
    )
    opener = MARKERS.term(f'<{MARK}invoke name="{escape_attribute(tool.name)}">\n')
    return sequence(opener, arguments, MARKERS.term(f"</{MARK}invoke>\n"))


def _parameter_opener(key: Term, value: SchemaView | None) -> Term:
    return sequence(MARKERS.term(f'<{MARK}parameter name="'), key, Literal('" string="'))


def _value_and_closer(view: SchemaView | None, closer: Marker, *excluding: Marker) -> Term:
    """The end of the opening tag, which says whether a string follows, the value and the closing tag."""
    ways: list[Term] = []
    view = view or SchemaView(True)
    others = sorted(view.types - {"string"})
    if view.allows_string:
        ways.append(sequence(Literal('true">'), raw_value(_restricted(view, ["string"]), closer, *excluding)))
    if others:
        ways.append(sequence(Literal('false">'), JsonValue(_restricted(view, others).standalone()), closer))
    return choice(*ways)


def _restricted(view: SchemaView, types: list[str]) -> SchemaView:
    return view.view_of({"allOf": [view.schema, {"type": types}]})
