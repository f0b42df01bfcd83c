"""The grammar of values in the Gemma family's notation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isogloss.grammar import FreeText, JsonValue, Literal, Marker, Regex, Term, choice, is_loose, sequence
from isogloss.notations.gemma import Delimiters, write
from isogloss.notations.markup_grammar import raw_value, sure_string
from isogloss.notations.nested_grammar import NestedGrammar
from isogloss.schema.view import SchemaView


class GemmaGrammar(NestedGrammar):
    """Values whose strings stand between the delimiters; ``call`` is what no string may hold."""

    def __init__(self, delimiters: Delimiters, call: str) -> None:
        super().__init__()
        self._delimiters = delimiters
        self._quote = Marker(delimiters.quote)
        self._call = Marker(call)

    def string(self, view: SchemaView | None) -> Term:
        raw = raw_value(view, self._quote, self._call)
        if view is None or not is_loose(raw):
            return sequence(self._quote, raw)
        in_json = JsonValue(view.standalone())
        sure = sure_string(view, self._quote, self._call)
        return in_json if sure is None else choice(sequence(self._quote, sure), in_json)

    def written(self, value: Any) -> Term:
        return self._delimited(write(value, None, self._delimiters))

    def key(self, key: str) -> Term:
        first, *others = write({key: 0}, None, self._delimiters)
        texts = [first.removeprefix("{"), *others]
        return self._delimited([*texts[:-1], texts[-1].removesuffix("0}")])

    def _delimited(self, texts: Sequence[str]) -> Term:
        first, *others = [Literal(text) for text in texts]
        return sequence(first, *[term for text in others for term in (self._quote, text)])

    def any_key(self) -> Term:
        quoted = sequence(self._quote, FreeText(until=(self._quote,), excluding=(self._call,)))
        return sequence(choice(Regex("[A-Za-z_][A-Za-z0-9_]{0,63}"), quoted), Literal(":"))

    def words(self, types: frozenset[str]) -> list[Term]:
        words = [Literal("true"), Literal("false")] if "boolean" in types else []
        return [*words, Literal("null")] if "null" in types else [*words]
