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
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import regex

from isogloss.dialects._chatml import TURN, TURN_END, ChatMLDialect
from isogloss.dialects._enclosing import enclose_results
from isogloss.dialects._invoke_calls import InvokeCallScanner, InvokeTags, escape_attribute, patterns, syntax, unescape
from isogloss.dialects._lexicon import Found
from isogloss.dialects._markers import REFUSALS, THINK, Markers
from isogloss.dialects._tag_grammar import calls, parameters
from isogloss.dialects._tag_writing import write_call
from isogloss.grammar import Literal, Marker, Term, choice, sequence
from isogloss.messages import Tool, ToolCall, ToolMessage
from isogloss.notations.json import parse
from isogloss.notations.markup import write as write_markup
from isogloss.notations.markup_grammar import raw_value
from isogloss.prompt import PromptWriter
from isogloss.schema.view import SchemaView

CDATA, CDATA_CLOSE = "<![CDATA[", "]]>"
TAGS = InvokeTags(
    invoke="function",
    parameter="param",
    space=r"[\sĠ]",
    gap=r"[\sĠ]{0,8}+",
    section=regex.escape(CDATA),
)
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

_BEFORE_CDATA = regex.compile(rf"\s{{0,64}}+(?={regex.escape(CDATA)})").match
_BEHIND_CDATA = regex.compile(rf"\s{{0,64}}+(?={TAGS.closing(TAGS.parameter)})").match
_CUT_ENTITY = re.compile(r"&(?:#?\w{0,8})?\Z").search
_NEEDS_CDATA = re.compile(r"[<&\n\r]").search


class MiniCpm5Scanner(InvokeCallScanner):
    """Scans one turn. A value is read section by section: text with entities, or CDATA."""

    framed = True

    def _begin_value(self) -> bool:
        self._spelled: list[str] = []
        self._meant: list[str] = []
        return self._skip(_BEFORE_CDATA)

    def _skip(self, space: Callable[..., regex.Match[str] | None]) -> bool:
        """Pass over white space between CDATA and a tag."""
        match = space(self._text, self._pos, partial=True)
        if match is not None and match.partial:
            return False
        if match is not None:
            self._pos = match.end()
        self._state = self._in_value
        return True

    def _in_value(self) -> bool:
        text = self._text
        found = self._find_value_end(text, self._pos)
        if isinstance(found, int):
            cut = None if self._final else _CUT_ENTITY(text, max(self._pos, found - 12), found)
            end = found if cut is None else cut.start()
            if not self._final:
                self._read(text[self._pos : end], unescape(text[self._pos : end]), end)
            return False
        self._read(text[self._pos : found.start], unescape(text[self._pos : found.start]), found.start)
        if found.kind == "section":
            self._pos = found.end
            self._state = self._in_cdata
        else:
            self._value_ended(found)
        return True

    def end_of_value(self, text: str, at: int, key: str) -> Found | int:
        if text.startswith(CDATA, at):
            close = text.find(CDATA_CLOSE, at)
            return self.value_end.find(text, close + len(CDATA_CLOSE), False) if close >= 0 else at
        found = super().end_of_value(text, at, key)
        return at if isinstance(found, int) or text.find("&", at, found.start) >= 0 else found

    def _in_cdata(self) -> bool:
        text = self._text
        end = text.find(CDATA_CLOSE, self._pos)
        if end < 0:
            end = len(text) - (2 if text.endswith("]]") else text.endswith("]"))
            if not self._final:
                self._read(text[self._pos : end], text[self._pos : end], end)
            return False
        self._read(text[self._pos : end], text[self._pos : end], end)
        self._pos = end + len(CDATA_CLOSE)
        self._state = self._behind_cdata
        return True

    def _behind_cdata(self) -> bool:
        return self._skip(_BEHIND_CDATA)

    def _read(self, spelled: str, meant: str, end: int) -> None:
        """A piece of the value, as it is spelled and with its entities decoded."""
        if not spelled:
            return
        self._pos = end
        if self._value.streams:
            self._delta(self._value.read(meant), end)
        else:
            self._spelled.append(spelled)
            self._meant.append(meant)

    def _value_ended(self, found: Found) -> None:
        if not self._value.streams:
            spelled = "".join(self._spelled)
            self._value.read(spelled if _is_json(spelled) else "".join(self._meant))
        super()._value_ended(found)


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

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> MiniCpm5Scanner:
        return MiniCpm5Scanner(syntax(TAGS, MARKERS, control), MARKERS, tools, starts_in, control)


def _is_json(text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


def _write_function(writer: PromptWriter, call: ToolCall, texts: Mapping[str, str]) -> None:
    params = [f'<param name="{escape_attribute(key)}">{text}</param>' for key, text in texts.items()]
    writer.text(f'<function name="{escape_attribute(call.name)}">{"".join(params)}</function>')


def _text_of(value: Any, view: SchemaView | None) -> str:
    return _written(write_markup(value, view))


def _written(text: str) -> str:
    """A value as the template writes it; where CDATA cannot hold it, with entities."""
    if _NEEDS_CDATA(text) is None or _is_json(text):
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
