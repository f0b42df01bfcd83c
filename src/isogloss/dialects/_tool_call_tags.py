"""What the Qwen line writes between ``<tool_call>`` tags: a JSON object up to Qwen3, functions from Qwen3-Coder on.

Models of either line write the other's form now and then, and forget the tags around a function, so one scanner reads
it all.
"""

from __future__ import annotations

from collections.abc import Iterable

from isogloss._compiled import mypyc_attr
from isogloss.dialects._function_calls import PATTERNS, FunctionCallScanner
from isogloss.dialects._lexicon import Found
from isogloss.dialects._markers import Markers
from isogloss.messages import Tool


@mypyc_attr(allow_interpreted_subclasses=True)
class ToolCallTagScanner(FunctionCallScanner):
    """Scans one turn with calls of both forms."""

    def __init__(self, markers: Markers, tools: Iterable[Tool], starts_in: str, control: frozenset[str]) -> None:
        prose = markers.prose(control, extra=tuple(PATTERNS), trims=TRIMS)
        self.text_prose, self.reasoning_prose, self.refusal_prose, self.results = prose
        self.faults = markers.lexicon(("call_close", "call", "turn_end"), control)
        self.tails = markers.lexicon(("call_close",), control)
        self.functions = markers.lexicon(("function",), control)
        self._set_function_lexicons(markers, control)
        super().__init__(tools, starts_in)

    def _body(self) -> bool:
        if self._next_char() != "<":
            return super()._body()
        match = self.functions.match(self._text, self._pos)
        if match is not None and match.partial:
            return False
        if match is None:
            self._fault("'<' where a JSON object or a function was expected")
        else:
            start = self._pos
            self._pos = match.end()
            self._on_function(Found("function", start, match.end(), match))
        return True


TRIMS = ("call", "call_close", "think", "result", "refusal", "function", "function_close")
