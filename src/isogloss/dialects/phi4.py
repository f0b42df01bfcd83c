"""phi4: a JSON array behind the word ``functools`` (Phi-4-mini).

    turn      = { text | block } "<|end|>"
    block     = "functools[" object { "," object } "]"
              | "<|tool_call|>" ( object | "[" object { "," object } "]" ) "<|/tool_call|>"
    object    = {"name": string, "arguments": object}
    result    = text                                      in a turn "<|tool_response|>" text "<|end|>"

Sample::

    functools[{"name": "get_weather", "arguments": {"city": "Paris"}}]

The tools are declared in the system turn. Source: vLLM's template for Phi-4-mini and the vocabulary of
microsoft/Phi-4-mini-instruct.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from isogloss.dialects._conversations import offered
from isogloss.dialects._enclosing import enclose
from isogloss.dialects._lexicon import Found
from isogloss.dialects._markers import REFUSALS, THINK, Markers
from isogloss.dialects._role_turns import RoleTurnsDialect
from isogloss.dialects._tagged_json import TaggedJsonScanner
from isogloss.dialects._told import catalogue_entry, format_prompt, paragraphs
from isogloss.dialects._turn import json_envelopes
from isogloss.grammar import Term
from isogloss.messages import Conversation, Tool, ToolCall
from isogloss.notations.markup import spaced
from isogloss.prompt import PromptWriter

TOKENS: dict[str, str | tuple[str, ...]] = {
    "bare_call": "<|tool_call|>",
    "call_close": "<|/tool_call|>",
    "result": "<|tool_response|>",
    "turn_end": ("<|end|>", "<|user|>", "<|system|>", "<|assistant|>", "<|endoftext|>"),
    "tools": "<|tool|>",
    "tools_close": "<|/tool|>",
}
MARKERS = Markers({"call": "functools[", **TOKENS, **THINK, **REFUSALS}, special=Markers(TOKENS).all)


class Phi4Scanner(TaggedJsonScanner):
    """Scans one turn."""

    def __init__(self, tools: Iterable[Tool], starts_in: str, control: frozenset[str]) -> None:
        trims = ("call", "bare_call", "call_close", "think", "result", "refusal")
        prose = MARKERS.prose(control, extra=("bare_call",), trims=trims)
        self.text_prose, self.reasoning_prose, self.refusal_prose, self.results = prose
        self.faults = MARKERS.lexicon(("call_close", "call", "bare_call", "turn_end"), control)
        self.tails = MARKERS.lexicon(("call_close",), control)
        super().__init__(tools, starts_in)

    def _on_call(self, found: Found) -> None:
        self._open(found.start)
        self._in_array = True
        self._state = self._array_item

    def _on_bare_call(self, found: Found) -> None:
        super()._on_call(found)


class Phi4(RoleTurnsDialect):
    """A JSON array behind the word functools."""

    name = "phi4"
    title = "Phi-4-mini"
    markers = MARKERS
    model_ids = r"phi-?4"
    templates = r"<\|/tool_call\|>|\A(?=[\s\S]*<\|end\|>)[\s\S]*functools"
    results_role: ClassVar[str] = "tool_response"

    def open_turn(self, writer: PromptWriter, role: str) -> None:
        writer.marker(f"<|{role}|>")

    def write_beginning(self, writer: PromptWriter, system: str, conversation: Conversation) -> None:
        tools = offered(conversation)
        text = paragraphs(system, format_prompt(conversation.response_format))
        if not text and not tools:
            return
        self.open_turn(writer, "system")
        writer.text(text)
        if tools:
            enclose(writer, MARKERS, "tools", spaced([catalogue_entry(tool)["function"] for tool in tools]))
        self.close_turn(writer)

    def write_calls(self, writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
        envelopes = spaced([{"name": call.name, "arguments": call.arguments} for call in calls])
        writer.marker("functools[")
        writer.text(envelopes[1:])

    def call_grammar(self, tools: Sequence[Tool], parallel: bool) -> Term:
        return json_envelopes(tools, parallel)

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> Phi4Scanner:
        return Phi4Scanner(tools, starts_in, control)
