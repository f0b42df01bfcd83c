"""kimi: JSON behind an id that names the tool, between control tokens (Kimi K2, K2 Thinking, K2.5 and later K2).

    turn      = [ "<think>" text "</think>" ] { text | section } "<|im_end|>"
    section   = "<|tool_calls_section_begin|>" call { call } "<|tool_calls_section_end|>"
    call      = "<|tool_call_begin|>" id "<|tool_call_argument_begin|>" object "<|tool_call_end|>"
    id        = "functions." name ":" number             the number counts all calls of the conversation from 0
    result    = "<|im_system|>" name "<|im_middle|>## Return of " id "⏎" text "<|im_end|>"

Sample (in one line)::

    <|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Paris"}
    <|tool_call_end|><|tool_calls_section_end|>

All delimiters are control tokens, so text keeps every character. Ids of another shape name a tool only
if one of that name is listed. Source: the chat template of moonshotai/Kimi-K2-Thinking and Moonshot's guide to tool
calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import regex

from isogloss.dialects._call_ids import with_ids
from isogloss.dialects._conversations import offered
from isogloss.dialects._enclosing import enclose
from isogloss.dialects._lexicon import Found, spell
from isogloss.dialects._markers import REFUSALS, THINK, Markers
from isogloss.dialects._named_json import NamedJsonScanner, tail, write_arguments
from isogloss.dialects._role_turns import RoleTurnsDialect
from isogloss.dialects._told import catalogue_entry, format_prompt, paragraphs
from isogloss.dialects._turn import arguments
from isogloss.errors import UnrepresentableError
from isogloss.grammar import Literal, Marker, Regex, Repeat, Term, choice, sequence
from isogloss.messages import Conversation, Tool, ToolCall, ToolMessage
from isogloss.notations.markup import spaced
from isogloss.prompt import PromptWriter

SECTION, SECTION_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
CALL, ARGUMENTS, CALL_CLOSE = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
SYSTEM, USER, ASSISTANT, MIDDLE, END = "<|im_system|>", "<|im_user|>", "<|im_assistant|>", "<|im_middle|>", "<|im_end|>"
MARKERS = Markers(
    {
        "call": (SECTION, "<|tool_call_section_begin|>"),
        "section_end": (SECTION_END, "<|tool_call_section_end|>"),
        "bare_call": CALL,
        "arguments": ARGUMENTS,
        "call_close": CALL_CLOSE,
        "result": SYSTEM,
        "result_close": END,
        "turn_end": (END, USER, ASSISTANT, "[EOS]", "[EOT]"),
        "turn_named": MIDDLE,
        **THINK,
        **REFUSALS,
    },
    special=(SECTION, SECTION_END, CALL, ARGUMENTS, CALL_CLOSE, SYSTEM, USER, ASSISTANT, MIDDLE, END, "[EOS]", "[EOT]"),
)

NO_TOOL = "the id names none of the tools"

_NAME = r"[^\s<{\ud800-\ud880](?:[^<{\n\ud800-\ud880]{0,240}[^\s<{\ud800-\ud880])?"
_is_name = regex.compile(_NAME).fullmatch
_REGULAR_ID = re.compile(r"(?:functions\.)?(?P<name>.+):\d{1,9}").fullmatch
_OTHER_ID = re.compile(r"(?:functions[.:]?)?(?P<name>.+?)[.:_-]?\d*").fullmatch


@lru_cache(maxsize=16)
def _header(arguments: str, call_close: str) -> Any:
    ends = rf"{regex.escape(arguments)}|(?=\{{)|(?={regex.escape(call_close)})"
    return regex.compile(rf"\s{{0,64}}+(?P<id>{_NAME})\s{{0,64}}+(?:{ends})").match


def name_in(call_id: str, tools: Iterable[str]) -> str | None:
    """The tool that an id names; ``None`` where it is of another shape and names none of ``tools``."""
    regular = _REGULAR_ID(call_id)
    if regular is not None:
        return regular["name"]
    other = _OTHER_ID(call_id)
    candidates = (call_id, call_id.removeprefix("functions."), "" if other is None else other["name"])
    return next((name for name in candidates if name in tools), None)


class KimiScanner(NamedJsonScanner):
    """Scans one turn."""

    def __init__(self, tools: Iterable[Tool], starts_in: str, control: frozenset[str]) -> None:
        prose = MARKERS.prose(control, extra=("bare_call", "section_end"), trims=())
        self.text_prose, self.reasoning_prose, self.refusal_prose, self.results = prose
        self.faults = MARKERS.lexicon(("call_close", "call", "bare_call", "section_end", "turn_end"), control)
        self.ends = MARKERS.lexicon(("call_close", "bare_call", "section_end"), control)
        self.tail = tail(spell(CALL_CLOSE, control))
        self.header = _header(spell(ARGUMENTS, control), spell(CALL_CLOSE, control))
        super().__init__(tools, starts_in)
        self._in_section = False

    def _on_call(self, found: Found) -> None:
        self._in_section = self._trim = True

    def _on_section_end(self, found: Found) -> None:
        self._closer(found)
        self._in_section = False

    def _on_call_close(self, found: Found) -> None:
        self._closer(found)

    def _closer(self, found: Found) -> None:
        """A closing token without its opening one is text where no section is open."""
        if not self._in_section:
            self._emit_prose(self._text[found.start : found.end], found.end)

    def _on_bare_call(self, found: Found) -> None:
        self._open_call(found)

    def _header_read(self, match: regex.Match[str]) -> None:
        name = name_in(match["id"], self.tools)
        if name is None:
            self._fault(NO_TOOL)
        else:
            self._named(name, match["id"], self._pos)

    def _call_closed(self) -> bool:
        self._enter(self.text_prose)
        self._trim = self._in_section
        return True


class Kimi(RoleTurnsDialect):
    """JSON behind an id that names the tool."""

    name = "kimi"
    title = "Kimi K2 to K2.7"
    markers = MARKERS
    model_ids = r"kimi(?!.*k-?3)|moonlight"
    templates = r"<\|tool_calls_section_begin\|>"
    empties_reasoning: ClassVar[bool] = True
    gap: ClassVar[str] = ""

    def open_turn(self, writer: PromptWriter, role: str) -> None:
        _write_header(writer, {"user": USER, "assistant": ASSISTANT}.get(role, SYSTEM), role)

    def write_thoughts(self, writer: PromptWriter, reasoning: str | None) -> None:
        if reasoning is not None:
            self.write_reasoning(writer, reasoning)

    def prepared(self, conversation: Conversation) -> Conversation:
        return with_ids(conversation, _own_id)

    def write_beginning(self, writer: PromptWriter, system: str, conversation: Conversation) -> None:
        tools = offered(conversation)
        if tools:
            self.write_turn(writer, "tool_declare", spaced([catalogue_entry(tool) for tool in tools]))
        text = paragraphs(system, format_prompt(conversation.response_format))
        if text:
            self.write_turn(writer, "system", text)

    def write_results_turn(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        self.write_results(writer, results)

    def write_calls(self, writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
        names = [tool.name for tool in tools]
        writer.marker(SECTION)
        for position, call in enumerate(calls):
            call_id = _own_id(call.id, call.name, position)
            if name_in(call_id, names) != call.name or _is_name(call_id) is None:
                raise UnrepresentableError(f"An id cannot carry the name {call.name!r}")
            writer.marker(CALL)
            writer.text(call_id)
            writer.marker(ARGUMENTS)
            writer.text(write_arguments(call.arguments))
            writer.marker(CALL_CLOSE)
        writer.marker(SECTION_END)

    def write_results(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        for position, result in enumerate(results):
            call_id = _own_id(result.call_id, result.name, position)
            _write_header(writer, SYSTEM, result.name)
            writer.text(f"## Return of {call_id}\n{result.text}")
            self.close_turn(writer)

    def write_reasoning(self, writer: PromptWriter, text: str) -> None:
        enclose(writer, MARKERS, "think", text)

    def call_grammar(self, tools: Sequence[Tool], parallel: bool) -> Term:
        header = [(f"functions.{tool.name}:", arguments(tool)) for tool in tools]
        call = choice(
            *[
                sequence(Literal(head), Regex("[0-9]{1,4}"), Marker(ARGUMENTS), arguments, Marker(CALL_CLOSE))
                for head, arguments in header
            ]
        )
        again = Repeat(sequence(Marker(CALL), call)) if parallel else sequence()
        return sequence(Marker(CALL), call, again, Marker(SECTION_END))

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> KimiScanner:
        return KimiScanner(tools, starts_in, control)


def _write_header(writer: PromptWriter, token: str, name: str) -> None:
    writer.marker(token)
    writer.text(name)
    writer.marker(MIDDLE)


def _own_id(call_id: str, name: str, position: int) -> str:
    """The id as it is if it is of the family's shape and names the tool, else one made for its place."""
    regular = _REGULAR_ID(call_id)
    named = regular is not None and call_id.startswith("functions.") and regular["name"] == name
    return call_id if named else f"functions.{name}:{position}"
