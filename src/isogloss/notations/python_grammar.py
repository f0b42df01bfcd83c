"""The grammar of a call's arguments as Python writes them."""

from __future__ import annotations

from typing import Any, ClassVar

from isogloss.grammar import JsonValue, Literal, Regex, Term, choice, optional, sequence
from isogloss.notations.markup_grammar import sure_string
from isogloss.notations.nested_grammar import NestedGrammar, are_sayable, of_objects
from isogloss.notations.python import PYTHON_WORDS, is_keyword, write
from isogloss.schema.argument_cases import ArgumentCase, argument_cases
from isogloss.schema.keywords import assertions
from isogloss.schema.view import SchemaView

_BLANK = optional(Literal(" "))
_CHARACTER = r"""[^%s\\\x00-\x1f]|\\["'\\bfnrt]|\\u(?:[0-9abcef][0-9a-f]{3}|d[0-7][0-9a-f]{2})"""
"""A character within quotes, escaped where it has to be."""
_LONGEST = 1_000
"""Bounds on length above this are not counted by the grammar."""


class PythonGrammar(NestedGrammar):
    """Values with strings in ``quote`` or JSON's double quotes, the three words as ``words`` has them."""

    comma: ClassVar[Term] = sequence(Literal(","), _BLANK)

    def __init__(self, quote: str = '"', words: dict[bool | None, str] = PYTHON_WORDS) -> None:
        super().__init__()
        self._quote = quote
        self._words = words

    def string(self, view: SchemaView | None) -> Term:
        if view is not None and not _is_counted(view):
            return self._in_json(view)
        shortest, longest = _lengths(view)
        times = "*" if not shortest and longest is None else f"{{{shortest},{'' if longest is None else longest}}}"
        return choice(
            *[Regex(f"{quote}(?:{_CHARACTER % quote}){times}{quote}") for quote in dict.fromkeys((self._quote, '"'))]
        )

    def _in_json(self, view: SchemaView) -> Term:
        """A string in JSON's quotes. In others it has no escapes: no pattern says how it looks with them."""
        in_json = JsonValue(view.standalone())
        if self._quote == '"':
            return in_json
        end = Literal(self._quote)
        bare = sure_string(view, end, Literal("\\"), Literal("\n"))
        return in_json if bare is None else choice(sequence(end, bare), in_json)

    def written(self, value: Any) -> Term:
        return Literal(write(value, self._quote, self._words))

    def key(self, key: str) -> Term:
        return sequence(Literal(f"{write(key, self._quote)}:"), _BLANK)

    def any_key(self) -> Term:
        return sequence(self.string(None), Literal(":"), _BLANK)

    def words(self, types: frozenset[str]) -> list[Term]:
        words = [value for value in (True, False) if "boolean" in types]
        return [Literal(self._words[word]) for word in (*words, *([None] if "null" in types else []))]

    def call(self, schema: object) -> Term:
        """The arguments of a call and its closing parenthesis."""
        cases = argument_cases(schema)
        if not are_sayable(cases):
            return sequence(Literal("**"), JsonValue(of_objects(schema)), Literal(")"))
        return sequence(choice(*[self._of_call(case) for case in cases]), Literal(")"))

    def _of_call(self, case: ArgumentCase) -> Term:
        if case.arguments:
            return self.listed(case, self._argument)
        if case.others is None:
            return sequence()
        return self.separated_any(sequence(Regex("[A-Za-z_][A-Za-z0-9_]{0,63}="), self.value(case.others)))

    def _argument(self, key: str, view: SchemaView) -> Term:
        if is_keyword(key):
            return sequence(Literal(f"{key}="), self.value(view))
        return sequence(Literal(f"**{{{write(key, self._quote)}: "), self.value(view), Literal("}"))


def _is_counted(view: SchemaView) -> bool:
    """Whether strings are bound by nothing but a length that the grammar counts."""
    if not assertions(view) <= {"type", "minLength", "maxLength"}:
        return False
    return all(part.get(keyword, 0) <= _LONGEST for part in view.parts for keyword in ("minLength", "maxLength"))


def _lengths(view: SchemaView | None) -> tuple[int, int | None]:
    """The bounds on a string's length."""
    parts = () if view is None else view.parts
    shortest = max([int(part["minLength"]) for part in parts if "minLength" in part], default=0)
    return shortest, min([int(part["maxLength"]) for part in parts if "maxLength" in part], default=None)
