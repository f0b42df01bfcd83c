"""minimax_m3: arguments as elements named after them, behind a token that makes them tags (MiniMax M3).

    turn    = [ "<mm:think>" text ] "</mm:think>" { text | block } "[e~["
    block   = NS"<tool_call>⏎" { call } NS"</tool_call>"
    call    = NS'<invoke name="' name '">' { element } NS"</invoke>⏎"
    element = NS"<" key ">" value NS"</" key ">"
    value   = a string as it is | JSON | { element }           an object's members, or each item of a list as `item`
    results = "]~b]tool" { "⏎<response>" text "</response>" } "[e~["
    NS      = "]<]minimax[>["

Sample::

    ]<]minimax[>[<tool_call>
    ]<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>Paris]<]minimax[>[</city>]<]minimax[>[</invoke>
    ]<]minimax[>[</tool_call>

Lists and objects are written as elements where those say all of them, else as JSON, which is read everywhere.
The prompt has opened ``<mm:think>`` (or closed it, for a model that is not to think). The token tells tags from text,
so text keeps every character. M1 and M2 speak other languages. Source: the chat template of MiniMaxAI/MiniMax-M3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

from isogloss.dialects._call_forms import WriteCall
from isogloss.dialects._element_calls import ElementCallScanner
from isogloss.dialects._element_grammar import block_grammar
from isogloss.dialects._element_tags import patterns
from isogloss.dialects._enclosing import enclose
from isogloss.dialects._invoke_calls import escape_attribute
from isogloss.dialects._lexicon import Found, spell
from isogloss.dialects._markers import REFUSALS, Markers
from isogloss.dialects._role_turns import RoleTurnsDialect
from isogloss.dialects._tag_writing import write_call, write_read_back
from isogloss.dialects._told import paragraphs
from isogloss.errors import UnrepresentableError
from isogloss.grammar import Term
from isogloss.messages import Tool, ToolCall, ToolMessage
from isogloss.notations.elements import Content, ElementReader, content, inner_view
from isogloss.notations.json import write as write_json
from isogloss.notations.markup import spaced
from isogloss.notations.markup import write as write_markup
from isogloss.prompt import PromptWriter
from isogloss.schema.view import SchemaView, shared_view

BEGINNING, TURN, TURN_END, TOKEN = "]~!b[", "]~b]", "[e~[", "]<]minimax[>["
KINDS: Mapping[str, str | tuple[str, ...]] = {
    "call": f"{TOKEN}<tool_call>",
    "call_close": f"{TOKEN}</tool_call>",
    "bare_call": f"{TOKEN}<invoke",
    "turn_end": (TURN_END, TURN, BEGINNING),
    "turn": TURN,
    "think": ("<mm:think>", "<think>"),
    "think_close": ("</mm:think>", "</think>"),
    "token": TOKEN,
    **REFUSALS,
}


@lru_cache(maxsize=16)
def _markers(control: frozenset[str]) -> Markers:
    token = spell(TOKEN, control)
    return Markers(
        KINDS,
        special=(BEGINNING, TURN, TURN_END, TOKEN, "<mm:think>", "</mm:think>"),
        patterns=patterns(token),
        first=(token[:2], "<t"),
    )


MARKERS = _markers(frozenset())


class MiniMaxM3Scanner(ElementCallScanner):
    """Scans one turn."""

    also_in_text: ClassVar[tuple[str, ...]] = ("block",)

    def __init__(self, tools: Iterable[Tool], starts_in: str, control: frozenset[str]) -> None:
        super().__init__(spell(TOKEN, control), _markers(control), tools, starts_in, control)

    def _on_block(self, found: Found) -> None:
        """The beginning of a block without its token."""
        self._on_call(found)


class MiniMaxM3(RoleTurnsDialect):
    """Arguments as elements behind a token."""

    name = "minimax_m3"
    title = "MiniMax M3"
    markers = MARKERS
    model_ids = r"minimax-?m3"
    templates = r"\]<\]minimax\[>\["
    keeps_reasoning = True
    assistant_role: ClassVar[str] = "ai"
    one_result_a_turn: ClassVar[bool] = False
    gap: ClassVar[str] = ""
    behind_turn: ClassVar[str] = "\n"

    def write_opening(self, writer: PromptWriter, system: str, told: str) -> None:
        writer.marker(BEGINNING)
        self.write_turn(writer, "system", "You are a helpful assistant.")
        instructions = paragraphs(system, told)
        if instructions:
            self.write_turn(writer, "developer", instructions)

    def write_thoughts(self, writer: PromptWriter, reasoning: str | None) -> None:
        if reasoning is None:
            writer.marker("</mm:think>")
        else:
            self.write_reasoning(writer, reasoning)

    def write_generation_prompt(self, writer: PromptWriter, *, thinks: bool) -> None:
        super().write_generation_prompt(writer, thinks=thinks)
        writer.marker("<mm:think>" if thinks else "</mm:think>")

    def write_calls(self, writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
        _write_tag(writer, "<tool_call>\n")
        for call in calls:
            if any(isinstance(value, dict | list) for value in call.arguments.values()):
                _write_nested(writer, self, call, tools)
            else:
                write_call(writer, self, call, tools, _write_flat, _text_of)
            writer.text("\n")
        _write_tag(writer, "</tool_call>")

    def write_results(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        writer.text("\n".join([f"<response>{result.text}</response>" for result in results]))

    def write_reasoning(self, writer: PromptWriter, text: str) -> None:
        enclose(writer, MARKERS, "think", text)

    def call_grammar(self, tools: Sequence[Tool], parallel: bool) -> Term:
        return block_grammar(TOKEN, tools, parallel)

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> MiniMaxM3Scanner:
        return MiniMaxM3Scanner(tools, starts_in, control)


def _text_of(value: Any, view: SchemaView | None) -> str:
    text = write_markup(value, view)
    if not text.strip() and not ElementReader(view).reads(text, value):
        raise UnrepresentableError(f"An empty element is no {write_json(value)} under its schema")
    return text


def _write_nested(writer: PromptWriter, dialect: MiniMaxM3, call: ToolCall, tools: Sequence[Tool]) -> None:
    """Write a call with lists or objects: how much of them is elements depends on the tools."""
    schema = next((tool.parameters for tool in reversed(tools) if tool.name == call.name), None)
    view = None if schema is None else shared_view(schema)
    texts = {
        key: spaced(value) if isinstance(value, dict | list) else _text_of(value, inner_view(view, key, None))
        for key, value in call.arguments.items()
    }
    write_read_back(writer, dialect, call, tools, _writer(view), texts)


def _writer(view: SchemaView | None) -> WriteCall:
    def write(writer: PromptWriter, call: ToolCall, texts: Mapping[str, str]) -> None:
        _write_tag(writer, f'<invoke name="{escape_attribute(call.name)}">')
        for key, text in texts.items():
            value = call.arguments[key]
            is_structure = isinstance(value, dict | list) and text == spaced(value)
            _write_element(writer, key, content(value, inner_view(view, key, None)) if is_structure else text)
        _write_tag(writer, "</invoke>")

    return write


_write_flat = _writer(None)


def _write_element(writer: PromptWriter, name: str, inner: Content) -> None:
    _write_tag(writer, f"<{name}>")
    if isinstance(inner, str):
        writer.text(inner)
    else:
        for its_name, its_content in inner:
            _write_element(writer, its_name, its_content)
    _write_tag(writer, f"</{name}>")


def _write_tag(writer: PromptWriter, tag: str) -> None:
    writer.marker(TOKEN)
    writer.text(tag)
