"""gemini: Python in code fences (hosted Gemini; Gemma 3 by prompt).

    turn      = [ "```thinking⏎" text "⏎```" ] { text | block } "<end_of_turn>"
    block     = "```tool_code⏎" { statement } "⏎```"
    statement = call | "[" call { "," call } "]" | name "=" call | "print(" call ")"
    call      = "default_api." name "(" [ argument { "," argument } ] ")"
    argument  = key "=" literal | "**{" string ":" literal "}" | literal
    result    = "```tool_outputs⏎" text "⏎```"       in a user turn

Sample::

    ```tool_code
    default_api.get_weather(city="Paris", days=2)
    ```

The first line of a fence makes it one: any other fence is text. Literals are Python's, strings may hold fences. The
format is not documented; it is what Gemini shows when its own calls fail, and what Google's guide to Gemma 3 proposes.
The turns are Gemma's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from isogloss.dialects._code_marks import CodeMarks
from isogloss.dialects._lexicon import Found, Lexicon
from isogloss.dialects._markers import REFUSALS, Markers
from isogloss.dialects._python_calls import PythonCallScanner, one_call_grammar, write_call
from isogloss.dialects._role_turns import RoleTurnsDialect
from isogloss.dialects._scanner import Prose
from isogloss.dialects._told import paragraphs
from isogloss.events import Event, ReasoningDelta, RefusalDelta, TextDelta
from isogloss.grammar import Literal, Repeat, Term, choice, sequence
from isogloss.messages import Tool, ToolCall, ToolMessage
from isogloss.notations.python_grammar import PythonGrammar
from isogloss.prompt import PromptWriter

FENCE = "```"
MODULE = "default_api."
MARKERS = Markers(
    {
        "call": "```tool_code\n",
        "think": "```thinking\n",
        "think_close": FENCE,
        "result": "```tool_outputs\n",
        "turn_end": ("<end_of_turn>", "<start_of_turn>", "<eos>"),
        "turn": "<start_of_turn>",
        "beginning": "<bos>",
        **REFUSALS,
    },
    special=("<start_of_turn>", "<end_of_turn>", "<bos>", "<eos>"),
    patterns={
        "call": r"```tool_code[ \t\r]{1,8}\n",
        "think": r"```thinking[ \t\r]{1,8}\n",
        "result": r"```tool_outputs?[ \t\r]{0,8}\n",
    },
    first=("``",),
)


LANGUAGE = r"[\w+#.\-]{1,32}+[ \t]{0,8}+"
"""What a code fence names behind its backticks."""
NOT_NESTED = rf"[^\w+#.\-]|{LANGUAGE}[^\n]"
NOT_NESTED_AT_THE_END = rf"{NOT_NESTED}|(?:{LANGUAGE})?\Z"


class GeminiScanner(PythonCallScanner):
    """Scans one turn."""

    wrappers: ClassVar[frozenset[str]] = frozenset({"print"})

    def __init__(self, tools: Iterable[Tool], starts_in: str, control: frozenset[str]) -> None:
        kinds = ("call", "think", "result", "refusal", "turn_end")
        ends = {"turn_end": MARKERS.kinds["turn_end"]}
        self.text_prose = Prose(TextDelta, MARKERS.lexicon(kinds, control), ("call", "think", "result", "refusal"))
        self.reasoning_prose = _reasoning(ends, control, NOT_NESTED)
        self._last_reasoning = _reasoning(ends, control, NOT_NESTED_AT_THE_END)
        self.nested_prose = Prose(ReasoningDelta, Lexicon({**ends, "nested_close": FENCE}, control))
        self.refusal_prose = Prose(RefusalDelta, MARKERS.lexicon(("refusal_close", "turn_end"), control))
        self.results = Lexicon({**ends, "fence_close": FENCE}, control)
        super().__init__({**ends, "call_close": FENCE}, tools, starts_in, control)

    def tool_name(self, name: str) -> str:
        """Without the module, and without any other that the tools know nothing of."""
        bare = name.removeprefix(MODULE)
        return name.partition(".")[2] if bare == name and self._is_of_a_module(name) else bare

    def _is_of_a_module(self, name: str) -> bool:
        return name not in self.tools and name.partition(".")[2] in self.tools

    def _block_ended(self) -> None:
        super()._block_ended()
        self._state = self._behind_block

    def _behind_block(self) -> bool:
        """A fence that seems to end a block may open the next."""
        opener = MARKERS["call"].removeprefix(FENCE)
        following = self._text[self._pos : self._pos + len(opener)]
        if not self._final and following != opener and opener.startswith(following):
            return False
        if following == opener:
            self._open(self._pos)
            self._pos += len(opener)
            self._block(is_bare=False)
        else:
            self._enter(self.text_prose)
        return True

    # -- fences within reasoning

    def finish(self, reason: str = "stop") -> list[Event]:
        if self._mode is self.reasoning_prose:
            self._mode = self._last_reasoning
        return super().finish(reason)

    def _is_mention(self, found: Found) -> bool:
        if self._mode not in (self.reasoning_prose, self.nested_prose, self._last_reasoning):
            return super()._is_mention(found)
        before = self._text[found.start - 1] if found.start > self._pos else self._previous[-1:]
        return found.kind != "turn_end" and before not in ("", "\n")

    def _is_shown_in_fence(self, found: Found, code: CodeMarks) -> bool:
        """The markers are fences themselves: only a longer one holds them."""
        return code.fence > len(FENCE) and super()._is_shown_in_fence(found, code)

    def _on_nested(self, found: Found) -> None:
        self._emit_prose(self._text[found.start : found.end], found.end)
        self._mode = self.nested_prose

    def _on_nested_close(self, found: Found) -> None:
        self._emit_prose(self._text[found.start : found.end], found.end)
        self._mode = self.reasoning_prose


def _reasoning(ends: Mapping[str, tuple[str, ...]], control: frozenset[str], not_nested: str) -> Prose:
    """Running reasoning: a fence with a language opens a nested one, any other ends it."""
    fences = {"nested": rf"```{LANGUAGE}(?=\n)", "think_close": rf"```(?={not_nested})"}
    return Prose(ReasoningDelta, Lexicon(ends, control, patterns=fences, first=("``",)), ("think_close",))


class Gemini(RoleTurnsDialect):
    """Python in code fences."""

    name = "gemini"
    title = "Gemini, hosted; Gemma 3 by prompt"
    markers = MARKERS
    model_ids = r"gemini|gemma-?[123](?!\d)"
    templates = r"\A(?![\s\S]*(?:<start_function_call>|\[func_name1\())[\s\S]*<start_of_turn>"
    assistant_role: ClassVar[str] = "model"
    results_role: ClassVar[str] = "user"
    one_result_a_turn: ClassVar[bool] = False
    behind_turn: ClassVar[str] = "\n"

    def write_opening(self, writer: PromptWriter, system: str, told: str) -> None:
        writer.marker("<bos>")
        opening = paragraphs(system, told)
        if opening:
            self.write_user(writer, opening)

    def write_calls(self, writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
        written = ", ".join([write_call(call, MODULE + call.name) for call in calls])
        writer.marker("```tool_code\n")
        # Readers that look for the fence before they look at strings must not find one inside.
        written = written.replace(FENCE, "``\\x60")
        writer.text(f"[{written}]\n" if len(calls) > 1 else f"{written}\n")
        writer.marker(FENCE)

    def write_results(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        for position, result in enumerate(results):
            writer.text("\n" if position else "")
            writer.marker("```tool_outputs\n")
            writer.text(f"{result.text}\n")
            writer.marker(FENCE)

    def write_reasoning(self, writer: PromptWriter, text: str) -> None:
        writer.marker("```thinking\n")
        writer.text(f"{text}\n")
        writer.marker(FENCE)
        writer.text("\n")

    def call_grammar(self, tools: Sequence[Tool], parallel: bool) -> Term:
        grammar = PythonGrammar()
        call = one_call_grammar(tools, grammar, MODULE)
        several = sequence(Literal("["), call, Repeat(sequence(grammar.comma, call)), Literal("]"))
        return sequence(choice(call, several) if parallel else call, Literal("\n"), Literal(FENCE))

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> GeminiScanner:
        return GeminiScanner(tools, starts_in, control)
