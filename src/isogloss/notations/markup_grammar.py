"""The grammar of one argument written as raw text between tags: what `isogloss.schema.coercion` reads back as valid.

A string is any text that its schema allows and that does not hold the closing tag; any other value is JSON text. Where
a value may be both, a text that would read as another value is written in quotes, as JSON, unless every value that it
may be read as is valid anyway.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from isogloss.grammar import Choice, FreeText, JsonValue, Literal, Loose, Marker, Nested, Term, sequence
from isogloss.messages import LARK_KEYWORD
from isogloss.notations.markup import write
from isogloss.schema.keywords import assertions, lists_values
from isogloss.schema.text_values import TextValues, text_values
from isogloss.schema.view import ANY_TYPE, SchemaView

_NUMBERS = frozenset({"integer", "number"})
_READ_AS: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"string"}), r"\"(?s:.*)"),
    (frozenset({"array"}), r"\[(?s:.*)"),
    (frozenset({"object"}), r"\{(?s:.*)"),
    (_NUMBERS, r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?[ \t\r\n]*"),
    (frozenset({"boolean"}), r"(?:true|false|True|False)[ \t\r\n]*"),
    (frozenset({"null"}), r"(?:null|None)[ \t\r\n]*"),
)
"""Text that reads as a value of one of the types, behind white space."""
_LIKE_A_NUMBER = r"[-0-9](?s:.*)"
_LOOKED_AT = frozenset({"type", "anyOf", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
"""Keywords by which a reading is refused that violates them."""
_MOST_BRANCHES = 64


def raw_value(view: SchemaView | None, closer: Literal | Marker, *excluding: Literal | Marker) -> Term:
    """A value under ``view`` and its closing tag. ``excluding`` are further texts that its strings must not hold.

    `Loose` where some text of it is no valid value.
    """
    if view is None:
        return FreeText(until=(closer,), excluding=excluding)
    if lists_values(view):
        return FreeText((closer,), language=" | ".join(map(_quoted, _listed(view.const_values or ()))))
    if not view.allows_string:
        return sequence(JsonValue(view.standalone()), closer)
    for part in view.parts:
        if isinstance(part.get(LARK_KEYWORD), str):
            return sequence(Nested(part[LARK_KEYWORD]), closer)
    if _is_any_text(view):
        return FreeText(until=(closer,), excluding=excluding)
    values = text_values(view.standalone())
    language = values.strings if view.only_string else _unlike_others(view, values)
    bare = None if language is None else FreeText((closer,), language=language, excluding=(*excluding, closer))
    text = bare if bare is None or values.is_exact else Loose(bare)
    if view.only_string and text is not None:
        return text
    json_types = sorted({"string", *values.others})
    quoted = sequence(JsonValue({"allOf": [view.standalone(), {"type": json_types}]}), closer)
    return quoted if text is None else Choice((text, quoted))


def sure_string(view: SchemaView, closer: Literal | Marker, *excluding: Literal | Marker) -> Term | None:
    """As `raw_value` of a view of strings alone, but of those only that are valid for sure; None where none are."""
    sure = text_values(view.standalone()).sure
    return None if sure is None else FreeText((closer,), language=sure, excluding=(*excluding, closer))


def _listed(values: tuple[Any, ...]) -> list[str]:
    """Each value as the notation writes it: a string as it is, unless it would read as another of the values."""
    view = SchemaView({"enum": list(values)})
    return [write(value, view) for value in values]


def _is_any_text(view: SchemaView) -> bool:
    """Whether every text reads as a valid value: strings are free, and so is all that a text may be read as instead."""
    return all(map(_reads_well, _with_branches(view)))


def _with_branches(view: SchemaView) -> Iterator[SchemaView]:
    pending, found = [view], 0
    while pending and found < _MOST_BRANCHES:
        one = pending.pop()
        found += 1
        yield one
        pending += [branch for branches in one.unions for branch in branches]


def _reads_well(view: SchemaView) -> bool:
    keywords = assertions(view)
    if view.types == ANY_TYPE or view.only_string:
        return keywords <= {"type"}
    # Enumerations are looked at, but say which strings there are.
    return keywords <= _LOOKED_AT and not (view.allows_string and keywords & {"enum", "const"})


def _unlike_others(view: SchemaView, values: TextValues) -> str | None:
    """The strings that read as strings, and the numbers and words; None where there is neither."""
    types = view.types
    taken = [pattern for kinds, pattern in _READ_AS if kinds & types or types == ANY_TYPE]
    if values.others & _NUMBERS:
        taken.append(_LIKE_A_NUMBER)  # which JSON text is to say
    kinds = [] if values.strings is None else [f"(({values.strings}) & ~/[ \\t\\r\\n]*(?:{'|'.join(taken)})/)"]
    if values.scalars is not None:
        kinds.append(values.scalars)
    return " | ".join(kinds) or None


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
