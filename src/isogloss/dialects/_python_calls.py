"""Calls written as Python: one or a list of them, with assignments, wrappers and comments around them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final

import regex

from isogloss._compiled import mypyc_attr
from isogloss.dialects._lexicon import Found, Lexicon
from isogloss.dialects._scanner import StreamScanner
from isogloss.errors import UnrepresentableError
from isogloss.grammar import Literal, Repeat, Term, choice, sequence
from isogloss.messages import Tool, ToolCall
from isogloss.notations.python import PYTHON_WORDS, ArgumentsReader, write_arguments
from isogloss.notations.python_grammar import PythonGrammar
from isogloss.notations.runs import run
from isogloss.schema.view import shared_view

NO_CALL: Final = "a block without a call"
NOT_A_CALL: Final = "Python that is not a call"

NAME = r"[^\W\d](?:\w|[.\-:/](?=\w)){0,255}+"
"""A function's name, dots and hyphens included, as tools have them."""

_is_name = regex.compile(NAME).fullmatch
_statement = regex.compile(
    rf"(?:await\s{{1,8}}+)?(?P<name>{NAME})\s{{0,16}}+(?:(?P<call>\()|(?P<target>=(?=[^=])))"
).match
_SPACE = run(r"[\s\ufeff]*")


@mypyc_attr(allow_interpreted_subclasses=True)
class PythonCallScanner(StreamScanner):
    """Scans blocks of calls: ``call`` opens one and ``call_close`` ends it, or it is one bare list.

    A call is whole with its closing parenthesis, so that a missing closer does no harm.
    """

    wrappers: ClassVar[frozenset[str]] = frozenset()
    """Functions of Python that a call may be an argument of."""

    def __init__(
        self,
        ends: Mapping[str, str | tuple[str, ...]],
        tools: Iterable[Tool],
        starts_in: str,
        control: frozenset[str],
    ) -> None:
        """``ends`` are the kinds that end a block: ``call_close`` and what else cannot be in one."""
        self._ends = Lexicon(ends, control)
        self._lines = Lexicon({"line": "\n", **ends}, control)
        super().__init__(tools, starts_in)
        self._brackets: list[str] = []
        self._is_bare = False

    def tool_name(self, name: str) -> str:
        """The tool that a function stands for."""
        return name

    def _on_call(self, found: Found) -> None:
        self._open(found.start)
        self._block(is_bare=False)

    def _on_call_close(self, found: Found) -> None:
        """A closer without an opener: markup that says nothing."""
        self._enter(self.text_prose)

    def _block(self, *, is_bare: bool) -> None:
        self._is_bare = is_bare
        self._brackets.clear()
        self._state = self._between

    # -- between calls

    def _between(self) -> bool:
        text = self._text
        pos = self._pos = _SPACE(text, self._pos).end()
        if pos == len(text):
            return False
        char = text[pos]
        if char == "#":
            self._state = self._comment
        elif char in "[(,;":
            self._pos += 1
            if char in "[(":
                self._brackets.append(char)
        elif char in "])" and self._brackets and self._brackets[-1] + char in ("[]", "()"):
            self._pos += 1
            self._brackets.pop()
            if self._is_bare and not self._brackets:
                self._block_ended()
        else:
            return self._end_or_statement(pos)
        return True

    def _comment(self) -> bool:
        end = self._text.find("\n", self._pos)
        self._pos = len(self._text) if end < 0 else end
        if end >= 0:
            self._state = self._between
        return end >= 0

    def _end_or_statement(self, pos: int) -> bool:
        end = self._ends.match(self._text, pos)
        if end is not None and end.partial and not self._final:
            return False
        if end is not None and not end.partial:
            self._pos = end.end() if end.lastgroup == "call_close" else pos
            self._block_ended()
            return True
        if self._raw is None:
            self._open(pos)
        match = _statement(self._text, pos, partial=True)
        if match is not None and match.partial:
            return False
        if match is None:
            self._state = self._junk
            return True
        self._pos = match.end()
        name = match["name"]
        if match["call"] is None:
            return True  # the target of an assignment
        if name in self.wrappers and name not in self.tools:
            self._brackets.append("(")
        else:
            self._begin(self.tool_name(name))
        return True

    def _block_ended(self) -> None:
        if self._raw is not None:
            self._malformed(NO_CALL, self._pos)
        self._enter(self.text_prose)

    def _junk(self) -> bool:
        """What is no call, up to the end of its line or the block."""
        found = self._lines.find(self._text, self._pos, self._final)
        if isinstance(found, int):
            self._pos = found
            return False
        self._pos = found.start
        self._malformed(NOT_A_CALL, found.start)
        if self._is_bare:
            self._enter(self.text_prose)
        else:
            self._block(is_bare=False)
        return True

    # -- calls

    def _begin(self, name: str) -> None:
        tool = self.tools.get(name)
        self._start(name, "", self._pos)
        self._reader = ArgumentsReader(() if tool is None else list(shared_view(tool.parameters).properties))
        self._state = self._arguments

    def _arguments(self) -> bool:
        reader = self._reader
        self._pos, fragment = reader.read(self._text, self._pos)
        if fragment:
            self._delta(fragment, reader.settled)
        if reader.done:
            self._end(self._pos)
            self._state = self._between
            return True
        if reader.fault:
            self._discard(reader.fault, self._lines if self._is_bare else self._ends)
            return True
        return False


def write_call(call: ToolCall, name: str, quote: str = '"', words: Mapping[bool | None, str] = PYTHON_WORDS) -> str:
    """A call of ``name`` with the arguments of ``call``. Raises `UnrepresentableError` for what is no name."""
    return f"{_opening(name)}{write_arguments(call.arguments, quote, words)})"


def call_grammar(tools: Sequence[Tool], parallel: bool, grammar: PythonGrammar, between: Term | None = None) -> Term:
    """One call, or several with commas (or ``between``) between them. Raises as `one_call_grammar` does."""
    call = one_call_grammar(tools, grammar)
    return sequence(call, Repeat(sequence(between or grammar.comma, call))) if parallel else call


def one_call_grammar(tools: Sequence[Tool], grammar: PythonGrammar, module: str = "") -> Term:
    """A call of one of the tools, of that module. Raises `UnrepresentableError` for a name that is none in Python."""
    return choice(*[sequence(Literal(_opening(module + tool.name)), grammar.call(tool.parameters)) for tool in tools])


def _opening(name: str) -> str:
    if _is_name(name) is None:
        raise UnrepresentableError(f"No Python function can stand for the name {name!r}")
    return f"{name}("
