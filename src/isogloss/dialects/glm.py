"""glm: named arguments in key and value tags between ``<tool_call>`` tags (GLM-4.5 to GLM-5, Ling 3).

    turn      = [ "<think>" text "</think>" ] { text | call }           ended by the next turn's role token
    call      = "<tool_call>" name { argument } "</tool_call>"
    argument  = "<arg_key>" key "</arg_key>" "<arg_value>" value "</arg_value>"
    value     = a string as it is, anything else as JSON
    result    = "<tool_response>" text "</tool_response>"               one "<|observation|>" turn for a run of them

Sample::

    <tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call>

Rendered without white space, as GLM-4.7 and all later models write it; the line breaks of GLM-4.5 and 4.6 behind the
name and between the tags are read too. The model starts inside ``<think>``, which the prompt has opened. Read as well
are a JSON object in the tags, and the slips that the family is known for: a value or a key closed by the other's tag,
an argument without its opening tags, a value without its closing tag. Source: the chat templates of zai-org/GLM-4.6 and
zai-org/GLM-4.7-Flash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import regex

from isogloss.dialects._enclosing import enclose
from isogloss.dialects._key_value_calls import KEY, KeyValueCallScanner
from isogloss.dialects._markers import REFUSALS, THINK, Markers
from isogloss.dialects._tag_grammar import calls, parameters
from isogloss.dialects._tag_writing import write_call
from isogloss.dialects._turns import TurnsDialect, said
from isogloss.errors import UnrepresentableError
from isogloss.grammar import Literal, Marker, Term, sequence
from isogloss.messages import AssistantMessage, Tool, ToolCall, ToolMessage
from isogloss.prompt import PromptWriter
from isogloss.schema.view import SchemaView

TAGS = {
    "call": "<tool_call>",
    "call_close": "</tool_call>",
    "key": "<arg_key>",
    "key_close": "</arg_key>",
    "value": "<arg_value>",
    "value_close": "</arg_value>",
}
TURNS = ("<|user|>", "<|observation|>", "<|assistant|>", "<|system|>")
MARKERS = Markers(
    {
        **TAGS,
        "result": "<tool_response>",
        "result_close": "</tool_response>",
        "turn_end": (*TURNS, "<|endoftext|>"),
        "beginning": ("[gMASK]", "<sop>"),
        **THINK,
        **REFUSALS,
    },
    special=(
        *(*TURNS, "<|endoftext|>", "[gMASK]", "<sop>", "<think>", "</think>", "<tool_response>", "</tool_response>"),
        *TAGS.values(),
    ),
)

_is_key = regex.compile(KEY).fullmatch


class Glm(TurnsDialect):
    """Named arguments in key and value tags."""

    name = "glm"
    title = "GLM-4.5 to GLM-5, Ling 3"
    markers = MARKERS
    model_ids = r"glm-?(?:4[.p][5-9]|[5-9])|ling-?3"
    templates = r"<arg_key>"

    def write_opening(self, writer: PromptWriter, system: str, told: str) -> None:
        writer.marker("[gMASK]")
        writer.marker("<sop>")
        for text in (told, system):
            if text:
                writer.marker("<|system|>")
                writer.text(text)

    def write_user(self, writer: PromptWriter, text: str) -> None:
        writer.marker("<|user|>")
        writer.text(text)

    def write_assistant(
        self, writer: PromptWriter, message: AssistantMessage, reasoning: str | None, tools: Sequence[Tool]
    ) -> None:
        writer.marker("<|assistant|>")
        writer.is_assistant = True
        if reasoning is None:
            writer.marker("</think>")
        else:
            self.write_reasoning(writer, reasoning)
        writer.text(said(message))
        self.write_calls(writer, message.tool_calls, tools)
        writer.is_assistant = False

    def write_results_turn(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        writer.marker("<|observation|>")
        self.write_results(writer, results)

    def write_generation_prompt(self, writer: PromptWriter, *, thinks: bool) -> None:
        writer.marker("<|assistant|>")
        writer.marker("<think>" if thinks else "</think>")

    def write_calls(self, writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
        for call in calls:
            write_call(writer, self, call, tools, _write_call)

    def write_results(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        for result in results:
            enclose(writer, MARKERS, "result", result.text)

    def write_reasoning(self, writer: PromptWriter, text: str) -> None:
        enclose(writer, MARKERS, "think", text)

    def call_grammar(self, tools: Sequence[Tool], parallel: bool) -> Term:
        return calls(tools, _call_grammar)

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> KeyValueCallScanner:
        return KeyValueCallScanner(MARKERS, tools, starts_in, control)


def _call_grammar(tool: Tool) -> Term:
    others = [Marker(tag) for tag in TAGS.values() if tag != "</arg_value>"]
    arguments = parameters(tool.parameters, _opener, Marker("</arg_value>"), others, spell=_written_key)
    return sequence(Literal(tool.name), arguments, Marker("</tool_call>"))


def _written_key(key: str) -> str:
    if _is_key(key) is None or key != key.strip():
        raise UnrepresentableError(f"The glm format cannot carry the argument {key!r}")
    return key


def _opener(key: Term, value: SchemaView | None) -> Term:
    return sequence(Marker("<arg_key>"), key, Marker("</arg_key>"), Marker("<arg_value>"))


def _write_call(writer: PromptWriter, call: ToolCall, texts: Mapping[str, str]) -> None:
    writer.marker("<tool_call>")
    writer.text(call.name)
    for key, value in texts.items():
        writer.marker("<arg_key>")
        writer.text(key)
        writer.marker("</arg_key>")
        writer.marker("<arg_value>")
        writer.text(value)
        writer.marker("</arg_value>")
    writer.marker("</tool_call>")
