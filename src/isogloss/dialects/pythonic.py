"""pythonic: a bare list of Python calls (Llama 4, the small ones of Llama 3.2, ToolACE).

    turn      = list | { text | list }  "<|eot|>"
    list      = "[" call { "," call } "]"                        at the start of the turn or of a line
    call      = name "(" [ key "=" literal { "," key "=" literal } ] ")"
    result    = string of JSON                                   in a turn of role ipython

Sample::

    [get_weather(city="Paris", days=2), now()]

Models wrap the list into ``<|python_start|>`` and ``<|python_end|>`` now and then. What looks like the beginning of a
list is one only if it names a tool (with no tools given: any name). Source: vLLM's template for Llama 4 and Meta's
guides to Llama 3.2 and 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from isogloss.dialects._lexicon import Found
from isogloss.dialects._llama_turns import LlamaTurnsDialect
from isogloss.dialects._markers import REFUSALS, THINK, Markers
from isogloss.dialects._python_calls import NAME, PythonCallScanner, call_grammar, write_call
from isogloss.grammar import Literal, Term, sequence
from isogloss.messages import Tool, ToolCall
from isogloss.notations.python_grammar import PythonGrammar
from isogloss.prompt import PromptWriter

TURN, TURN_NAMED = "<|header_start|>", "<|header_end|>"
ENDS = ("<|eot|>", "<|eom|>", TURN, "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>")
MARKERS = Markers(
    {
        "call": "<|python_start|>",
        "call_close": "<|python_end|>",
        "turn_end": ENDS,
        "turn": TURN,
        "turn_named": TURN_NAMED,
        "beginning": "<|begin_of_text|>",
        **THINK,
        **REFUSALS,
    },
    special=(*ENDS, TURN_NAMED, "<|begin_of_text|>", "<|python_start|>", "<|python_end|>"),
    patterns={"list": rf"\[\s{{0,8}}+(?P<name>{NAME})\s?\((?=\s{{0,16}}+[)\w\"'*\[{{(\-.])"},
    first=("<", "["),
)


class PythonicScanner(PythonCallScanner):
    """Scans one turn."""

    def __init__(self, tools: Iterable[Tool], starts_in: str, control: frozenset[str]) -> None:
        trims = ("call", "call_close", "think", "result", "refusal", "list")
        prose = MARKERS.prose(control, extra=("list",), trims=trims)
        self.text_prose, self.reasoning_prose, self.refusal_prose, self.results = prose
        ends = {kind: MARKERS.kinds[kind] for kind in ("call_close", "call", "turn_end")}
        super().__init__(ends, tools, starts_in, control)

    def _is_mention(self, found: Found) -> bool:
        if found.kind != "list":
            return super()._is_mention(found)
        is_unknown = bool(self.tools) and found.match["name"] not in self.tools
        return is_unknown or not self._begins_line(found.start) or super()._is_mention(found)

    def _on_list(self, found: Found) -> None:
        self._open(found.start)
        self._block(is_bare=True)
        self._pos = found.start


class Pythonic(LlamaTurnsDialect):
    """A bare list of Python calls."""

    name = "pythonic"
    title = "Llama 4, Llama 3.2 (small), ToolACE"
    markers = MARKERS
    model_ids = r"llama-?4|toolace|llama-?3\.2-?(?:1b|3b)"
    templates = r"\[func_name1\(|<\|python_start\|>"
    bare_call: ClassVar[str] = "["

    def write_calls(self, writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
        written = f"[{', '.join([write_call(call, call.name) for call in calls])}]"
        if tools and calls[0].name not in {tool.name for tool in tools}:  # it would not be taken for a list
            writer.marker("<|python_start|>")
            writer.text(written)
            writer.marker("<|python_end|>")
        else:
            writer.text(written)

    def call_grammar(self, tools: Sequence[Tool], parallel: bool) -> Term:
        return sequence(call_grammar(tools, parallel, PythonGrammar()), Literal("]"))

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> PythonicScanner:
        return PythonicScanner(tools, starts_in, control)
