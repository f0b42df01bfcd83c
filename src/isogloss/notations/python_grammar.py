"""The grammar of a call's arguments as Python writes them."""

from __future__ import annotations

from typing import Any, ClassVar

from isogloss.constraints.raw_value import raw_value
from isogloss.grammar import FreeText, JsonValue, Literal, Regex, Term, choice, optional, sequence
from isogloss.notations.nested_grammar import NestedGrammar
from isogloss.notations.python import PYTHON_WORDS, is_keyword, write
from isogloss.schema.view import SchemaView

_BLANK = optional(Literal(" "))
_SINGLE_QUOTED = Regex(r"""'(?:[^'\\\x00-\x1f]|\\["'\\bfnrt]|\\u[0-9a-f]{4})*'""")


class PythonGrammar(NestedGrammar):
    """Values with strings in ``quote`` or JSON's double quotes, the three words as ``words`` has them."""

    comma: ClassVar[Term] = sequence(Literal(","), _BLANK)

    def __init__(self, quote: str = '"', words: dict[bool | None, str] = PYTHON_WORDS) -> None:
        super().__init__()
        self._quote = quote
        self._words = words

    def string(self, view: SchemaView | None) -> Term:
        quoted = JsonValue({"type": "string"} if view is None else view.standalone())
        if self._quote == '"':
            return quoted
        end = Literal(self._quote)
        text = raw_value(view, end, Literal("\\"), Literal("\n"))
        if isinstance(text, FreeText) and text.pattern is None and text.max_length is None:
            return choice(_SINGLE_QUOTED, quoted)
        return choice(sequence(end, text), quoted)

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
