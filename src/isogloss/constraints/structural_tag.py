"""Terms as a structural tag: the JSON in which xgrammar, the grammar engine of several servers, takes a format.

It says less than llguidance's Lark. What has no structural tag raises `GrammarError`: rules that mean themselves,
grammars in Lark, patterns with exclusions, and schemas with keywords that xgrammar reads over. The format is described
in ``xgrammar/structural_tag.py`` (0.2).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from isogloss.errors import GrammarError
from isogloss.grammar import (
    Choice,
    FreeText,
    Grammar,
    JsonValue,
    Literal,
    Loose,
    Marker,
    Nested,
    Reference,
    Regex,
    Repeat,
    Rule,
    Sequence,
    Term,
)
from isogloss.messages import LARK_KEYWORD

MOST_WHITESPACE = 2
"""How many white space characters may follow one another between the tokens of JSON."""
_ANY_LENGTH = -1

_UNHELD = frozenset(
    {
        LARK_KEYWORD,
        "contains",
        "dependentRequired",
        "dependentSchemas",
        "else",
        "if",
        "maxContains",
        "minContains",
        "multipleOf",
        "not",
        "patternProperties",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
    }
)
"""Keywords that xgrammar ignores, or holds to only in part."""
_BY_NAME = ("properties", "$defs", "definitions")
_ONE = ("items", "additionalProperties", "additionalItems")
_SEVERAL = ("anyOf", "oneOf", "allOf", "prefixItems")
_ELSEWHERE = frozenset({"$ref", "allOf", "anyOf", "const", "enum", "oneOf"})
"""Keywords beside which xgrammar does not look for a type."""
_LENGTHS = frozenset({"minLength", "maxLength"})
_SHAPES = frozenset({"pattern", "format"})


def structural_tag(term: Term, special_tokens: Mapping[str, int]) -> dict[str, Any]:
    """The structural tag of a term, where ``special_tokens`` are control tokens and every other marker is text.

    Raises `GrammarError` for what it cannot say.
    """
    return {"type": "structural_tag", "format": _Writer(special_tokens).format(term)}


class _Writer:
    def __init__(self, special_tokens: Mapping[str, int]) -> None:
        self._special = special_tokens

    def format(self, term: Term) -> dict[str, Any]:
        return _joined(self._parts(term))

    def _parts(self, term: Term) -> list[dict[str, Any]]:
        """The formats, one after the other, that a term is."""
        match term:
            case Literal(text):
                return _constant(text)
            case Marker():
                return self._marker(term)
            case Regex(pattern, max_length, excluding):
                return [_regex(pattern, max_length, excluding)]
            case FreeText():
                return self._free_text(term)
            case Loose():
                raise GrammarError("A structural tag has to hold output to all of a schema")
            case JsonValue(schema):
                return [_json(schema)]
            case Sequence(terms):
                return [part for inner in terms for part in self._parts(inner)]
            case Choice(terms):
                ways = [self.format(inner) for inner in terms]
                return ways if len(ways) == 1 else [{"type": "or", "elements": ways}]
            case Repeat(inner, minimum, maximum):
                return _repeated(self.format(inner), minimum, maximum)
            case Rule(_, inner):  # one that is not referred to inside itself is what it holds
                return self._parts(inner)
            case Reference(name):
                raise GrammarError(f"A structural tag has no rules that mean themselves, as `{name}` does")
            case Grammar() | Nested():
                raise GrammarError("A structural tag cannot hold a grammar in Lark")

    def _marker(self, marker: Marker) -> list[dict[str, Any]]:
        for token in (marker.text, marker.token):
            if token in self._special:
                before, _, after = marker.text.partition(token)
                return [*_constant(before), {"type": "token", "token": self._special[token]}, *_constant(after)]
        return _constant(marker.text)

    def _free_text(self, term: FreeText) -> list[dict[str, Any]]:
        ends = [self.format(end) for end in term.until]
        ending = [] if not ends else ends if len(ends) == 1 else [{"type": "or", "elements": ends}]
        held_off = [*self._spelled(term.until), *self._spelled(term.excluding)]
        if term.language is not None:
            return [*_listed(term.language), *ending]
        if term.pattern is not None:
            return [_regex(term.pattern, None, held_off), *ending]
        return [{"type": "any_text", "excludes": held_off}, *ending]

    def _spelled(self, ends: Iterable[Marker | Literal]) -> list[str]:
        """What text must not hold: control tokens are in no text anyway."""
        return [
            end.text
            for end in ends
            if isinstance(end, Literal) or not (end.text in self._special or end.token in self._special)
        ]


def _joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    if not parts:
        return {"type": "const_string", "value": ""}
    return parts[0] if len(parts) == 1 else {"type": "sequence", "elements": parts}


def _constant(text: str) -> list[dict[str, Any]]:
    return [{"type": "const_string", "value": text}] if text else []


def _listed(language: str) -> list[dict[str, Any]]:
    """The texts that a language lists; no other is a regular expression as xgrammar reads it."""
    if not _TEXTS.fullmatch(language):
        raise GrammarError("A structural tag cannot hold text to the language of a pattern, a format or a length")
    ways = [_joined(_constant(json.loads(text))) for text in _TEXT.findall(language)]
    return ways if len(ways) == 1 else [{"type": "or", "elements": ways}]


_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_TEXTS = re.compile(rf"{_TEXT.pattern}(?: \| {_TEXT.pattern})*")


def _regex(pattern: str, max_length: int | None, excluding: Iterable[str]) -> dict[str, Any]:
    if max_length is not None or list(excluding):
        raise GrammarError("A structural tag cannot bound the length of a pattern, or exclude texts from it")
    return {"type": "regex", "pattern": pattern}


def _repeated(inner: dict[str, Any], minimum: int, maximum: int | None) -> list[dict[str, Any]]:
    match minimum, maximum:
        case 0, 1:
            return [{"type": "optional", "content": inner}]
        case 0, None:
            return [{"type": "star", "content": inner}]
        case 1, None:
            return [{"type": "plus", "content": inner}]
        case 1, 1:
            return [inner]
        case _, 0:
            return []
    return [{"type": "repeat", "min": minimum, "max": _ANY_LENGTH if maximum is None else maximum, "content": inner}]


def _json(schema: Mapping[str, Any] | bool) -> dict[str, Any]:
    simple = _simplified(schema)
    _check(simple, "")
    return {"type": "json_schema", "json_schema": simple, "max_whitespace_cnt": MOST_WHITESPACE}


def _simplified(schema: Mapping[str, Any] | bool) -> Mapping[str, Any] | bool:
    """``allOf`` of a schema and a type, as typed notations write it, is that schema with fewer types."""
    if isinstance(schema, bool) or schema.keys() != {"allOf"} or len(schema["allOf"]) != 2:
        return schema
    first, second = schema["allOf"]
    if not isinstance(second, Mapping) or second.keys() != {"type"}:
        return schema
    if first is True:
        return second
    if not isinstance(first, Mapping) or _ELSEWHERE & first.keys():
        return schema
    types = sorted(_types(first) & _types(second) if "type" in first else _types(second))
    return {**first, "type": types[0] if len(types) == 1 else types}


def _types(schema: Mapping[str, Any]) -> set[str]:
    types = schema.get("type", ())
    return {types} if isinstance(types, str) else set(types)


def _check(schema: Any, pointer: str) -> None:
    """Raise `GrammarError` at a keyword that xgrammar does not hold to."""
    if not isinstance(schema, Mapping):
        return
    unheld = sorted(_UNHELD & schema.keys())
    if _LENGTHS & schema.keys() and _SHAPES & schema.keys():
        unheld.append("a length of text that has a pattern or a format")
    if len(schema.get("allOf", ())) > 1:
        unheld.append("allOf of several")
    if unheld:
        raise GrammarError(f"xgrammar does not hold output to `{unheld[0]}`", pointer=pointer)
    for keyword in _BY_NAME:
        for name, inner in (schema.get(keyword) or {}).items():
            _check(inner, f"{pointer}/{keyword}/{name}")
    for keyword in _ONE:
        _check(schema.get(keyword), f"{pointer}/{keyword}")
    for keyword in _SEVERAL:
        for position, inner in enumerate(schema.get(keyword) or ()):
            _check(inner, f"{pointer}/{keyword}/{position}")
