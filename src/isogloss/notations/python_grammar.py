"""The grammar of a call's arguments as Python writes them."""

from __future__ import annotations

from typing import Any, ClassVar

from isogloss.grammar import JsonValue, Literal, Regex, Term, choice, optional, sequence
from isogloss.notations.markup_grammar import raw_value
from isogloss.notations.nested_grammar import NestedGrammar
from isogloss.notations.python import PYTHON_WORDS, is_keyword, write
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
        shortest, longest = _lengths(view)
        if view is not None and any("pattern" in part or "format" in part for part in view.parts):
            # What needs escapes is left out: no pattern says how it looks with them.
            end = Literal(self._quote)
            return sequence(end, raw_value(view, end, Literal("\\"), Literal("\n")))
        times = "*" if not shortest and longest is None else f"{{{shortest},{'' if longest is None else longest}}}"
        return choice(
            *[Regex(f"{quote}(?:{_CHARACTER % quote}){times}{quote}") for quote in dict.fromkeys((self._quote, '"'))]
        )

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
        view = SchemaView(schema)
        view = view.view_of({"allOf": [schema, {"type": "object"}]})
        return sequence(self._arguments(view), Literal(")"))

    def _arguments(self, view: SchemaView) -> Term:
        if view.unions or not self.is_plain(view):
            return sequence(Literal("**"), JsonValue(view.standalone()))
        if view.properties:
            return self.separated([(self._argument(k, v), k in view.required) for k, v in view.properties.items()])
        if view.is_closed:
            return sequence()
        return self.separated_any(sequence(Regex("[A-Za-z_][A-Za-z0-9_]{0,63}="), self.value(view.additional)))

    def _argument(self, key: str, view: SchemaView) -> Term:
        if is_keyword(key):
            return sequence(Literal(f"{key}="), self.value(view))
        return sequence(Literal(f"**{{{write(key, self._quote)}: "), self.value(view), Literal("}"))


def _lengths(view: SchemaView | None) -> tuple[int, int | None]:
    """The bounds on a string's length."""
    parts = () if view is None else view.parts
    shortest = max([int(part["minLength"]) for part in parts if "minLength" in part], default=0)
    longest = min([int(part["maxLength"]) for part in parts if "maxLength" in part], default=_LONGEST + 1)
    return min(shortest, _LONGEST), longest if longest <= _LONGEST else None
