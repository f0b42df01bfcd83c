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

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import regex

from isogloss.dialects._enclosing import enclose
from isogloss.dialects._lexicon import Found, Lexicon, spell
from isogloss.dialects._markers import REFUSALS, THINK, Markers
from isogloss.dialects._tag_calls import TagCallScanner
from isogloss.dialects._tag_grammar import calls, parameters
from isogloss.dialects._tag_writing import write_call
from isogloss.dialects._tagged_json import TaggedJsonScanner
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

NAME = r"""[^\s<>{}\[\]()"'`]{1,256}"""
KEY = r"[^<>\n]{1,256}"
_is_key = regex.compile(KEY).fullmatch

NO_CALL = "neither a name with arguments nor a JSON object between the tags"


class Syntax:
    """The lexicons of a call. ``control`` are the tags that arrive as control tokens."""

    def __init__(self, control: frozenset[str]) -> None:
        self._first = tuple({spell(tag, control)[:2] for tag in TAGS.values()})
        tags = self._tags = {kind: regex.escape(spell(tag, control)) for kind, tag in TAGS.items()}
        value = rf"\s{{0,64}}+{tags['value']}"
        self.head = self._lexicon(
            named=rf"(?P<name>{NAME})\s{{0,64}}+(?={tags['key']}|{tags['call_close']})",
            opened_as_call=rf"(?P<called>{NAME})\s{{0,64}}+{tags['call']}(?P<key>{KEY}){tags['key_close']}{value}",
            not_opened=rf"(?P<both>{KEY}){tags['key_close']}{value}",
        )
        # A key whose closing tag is doubled, missing or that of a value; a value whose opening tag is missing.
        key_close = rf"(?:(?:{tags['key_close']}\s{{0,8}}+){{1,2}}+|{tags['value_close']}|(?={value}))"
        self.between = self._lexicon(
            argument=(
                rf"(?:{tags['key']}\s{{0,8}}+){{1,2}}+(?P<key>{KEY}){key_close}(?:{value}|\s{{0,64}}+(?=[^\s<]))"
            ),
            call_close=tags["call_close"],
            call=tags["call"],
            stray=rf"{tags['key_close']}|{tags['value_close']}",
        )
        turns = [regex.escape(spell(tag, control)) for tag in MARKERS.kinds["turn_end"]]
        self.value_end = self._value_end([tags["call"], *turns])
        self.final_value_end = self._value_end([tags["call"], *turns, r"\Z"])

    def _value_end(self, behind_a_call: Sequence[str]) -> Lexicon:
        tags = self._tags
        space = r"\s{0,64}+"
        ends = rf"{tags['call_close']}{space}(?:{'|'.join(behind_a_call)})"
        return self._lexicon(
            value_close=rf"{tags['value_close']}(?={space}(?:{tags['key']}|{tags['call_close']}|{tags['call']}))",
            closed_as_key=(
                rf"{tags['key_close']}(?={space}(?:{tags['key']}|{tags['call_close']}|{tags['value_close']}))"
            ),
            other_close=rf"</[^<>\s]{{1,64}}+>?(?={space}(?:{self._argument('next')}|{ends}))",
            next_parameter=rf"(?={self._argument('key')})",
            next_call=rf"(?={tags['call']}{space}(?P<name>{NAME}){space}(?:{tags['key']}|{tags['call_close']}))",
            not_closed=f"(?={ends})",
        )

    def _argument(self, key: str) -> str:
        tags = self._tags
        return rf"{tags['key']}(?P<{key}>{KEY}){tags['key_close']}\s{{0,64}}+{tags['value']}"

    def _lexicon(self, **patterns: str) -> Lexicon:
        return Lexicon({}, patterns=patterns, first=self._first)


syntax = lru_cache(maxsize=16)(Syntax)


class GlmScanner(TaggedJsonScanner, TagCallScanner):
    """Scans one turn."""

    def __init__(self, tools: Iterable[Tool], starts_in: str, control: frozenset[str]) -> None:
        self.text_prose, self.reasoning_prose, self.refusal_prose, self.results = MARKERS.prose(control)
        self.faults = MARKERS.lexicon(("call_close", "call", "turn_end"), control)
        self.tails = MARKERS.lexicon(("call_close",), control)
        lexicons = syntax(control)
        self.head, self.between = lexicons.head, lexicons.between
        self.value_end, self.final_value_end = lexicons.value_end, lexicons.final_value_end
        super().__init__(tools, starts_in)

    def _body(self) -> bool:
        char = self._next_char()
        if char == "" or char in "{[`":
            return super()._body()
        match = self.head.match(self._text, self._pos, partial=True)
        if match is not None and match.partial:
            return False
        if match is None or not self._begins(match):
            self._fault(NO_CALL)
        return True

    def _begins(self, match: regex.Match[str]) -> bool:
        """Begin the call that the text behind the opening tag names; false if it names none."""
        if match.lastgroup == "named":
            self._pos = match.end()
            self._named(match["name"], match.end())
            return True
        if match.lastgroup == "opened_as_call":
            name, key = match["called"], match["key"].strip()
        else:
            name, key = self._parted(match["both"])
        if name not in self.tools:
            return False
        self._pos = match.end()
        self._named(name, match.end())
        self._parameter(key, match.end())
        return True

    def _parted(self, both: str) -> tuple[str, str]:
        """A name and a key with no tag between them, told apart by the tools."""
        for name in sorted(self.tools, key=len, reverse=True):
            key = both[len(name) :].strip()
            if both.startswith(name) and key in self.view_of(name).properties:
                return name, key
        return "", ""

    def _in_call_argument(self, found: Found) -> None:
        self._parameter(self.key_of(found), found.end)

    def _in_call_call_close(self, found: Found) -> None:
        self._call_closed(found.end)

    def _in_call_call(self, found: Found) -> None:
        self._not_closed(found.start)

    def _in_call_stray(self, found: Found) -> None:
        """A closing tag too many."""


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

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> GlmScanner:
        return GlmScanner(tools, starts_in, control)


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
