"""hermes: JSON between ``<tool_call>`` tags (Hermes 2 Pro, 2 Theta, 3; Qwen2.5; QwQ).

    turn      = [ "<think>" text "</think>" ] { text | call } "<|im_end|>"
    call      = "<tool_call>" object "</tool_call>"
    object    = {"name": string, "arguments": object}
    result    = "<tool_response>" text "</tool_response>"      in a turn of role tool

Sample::

    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Paris"}}
    </tool_call>

Source: the chat templates of NousResearch/Hermes-3 and Qwen/Qwen2.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from isogloss.dialects._chatml import TURN, TURN_END, ChatMLDialect
from isogloss.dialects._enclosing import enclose, enclose_results
from isogloss.dialects._markers import REFUSALS, THINK, Markers
from isogloss.dialects._scanner import StreamScanner
from isogloss.dialects._tagged_json import TaggedJsonScanner
from isogloss.dialects._turn import GAP, json_envelope
from isogloss.grammar import Marker, Term, sequence
from isogloss.messages import Tool, ToolCall, ToolMessage
from isogloss.notations.json import write as write_json
from isogloss.prompt import PromptWriter

MARKERS = Markers(
    {
        "call": "<tool_call>",
        "call_close": "</tool_call>",
        "result": "<tool_response>",
        "result_close": "</tool_response>",
        "turn_end": (TURN_END, TURN, "<|endoftext|>"),
        **THINK,
        **REFUSALS,
    },
    special=(TURN, TURN_END, "<|endoftext|>", "<tool_call>", "</tool_call>", "<think>", "</think>"),
)


class HermesScanner(TaggedJsonScanner):
    """Scans one turn."""

    def __init__(self, tools: Iterable[Tool], starts_in: str, control: frozenset[str]) -> None:
        self.text_prose, self.reasoning_prose, self.refusal_prose, self.results = MARKERS.prose(control)
        self.faults = MARKERS.lexicon(("call_close", "call", "turn_end"), control)
        self.tails = MARKERS.lexicon(("call_close",), control)
        super().__init__(tools, starts_in)


class Hermes(ChatMLDialect):
    """JSON between tool_call tags."""

    name = "hermes"
    title = "Hermes 2 and 3, Qwen2.5, QwQ, Granite 4"
    markers = MARKERS
    model_ids = r"hermes|qwen-?2|qwq|granite-?4"
    templates = r"\A(?=[\s\S]*<tool_call>)(?![\s\S]*(?:<think>|<function=|<arg_key>|\]minimax\[))"

    def write_calls(self, writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
        for position, call in enumerate(calls):
            if position:
                writer.text("\n")
            body = write_json({"name": call.name, "arguments": call.arguments})
            enclose(writer, self.markers, "call", body, margin="\n")

    def write_results(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        enclose_results(writer, self.markers, results)

    def call_grammar(self, tools: Sequence[Tool], parallel: bool) -> Term:
        return sequence(GAP, json_envelope(tools), GAP, Marker("</tool_call>"))

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> StreamScanner:
        return HermesScanner(tools, starts_in, control)
