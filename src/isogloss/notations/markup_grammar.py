"""The grammar of one argument written as raw text between tags: what `isogloss.schema.coercion` reads back as valid.

A string is any text that its schema allows and that does not hold the closing tag; any other value is JSON text. Where
a value may be both, raw text alone says everything as long as its strings are not bounded, for text that would read as
an invalid value of another type reads as a string.
"""

from __future__ import annotations

import re
from typing import Any

from isogloss.grammar import Choice, FreeText, JsonValue, Literal, Marker, Nested, Term, sequence
from isogloss.messages import LARK_KEYWORD
from isogloss.notations.markup import write
from isogloss.schema.formats import format_patterns
from isogloss.schema.view import SchemaView

_ANYTHING = "(?s:.*)"
_NOT_RUST = re.compile(r"\(\?(?:[=!]|<[=!])|\\[1-9bBcpP]|\\u|(?<!\\)\[\^?\]")
_BOUND = 2_000
"""Bounds on length above this are not counted by the grammar."""


def raw_value(view: SchemaView | None, closer: Literal | Marker, *excluding: Literal | Marker) -> Term:
    """A value under ``view`` and its closing tag. ``excluding`` are further texts that its strings must not hold."""
    if view is None:
        return FreeText(until=(closer,), excluding=excluding)
    values = view.const_values
    if values is not None:
        return sequence(_listed(values), closer)
    json_text = sequence(JsonValue(view.standalone()), closer)
    if not view.allows_string:
        return json_text
    for part in view.parts:
        if isinstance(part.get(LARK_KEYWORD), str):
            return sequence(Nested(part[LARK_KEYWORD]), closer)
    text = _text(view, closer, excluding)
    if view.only_string or (text.pattern is None and text.max_length is None):
        return text
    return Choice((text, json_text))


def _listed(values: tuple[Any, ...]) -> Term:
    """Each value as the notation writes it: a string as it is, unless it would read as another of the values."""
    view = SchemaView({"enum": list(values)})
    return Choice(tuple(Literal(write(value, view)) for value in values))


def _text(view: SchemaView, closer: Literal | Marker, excluding: tuple[Literal | Marker, ...]) -> FreeText:
    pattern = _pattern(view)
    shortest = max([part["minLength"] for part in view.parts if _is_count(part.get("minLength"))], default=0)
    longest = min([part["maxLength"] for part in view.parts if _is_count(part.get("maxLength"))], default=None)
    if longest is not None and longest > _BOUND:
        longest = None
    if pattern is None and 0 < shortest <= _BOUND:
        pattern = f"(?s:.{{{int(shortest)},}})"
    if pattern is not None:
        excluding = (*excluding, closer)  # text that does not match yet would go on behind it
    return FreeText((closer,), pattern, None if longest is None else int(longest), excluding)


def _pattern(view: SchemaView) -> str | None:
    """One pattern that strings match as a whole: of several, the first that a grammar can hold."""
    for part in view.parts:
        candidates = [part.get("pattern"), *(format_patterns(str(part["format"])) if "format" in part else ())]
        for candidate in candidates:
            anchored = whole_match(candidate) if isinstance(candidate, str) else None
            if anchored is not None:
                return anchored
    return None


def whole_match(pattern: str) -> str | None:
    """A Rust pattern for whole strings in which ``pattern``, in ECMA's syntax, matches somewhere; ``None`` where it
    needs what such a grammar has not."""
    if _NOT_RUST.search(pattern):
        return None
    starts, ends = pattern.startswith("^"), pattern.endswith("$") and not pattern.endswith("\\$")
    body = pattern[starts : len(pattern) - ends]
    unescaped = re.sub(r"\\.|\[(?:\\.|[^\]])*\]", "", body)
    if "^" in unescaped or "$" in unescaped or ((starts or ends) and _splits_at_top(unescaped)):
        return None
    return f"{'' if starts else _ANYTHING}(?:{body}){'' if ends else _ANYTHING}"


def _splits_at_top(pattern: str) -> bool:
    """Whether an alternation outside of groups would leave an anchor to one branch only."""
    depth = 0
    for char in pattern:
        depth += (char == "(") - (char == ")")
        if char == "|" and depth == 0:
            return True
    return False


def _is_count(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
