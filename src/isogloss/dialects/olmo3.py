"""olmo3: Python calls between tags, one a line (OLMo 3).

    turn      = [ "<think>" text "</think>" ] { text | block } "<|im_end|>"
    block     = "<function_calls>" call { "⏎" call } "</function_calls>"
    call      = name "(" [ key "=" literal { "," key "=" literal } ] ")"
    literal   = Python's, but JSON's true, false and null; strings in single quotes
    result    = text                                        in a turn of role environment

Sample::

    <function_calls>
    get_weather(city='Paris', days=2)
    now()
    </function_calls>

Source: vLLM's template for OLMo 3 and open-instruct's notes on the models' settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from isogloss.dialects._chatml import TURN, TURN_END, ChatMLDialect
from isogloss.dialects._markers import REFUSALS, THINK, Markers
from isogloss.dialects._python_calls import PythonCallScanner, call_grammar, write_call
from isogloss.dialects._turn import GAP
from isogloss.grammar import Literal, Marker, Term, sequence
from isogloss.messages import Tool, ToolCall
from isogloss.notations.python import JSON_WORDS
from isogloss.notations.python_grammar import PythonGrammar
from isogloss.prompt import PromptWriter

MARKERS = Markers(
    {
        "call": "<function_calls>",
        "call_close": "</function_calls>",
        "turn_end": (TURN_END, TURN, "<|endoftext|>"),
        **THINK,
        **REFUSALS,
    },
    special=(TURN, TURN_END, "<|endoftext|>"),
)


class Olmo3Scanner(PythonCallScanner):
    """Scans one turn."""

    def __init__(self, tools: Iterable[Tool], starts_in: str, control: frozenset[str]) -> None:
        self.text_prose, self.reasoning_prose, self.refusal_prose, self.results = MARKERS.prose(control)
        ends = {kind: MARKERS.kinds[kind] for kind in ("call_close", "call", "turn_end")}
        super().__init__(ends, tools, starts_in, control)


class Olmo3(ChatMLDialect):
    """Python calls between tags, one a line."""

    name = "olmo3"
    title = "OLMo 3"
    markers = MARKERS
    model_ids = r"olmo-?3"
    templates = r"pythonic[\s\S]*<function_calls>|<function_calls>[\s\S]*environment"
    one_result_a_turn: ClassVar[bool] = True
    results_role: ClassVar[str] = "environment"

    def write_calls(self, writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
        written = "\n".join([write_call(call, call.name, "'", JSON_WORDS) for call in calls])
        writer.marker("<function_calls>")
        # Readers that look for the closer before they look at strings must not find one inside.
        writer.text("\n" + written.replace("</function_calls", "\\x3c/function_calls") + "\n")
        writer.marker("</function_calls>")

    def call_grammar(self, tools: Sequence[Tool], parallel: bool) -> Term:
        calls = call_grammar(tools, parallel, PythonGrammar("'", JSON_WORDS), Literal("\n"))
        return sequence(GAP, calls, GAP, Marker("</function_calls>"))

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> Olmo3Scanner:
        return Olmo3Scanner(tools, starts_in, control)
