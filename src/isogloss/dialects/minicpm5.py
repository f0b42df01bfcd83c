"""minicpm5: functions with tagged parameters that follow the rules of XML (MiniCPM5).

    turn      = [ "<think>" text "</think>" ] { text | call } "<|im_end|>"
    call      = '<function name="' name '">' { parameter } "</function>"
    parameter = '<param name="' key '">' value "</param>"
    value     = { text with entities | "<![CDATA[" text "]]>" }; what it spells is a string as it is, else JSON
    result    = "<tool_response>" text "</tool_response>"                                in a user turn

Sample::

    <function name="get_weather"><param name="city">Paris</param></function>

Strings with ``<``, ``&`` or line breaks are written in CDATA. Read too: tags in which the blank was lost
(``<functionname=``) or came out as the tokenizer's own sign for it (``Ġ``). JSON is read as it is, its entities only
where it is none without. Source: the chat template of openbmb/MiniCPM5-1B.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from isogloss.dialects._cdata_calls import CDATA, CDATA_CLOSE, TAGS, CdataCallScanner, is_json
from isogloss.dialects._chatml import TURN, TURN_END, ChatMLDialect
from isogloss.dialects._enclosing import enclose_results
from isogloss.dialects._invoke_calls import escape_attribute, patterns, syntax
from isogloss.dialects._markers import REFUSALS, THINK, Markers
from isogloss.dialects._tag_grammar import calls, parameters
from isogloss.dialects._tag_writing import write_call
from isogloss.grammar import Literal, Marker, Term, choice, sequence
from isogloss.messages import Tool, ToolCall, ToolMessage
from isogloss.notations.markup import write as write_markup
from isogloss.notations.markup_grammar import raw_value
from isogloss.prompt import PromptWriter
from isogloss.schema.view import SchemaView

MARKERS = Markers(
    {
        "bare_call": "<functionname",
        "result": "<tool_response>",
        "result_close": "</tool_response>",
        "turn_end": (TURN_END, TURN, "<|endoftext|>"),
        **THINK,
        **REFUSALS,
    },
    special=(TURN, TURN_END, "<|endoftext|>", "<think>", "</think>"),
    patterns=patterns(TAGS),
    beginning=TAGS.beginning(),
)

_NEEDS_CDATA = re.compile(r"[<&\n\r]").search


class MiniCpm5(ChatMLDialect):
    """Functions with tagged parameters that follow the rules of XML."""

    name = "minicpm5"
    title = "MiniCPM5"
    markers = MARKERS
    model_ids = r"minicpm-?5"
    templates = r"<function name="
    results_role = "user"
    bare_call = '<function name="'

    def write_calls(self, writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
        for position, call in enumerate(calls):
            if position:
                writer.text("\n")
            write_call(writer, self, call, tools, _write_function, _text_of)

    def write_results(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        enclose_results(writer, self.markers, results)

    def call_grammar(self, tools: Sequence[Tool], parallel: bool) -> Term:
        return sequence(calls(tools, _function_grammar), Literal("</function>"))

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> CdataCallScanner:
        return CdataCallScanner(syntax(TAGS, MARKERS, control), MARKERS, tools, starts_in, control)


def _write_function(writer: PromptWriter, call: ToolCall, texts: Mapping[str, str]) -> None:
    params = [f'<param name="{escape_attribute(key)}">{text}</param>' for key, text in texts.items()]
    writer.text(f'<function name="{escape_attribute(call.name)}">{"".join(params)}</function>')


def _text_of(value: Any, view: SchemaView | None) -> str:
    return _written(write_markup(value, view))


def _written(text: str) -> str:
    """A value as the template writes it; where CDATA cannot hold it, with entities."""
    if _NEEDS_CDATA(text) is None or is_json(text):
        return text
    if CDATA_CLOSE in text:
        return text.replace("&", "&amp;").replace("<", "&lt;")
    return f"{CDATA}{text}{CDATA_CLOSE}"


# -- the grammar


def _function_grammar(tool: Tool) -> Term:
    arguments = parameters(
        tool.parameters,
        _opener,
        Literal("</param>"),
        spell=escape_attribute,
        value_and_closer=_value_and_closer,
    )
    return sequence(Literal(f'{escape_attribute(tool.name)}">'), arguments)


def _opener(key: Term, view: SchemaView | None) -> Term:
    return sequence(Literal('<param name="'), key, Literal('">'))


def _value_and_closer(view: SchemaView | None, closer: Literal | Marker, *excluding: Literal | Marker) -> Term:
    """A string as text without what entities and tags begin with, or in CDATA; any other value as JSON."""
    if view is not None and view.const_values is not None:
        texts = [_written(write_markup(value, view)) for value in view.const_values]
        return sequence(choice(*[Literal(text) for text in texts]), closer)
    plain = raw_value(view, closer, Literal("<"), Literal("&"))
    if view is not None and not view.allows_string:
        return plain
    section = raw_value(view, Literal(f"{CDATA_CLOSE}</param>"), Literal(CDATA_CLOSE))
    return choice(plain, sequence(Literal(CDATA), section))
