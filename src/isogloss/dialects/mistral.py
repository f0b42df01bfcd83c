"""mistral: JSON behind a name, between control tokens (Mistral Small 3.2, Devstral, Magistral, Ministral 3, Large 3).

    turn      = [ "[THINK]" text "[/THINK]" ] { text | call } "</s>"
    call      = "[TOOL_CALLS]" name [ "[CALL_ID]" id ] "[ARGS]" object                     vocabularies from v11 on
              | "[TOOL_CALLS]" "[" envelope { "," envelope } "]"                           up to v7
    envelope  = {"name": string, "arguments": object, "id": string}
    id        = nine letters and digits
    result    = "[TOOL_RESULTS]" [ id "[TOOL_CONTENT]" ] text "[/TOOL_RESULTS]"

Sample::

    [TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}[TOOL_CALLS]now[ARGS]{}

Rendered as the vocabularies from v11 on have it, with the ids of calls that have one of the family's shape; the array
of envelopes is read too. All delimiters are control tokens, so text keeps every character. Source: the chat templates
of mistralai/Mistral-Small-3.2-24B-Instruct-2506 and Mistral-Nemo-Instruct-2407.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import regex

from isogloss.dialects._conversations import offered
from isogloss.dialects._enclosing import enclose
from isogloss.dialects._lexicon import Found, spell
from isogloss.dialects._markers import REFUSALS, Markers
from isogloss.dialects._named_json import NamedJsonScanner, write_arguments
from isogloss.dialects._told import catalogue_entry, format_prompt, paragraphs
from isogloss.dialects._turn import arguments
from isogloss.dialects._turns import TurnsDialect, said
from isogloss.errors import UnrepresentableError
from isogloss.grammar import Literal, Marker, Term, choice, sequence
from isogloss.messages import AssistantMessage, Conversation, Tool, ToolCall, ToolMessage
from isogloss.notations.markup import spaced
from isogloss.prompt import PromptWriter

TOKENS: dict[str, str | tuple[str, ...]] = {
    "call": "[TOOL_CALLS]",
    "call_id": "[CALL_ID]",
    "arguments": "[ARGS]",
    "think": "[THINK]",
    "think_close": "[/THINK]",
    "result": "[TOOL_RESULTS]",
    "result_content": "[TOOL_CONTENT]",
    "result_close": "[/TOOL_RESULTS]",
    "turn_end": ("</s>", "[INST]"),
    "turn_close": "[/INST]",
    "system": "[SYSTEM_PROMPT]",
    "system_close": "[/SYSTEM_PROMPT]",
    "tools": "[AVAILABLE_TOOLS]",
    "tools_close": "[/AVAILABLE_TOOLS]",
    "beginning": "<s>",
}
MARKERS = Markers({**TOKENS, **REFUSALS}, special=Markers(TOKENS).all)

_NAME = r"[^\s\[{\ud800-\ud880](?:[^\[{\n\ud800-\ud880]{0,254}[^\s\[{\ud800-\ud880])?"
_is_name = regex.compile(_NAME).fullmatch
_is_id = re.compile("[A-Za-z0-9]{9}").fullmatch


@lru_cache(maxsize=16)
def _header(call_id: str, arguments: str) -> Any:
    """What stands in front of the arguments: a name, perhaps an id, or nothing in front of envelopes."""
    spaced_id = rf"{regex.escape(call_id)}\s{{0,8}}+(?P<id>[^\s\[{{\ud800-\ud880]{{1,64}})\s{{0,8}}+"
    named = rf"(?P<name>{_NAME})\s{{0,16}}+(?:{spaced_id})?(?:{regex.escape(arguments)}|(?=\{{))"
    return regex.compile(rf"\s{{0,16}}+(?:(?P<envelopes>(?=[\[{{]))|{named})").match


class MistralScanner(NamedJsonScanner):
    """Scans one turn."""

    def __init__(self, tools: Iterable[Tool], starts_in: str, control: frozenset[str]) -> None:
        self.text_prose, self.reasoning_prose, self.refusal_prose, self.results = MARKERS.prose(control, trims=())
        self.faults = MARKERS.lexicon(("call", "turn_end"), control)
        self.ends = self.faults
        self.header = _header(*(spell(MARKERS[kind], control) for kind in ("call_id", "arguments")))
        super().__init__(tools, starts_in)
        self._is_named = False

    def _on_call(self, found: Found) -> None:
        self._open_call(found)

    def _header_read(self, match: regex.Match[str]) -> None:
        self._is_named = match["name"] is not None
        if self._is_named:
            self._named(match["name"], match["id"] or "", self._pos)
        else:
            self._state = self._envelope

    def _member_done(self) -> None:
        if self._is_named:
            super()._member_done()
        else:
            self._state = self._key

    def _tail(self) -> bool:
        return self._call_closed()

    def _envelope_done(self) -> None:
        self._call_closed()


class Mistral(TurnsDialect):
    """JSON behind a name, between control tokens."""

    name = "mistral"
    title = "Mistral Small 3.2, Devstral, Magistral, Ministral 3, Large 3"
    markers = MARKERS
    model_ids = r"^(?!.*hermes).*(?:mistral|mixtral|devstral|magistral|ministral|codestral|pixtral|voxtral)"
    templates = r"\[TOOL_CALLS\]"

    def write_beginning(self, writer: PromptWriter, system: str, conversation: Conversation) -> None:
        writer.marker("<s>")
        text = paragraphs(system, format_prompt(conversation.response_format))
        tools = offered(conversation)
        if text:
            enclose(writer, MARKERS, "system", text)
        if tools:
            enclose(writer, MARKERS, "tools", spaced([catalogue_entry(tool) for tool in tools]))

    def write_user(self, writer: PromptWriter, text: str) -> None:
        writer.marker("[INST]")
        writer.text(text)
        writer.marker("[/INST]")

    def write_assistant(
        self, writer: PromptWriter, message: AssistantMessage, reasoning: str | None, tools: Sequence[Tool]
    ) -> None:
        writer.is_assistant = True
        if reasoning:
            self.write_reasoning(writer, reasoning)
        writer.text(said(message))
        self.write_calls(writer, message.tool_calls, tools)
        writer.marker("</s>")
        writer.is_assistant = False

    def write_results_turn(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        self.write_results(writer, results)

    def write_generation_prompt(self, writer: PromptWriter, *, thinks: bool) -> None:
        """The model answers right behind what was said."""

    def write_calls(self, writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
        for call in calls:
            if _is_name(call.name) is None:
                raise UnrepresentableError(f"No header of a call can carry the name {call.name!r}")
            writer.marker("[TOOL_CALLS]")
            writer.text(call.name)
            if _is_id(call.id):
                writer.marker("[CALL_ID]")
                writer.text(call.id)
            writer.marker("[ARGS]")
            writer.text(write_arguments(call.arguments))

    def write_results(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        for result in results:
            writer.marker("[TOOL_RESULTS]")
            if _is_id(result.call_id):
                writer.text(result.call_id)
                writer.marker("[TOOL_CONTENT]")
            writer.text(result.text)
            writer.marker("[/TOOL_RESULTS]")

    def write_reasoning(self, writer: PromptWriter, text: str) -> None:
        enclose(writer, MARKERS, "think", text)

    def call_grammar(self, tools: Sequence[Tool], parallel: bool) -> Term:
        return choice(*[sequence(Literal(tool.name), Marker("[ARGS]"), arguments(tool)) for tool in tools])

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> MistralScanner:
        return MistralScanner(tools, starts_in, control)
