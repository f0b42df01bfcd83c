"""deepseek: JSON behind a name, between control tokens (DeepSeek V3, R1, V3.1).

    turn      = [ "<think>" ] [ text "</think>" ] { text | section } "<｜end▁of▁sentence｜>"
    section   = "<｜tool▁calls▁begin｜>" call { call } "<｜tool▁calls▁end｜>"
    call      = "<｜tool▁call▁begin｜>" name "<｜tool▁sep｜>" object "<｜tool▁call▁end｜>"                       V3.1
              | "<｜tool▁call▁begin｜>function<｜tool▁sep｜>" name "⏎```json⏎" object "⏎```<｜tool▁call▁end｜>"   V3, R1
    result    = "<｜tool▁output▁begin｜>" text "<｜tool▁output▁end｜>"

Sample (in one line)::

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Paris"}<｜tool▁call▁end｜>
    <｜tool▁calls▁end｜>

Rendered as V3.1 has it; both forms are read, and so are their mixtures and tokens with ASCII bars and blanks. All
delimiters are control tokens, so text keeps every character. The model starts inside ``<think>``, which the prompt has
opened (or closed, for a model that is not to think), and just goes on behind results. Source: the chat templates of
deepseek-ai/DeepSeek-V3.1 and DeepSeek-R1-0528.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import regex

from isogloss.dialects._enclosing import enclose
from isogloss.dialects._lexicon import Found, spell
from isogloss.dialects._markers import REFUSALS, THINK, Markers
from isogloss.dialects._named_json import NamedJsonScanner, tail, write_arguments
from isogloss.dialects._told import paragraphs
from isogloss.dialects._turn import arguments
from isogloss.dialects._turns import TurnsDialect, said
from isogloss.errors import UnrepresentableError
from isogloss.grammar import Literal, Marker, Repeat, Term, choice, sequence
from isogloss.messages import AssistantMessage, Tool, ToolCall, ToolMessage
from isogloss.prompt import PromptWriter


def _token(*words: str) -> tuple[str, ...]:
    """A token, and how those that copy it by hand write it."""
    return (
        f"<｜{'▁'.join(words)}｜>",
        f"<|{'▁'.join(words)}|>",
        f"<｜{'_'.join(words)}｜>",
        f"<|{'_'.join(words)}|>",
    )


TOKENS = {
    "call": _token("tool", "calls", "begin"),
    "section_end": _token("tool", "calls", "end"),
    "bare_call": _token("tool", "call", "begin"),
    "separator": _token("tool", "sep"),
    "call_close": _token("tool", "call", "end"),
    "result": (*_token("tool", "output", "begin"), *_token("tool", "outputs", "begin")),
    "result_close": (*_token("tool", "output", "end"), *_token("tool", "outputs", "end")),
    "turn_end": (*_token("end", "of", "sentence"), "<｜User｜>", "<｜Assistant｜>"),
    "beginning": _token("begin", "of", "sentence"),
}
MARKERS = Markers(
    {**TOKENS, **THINK, **REFUSALS},
    special=(*(marker for kind in TOKENS.values() for marker in kind if "｜" in marker and "_" not in marker),),
)

RESULT_CLOSE = MARKERS["result_close"]

_NAME = r"[^\s<{`\ud800-\ud880](?:[^<{`\n\ud800-\ud880]{0,254}[^\s<{`\ud800-\ud880])?"
_is_name = regex.compile(_NAME).fullmatch
_FENCE = r"```[A-Za-z]{0,16}+\s{0,64}+(?=[^A-Za-z\s])"


@lru_cache(maxsize=16)
def _header(separators: tuple[str, ...]) -> Any:
    """What stands in front of the arguments: the name, or the word ``function`` and the name."""
    separator = rf"\s{{0,64}}+(?:{'|'.join(map(regex.escape, separators))})\s{{0,64}}+"
    begins = rf"(?:(?P<fence>{_FENCE})|(?=[{{\[\"'<\ud800-\ud880]))"
    return regex.compile(
        rf"\s{{0,64}}+(?:(?:function|tool){separator}(?P<typed>(?![\[\"']){_NAME})\s{{0,64}}+"
        rf"(?:(?P<its_fence>{_FENCE})|(?=\{{))"
        rf"|(?P<name>{_NAME}){separator}{begins})"
    ).match


class DeepSeekScanner(NamedJsonScanner):
    """Scans one turn."""

    def __init__(self, tools: Iterable[Tool], starts_in: str, control: frozenset[str]) -> None:
        prose = MARKERS.prose(control, extra=("bare_call", "section_end", "result_close"), trims=())
        self.text_prose, self.reasoning_prose, self.refusal_prose, self.results = prose
        self.faults = MARKERS.lexicon(("call_close", "call", "bare_call", "section_end", "turn_end"), control)
        self.ends = MARKERS.lexicon(("call_close", "bare_call", "section_end"), control)
        self.tail = tail(*(spell(marker, control) for marker in MARKERS.kinds["call_close"]))
        self.header = _header(tuple(spell(marker, control) for marker in MARKERS.kinds["separator"]))
        super().__init__(tools, starts_in)
        self._in_section = False

    def _on_call(self, found: Found) -> None:
        self._in_section = self._trim = True

    def _on_section_end(self, found: Found) -> None:
        self._in_section = False

    def _on_result_close(self, found: Found) -> None:
        """The end of a result that was reported: markup that says nothing."""

    def _on_bare_call(self, found: Found) -> None:
        self._open_call(found)

    def _header_read(self, match: regex.Match[str]) -> None:
        is_fenced = bool(match["fence"] or match["its_fence"])
        self._named(match["typed"] or match["name"], "", self._pos, is_fenced=is_fenced)

    def _call_closed(self) -> bool:
        self._enter(self.text_prose)
        self._trim = self._in_section
        return True


class DeepSeek(TurnsDialect):
    """JSON behind a name, between control tokens."""

    name = "deepseek"
    title = "DeepSeek V3, R1, V3.1"
    markers = MARKERS
    model_ids = r"deepseek(?!.*v-?(?:3\.2(?!.*exp)|[4-9]))"
    templates = r"<｜tool▁calls▁begin｜>"

    def write_opening(self, writer: PromptWriter, system: str, told: str) -> None:
        writer.marker("<｜begin▁of▁sentence｜>")
        writer.text(paragraphs(system, told))

    def write_user(self, writer: PromptWriter, text: str) -> None:
        writer.marker("<｜User｜>")
        writer.text(text)

    def write_assistant(
        self, writer: PromptWriter, message: AssistantMessage, reasoning: str | None, tools: Sequence[Tool]
    ) -> None:
        goes_on = writer.ends_with(RESULT_CLOSE)
        if not goes_on:
            writer.marker("<｜Assistant｜>")
        writer.is_assistant = True
        if reasoning or (reasoning is not None and not goes_on):
            self.write_reasoning(writer, reasoning)
        elif not goes_on:
            writer.marker("</think>")
        writer.text(said(message))
        if message.tool_calls:
            self.write_calls(writer, message.tool_calls, tools)
        writer.marker("<｜end▁of▁sentence｜>")
        writer.is_assistant = False

    def write_results_turn(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        self.write_results(writer, results)

    def write_generation_prompt(self, writer: PromptWriter, *, thinks: bool) -> None:
        if not writer.ends_with(RESULT_CLOSE):  # behind results the model just goes on
            writer.marker("<｜Assistant｜>")
            writer.marker("<think>" if thinks else "</think>")

    def write_calls(self, writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
        writer.marker("<｜tool▁calls▁begin｜>")
        for call in calls:
            if _is_name(call.name) is None:
                raise UnrepresentableError(f"No header of a call can carry the name {call.name!r}")
            writer.marker("<｜tool▁call▁begin｜>")
            writer.text(call.name)
            writer.marker("<｜tool▁sep｜>")
            writer.text(write_arguments(call.arguments))
            writer.marker("<｜tool▁call▁end｜>")
        writer.marker("<｜tool▁calls▁end｜>")

    def write_results(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        for result in results:
            enclose(writer, MARKERS, "result", result.text)

    def write_reasoning(self, writer: PromptWriter, text: str) -> None:
        enclose(writer, MARKERS, "think", text)

    def call_grammar(self, tools: Sequence[Tool], parallel: bool) -> Term:
        begin, separator, end = (Marker(MARKERS[kind]) for kind in ("bare_call", "separator", "call_close"))
        call = choice(*[sequence(begin, Literal(tool.name), separator, arguments(tool), end) for tool in tools])
        return sequence(call, Repeat(call) if parallel else sequence(), Marker(MARKERS["section_end"]))

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> DeepSeekScanner:
        return DeepSeekScanner(tools, starts_in, control)
