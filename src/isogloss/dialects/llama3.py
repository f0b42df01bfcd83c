"""llama3: bare JSON objects (Llama 3.1, 3.2, 3.3).

    turn      = [ "<|python_tag|>" ] object { ";" object } "<|eot_id|>"  |  text "<|eot_id|>"
    object    = {"name": string, "parameters": object}             at the start of the turn or of a line
    result    = string of JSON                                     in a turn of role ipython

Sample::

    {"name": "get_weather", "parameters": {"city": "Paris"}}

An object is a call only if it begins with a name (``"type": "function"`` may stand in front) and goes on with
parameters, or ends there and names a tool: any other JSON is the answer. Source: the chat template of
meta-llama/Llama-3.1-8B-Instruct.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import ClassVar

from isogloss.dialects._json_calls import JsonCallScanner
from isogloss.dialects._lexicon import Found
from isogloss.dialects._llama_turns import LlamaTurnsDialect
from isogloss.dialects._markers import REFUSALS, THINK, Markers
from isogloss.dialects._turn import json_envelope
from isogloss.grammar import Literal, Repeat, Term, optional, sequence
from isogloss.messages import Tool, ToolCall
from isogloss.notations.markup import spaced
from isogloss.prompt import PromptWriter

TURN, TURN_NAMED, TAG = "<|start_header_id|>", "<|end_header_id|>", "<|python_tag|>"
ENDS = ("<|eot_id|>", "<|eom_id|>", TURN, "<|end_of_text|>")
_S = r"\s{0,32}+"
_PLAIN_NAME = r"[^\"\\\x00-\x1f]{1,256}"
_is_plain_name = re.compile(_PLAIN_NAME).fullmatch
MARKERS = Markers(
    {
        "call": TAG,
        "turn_end": ENDS,
        "turn": TURN,
        "turn_named": TURN_NAMED,
        "beginning": "<|begin_of_text|>",
        **THINK,
        **REFUSALS,
    },
    special=(*ENDS, TURN_NAMED, "<|begin_of_text|>", TAG),
    patterns={
        "object": (
            rf'\{{{_S}(?:"type"{_S}:{_S}"function"{_S},{_S})?"name"{_S}:{_S}"(?P<name>{_PLAIN_NAME})"{_S}'
            rf'(?:,{_S}"(?:parameters|arguments)"|(?P<alone>\}}))'
        )
    },
    first=("<", "{"),
)


class Llama3Scanner(JsonCallScanner):
    """Scans one turn."""

    def __init__(self, tools: Iterable[Tool], starts_in: str, control: frozenset[str]) -> None:
        trims = ("call", "think", "refusal", "object")
        prose = MARKERS.prose(control, extra=("object",), trims=trims)
        self.text_prose, self.reasoning_prose, self.refusal_prose, self.results = prose
        self._faults = MARKERS.lexicon(("call", "turn_end"), control)
        super().__init__(tools, starts_in)

    def _is_mention(self, found: Found) -> bool:
        if found.kind != "object":
            return super()._is_mention(found)
        is_unknown = found.match["alone"] is not None and found.match["name"] not in self.tools
        return is_unknown or not self._begins_line(found.start) or super()._is_mention(found)

    def _on_call(self, found: Found) -> None:
        self._open(found.start)
        self._state = self._envelope

    def _on_object(self, found: Found) -> None:
        self._open(found.start)
        self._pos = found.start
        self._state = self._envelope

    def _envelope_done(self) -> None:
        self._state = self._separator

    def _separator(self) -> bool:
        """Behind an object: a semicolon and the next one, or the next one, or text."""
        char = self._next_char()
        if char == "":
            return False
        if char == ";":
            self._pos += 1
        elif char == "{":
            self._open(self._pos)
            self._state = self._envelope
        else:
            self._enter(self.text_prose)
        return True

    def _fault(self, reason: str) -> None:
        self._discard(reason, self._faults)


class Llama3(LlamaTurnsDialect):
    """Bare JSON objects."""

    name = "llama3"
    title = "Llama 3.1, 3.2, 3.3"
    markers = MARKERS
    model_ids = r"^(?!.*(?:nemotron|hermes|toolace|deepseek|functionary)).*llama-?3(?!\.2-?(?:1b|3b))"
    templates = (
        r"\A(?![\s\S]*(?:\[func_name1\(|<TOOLCALL>|<tool_call>|<function=|functools|>>>))"
        r"[\s\S]*<\|start_header_id\|>"
    )
    bare_call: ClassVar[str] = "{"

    def write_calls(self, writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
        if not _is_plain_name(calls[0].name):  # the first object would not be taken for a call
            writer.marker(TAG)
        objects = [spaced({"name": call.name, "parameters": call.arguments}) for call in calls]
        writer.text("; ".join(objects))

    def call_grammar(self, tools: Sequence[Tool], parallel: bool) -> Term:
        call = json_envelope(tools, arguments_key="parameters", is_open=True)
        more = sequence(Literal(";"), optional(Literal(" ")), Literal("{"), call)
        return sequence(call, Repeat(more)) if parallel else call

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> Llama3Scanner:
        return Llama3Scanner(tools, starts_in, control)
