"""granite: a JSON array behind one token (Granite 3.0 to 3.3).

    turn      = [ "<think>" text "</think>" ] { text | block } "<|end_of_text|>"
    block     = "<|tool_call|>" "[" object { "," object } "]"
    object    = {"name": string, "arguments": object}
    result    = text                                      in a turn of role tool_response

Sample::

    <|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]

Models also spell the token ``<tool_call>`` and, from 3.3 on, put what they say between ``<response>`` tags. Granite 4
writes calls as hermes does, which is read too. Source: vLLM's template for Granite 3 and IBM's notes on Granite 3.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from isogloss.dialects._conversations import offered
from isogloss.dialects._lexicon import Found
from isogloss.dialects._markers import REFUSALS, THINK, Markers
from isogloss.dialects._role_turns import RoleTurnsDialect
from isogloss.dialects._tagged_json import TaggedJsonScanner
from isogloss.dialects._told import catalogue_entry, format_prompt, paragraphs
from isogloss.dialects._turn import GAP, json_envelopes
from isogloss.grammar import Literal, Term, sequence
from isogloss.messages import Conversation, Tool, ToolCall
from isogloss.notations.markup import spaced
from isogloss.prompt import PromptWriter

TURN, TURN_NAMED, TURN_END, CALL = "<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>", "<|tool_call|>"
MARKERS = Markers(
    {
        "call": (CALL, "<tool_call>"),
        "call_close": "</tool_call>",
        "response": ("<response>", "</response>"),
        "turn_end": (TURN_END, TURN),
        "turn": TURN,
        "turn_named": TURN_NAMED,
        **THINK,
        **REFUSALS,
    },
    special=(TURN, TURN_NAMED, TURN_END, CALL),
)


class GraniteScanner(TaggedJsonScanner):
    """Scans one turn."""

    def __init__(self, tools: Iterable[Tool], starts_in: str, control: frozenset[str]) -> None:
        trims = ("call", "call_close", "think", "refusal", "response")
        prose = MARKERS.prose(control, extra=("response",), trims=trims)
        self.text_prose, self.reasoning_prose, self.refusal_prose, self.results = prose
        self.faults = MARKERS.lexicon(("call_close", "call", "turn_end"), control)
        self.tails = MARKERS.lexicon(("call_close",), control)
        super().__init__(tools, starts_in)

    def _on_response(self, found: Found) -> None:
        """A tag around the answer: markup that says nothing."""
        self._enter(self.text_prose)


class Granite(RoleTurnsDialect):
    """A JSON array behind one token."""

    name = "granite"
    title = "Granite 3"
    markers = MARKERS
    model_ids = r"granite-?3"
    templates = r"\A(?![\s\S]*<tool_call>)[\s\S]*<\|start_of_role\|>"
    results_role: ClassVar[str] = "tool_response"
    behind_turn: ClassVar[str] = "\n"

    def open_turn(self, writer: PromptWriter, role: str) -> None:
        writer.marker(TURN)
        writer.text(role)
        writer.marker(TURN_NAMED)

    def write_beginning(self, writer: PromptWriter, system: str, conversation: Conversation) -> None:
        tools = offered(conversation)
        if tools:
            self.write_turn(writer, "available_tools", spaced([catalogue_entry(tool) for tool in tools]))
        text = paragraphs(system, format_prompt(conversation.response_format))
        if text:
            self.write_turn(writer, "system", text)

    def write_calls(self, writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
        writer.marker(CALL)
        writer.text(spaced([{"name": call.name, "arguments": call.arguments} for call in calls]))

    def call_grammar(self, tools: Sequence[Tool], parallel: bool) -> Term:
        return sequence(GAP, Literal("["), json_envelopes(tools, parallel))

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> GraniteScanner:
        return GraniteScanner(tools, starts_in, control)
