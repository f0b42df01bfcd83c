"""lfm: a list of Python calls between tokens of its own (LFM2, LFM2.5).

    turn      = [ "<think>" text "</think>" ] { text | block } "<|im_end|>"
    block     = "<|tool_call_start|>" "[" call { "," call } "]" "<|tool_call_end|>"
    call      = name "(" [ key "=" literal { "," key "=" literal } ] ")"
    result    = "<|tool_response_start|>" text "<|tool_response_end|>"      in a turn of role tool

Sample::

    <|tool_call_start|>[get_weather(city='Paris', days=2)]<|tool_call_end|>

Strings stand in single quotes. The delimiters are control tokens, so text keeps every character. The tools are listed
in the system turn. Source: the chat templates of LiquidAI/LFM2-8B-A1B and LFM2.5-8B-A1B.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from isogloss.dialects._chatml import TURN, TURN_END, ChatMLDialect
from isogloss.dialects._conversations import offered
from isogloss.dialects._enclosing import enclose
from isogloss.dialects._markers import REFUSALS, THINK, Markers
from isogloss.dialects._python_calls import PythonCallScanner, call_grammar, write_call
from isogloss.dialects._told import catalogue_entry, format_prompt, paragraphs
from isogloss.grammar import Literal, Marker, Term, sequence
from isogloss.messages import Conversation, Tool, ToolCall, ToolMessage
from isogloss.notations.markup import spaced
from isogloss.notations.python_grammar import PythonGrammar
from isogloss.prompt import PromptWriter

MARKERS = Markers(
    {
        "call": "<|tool_call_start|>",
        "call_close": "<|tool_call_end|>",
        "result": "<|tool_response_start|>",
        "result_close": "<|tool_response_end|>",
        "turn_end": (TURN_END, TURN, "<|endoftext|>"),
        "list": "<|tool_list_start|>",
        "list_close": "<|tool_list_end|>",
        "beginning": "<|startoftext|>",
        **THINK,
        **REFUSALS,
    },
    special=(
        *("<|tool_call_start|>", "<|tool_call_end|>", "<|tool_response_start|>", "<|tool_response_end|>"),
        *("<|tool_list_start|>", "<|tool_list_end|>", "<|startoftext|>", "<|endoftext|>", TURN, TURN_END),
    ),
)


class LfmScanner(PythonCallScanner):
    """Scans one turn."""

    framed_by_tokens: ClassVar[bool] = True

    def __init__(self, tools: Iterable[Tool], starts_in: str, control: frozenset[str]) -> None:
        self.text_prose, self.reasoning_prose, self.refusal_prose, self.results = MARKERS.prose(control, trims=())
        ends = {kind: MARKERS.kinds[kind] for kind in ("call_close", "call", "turn_end")}
        super().__init__(ends, tools, starts_in, control)


class Lfm(ChatMLDialect):
    """A list of Python calls between tokens of its own."""

    name = "lfm"
    title = "LFM2, LFM2.5"
    markers = MARKERS
    model_ids = r"lfm-?2"
    templates = r"<\|tool_(?:call|list)_start\|>|List of tools: "
    one_result_a_turn: ClassVar[bool] = True
    gap: ClassVar[str] = ""

    def write_beginning(self, writer: PromptWriter, system: str, conversation: Conversation) -> None:
        writer.marker("<|startoftext|>")
        system = paragraphs(system, format_prompt(conversation.response_format))
        tools = offered(conversation)
        if not system and not tools:
            return
        self.open_turn(writer, "system")
        writer.text(system)
        if tools:
            writer.text("\nList of tools: " if system else "List of tools: ")
            enclose(writer, MARKERS, "list", spaced([catalogue_entry(tool) for tool in tools]))
        self.close_turn(writer)

    def write_calls(self, writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
        written = [write_call(call, call.name, "'") for call in calls]
        if written:
            enclose(writer, MARKERS, "call", f"[{', '.join(written)}]")

    def write_results(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        for result in results:
            enclose(writer, MARKERS, "result", result.text)

    def write_reasoning(self, writer: PromptWriter, text: str) -> None:
        enclose(writer, MARKERS, "think", text)

    def call_grammar(self, tools: Sequence[Tool], parallel: bool) -> Term:
        calls = call_grammar(tools, parallel, PythonGrammar("'"))
        return sequence(Literal("["), calls, Literal("]"), Marker("<|tool_call_end|>"))

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> LfmScanner:
        return LfmScanner(tools, starts_in, control)
