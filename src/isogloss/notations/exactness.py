"""Whether the grammar of a notation other than JSON says all that a schema does.

What it may leave open is for a watch over the calls (`isogloss.constraints.call_watch`). The answer is yes for the
schemas that most tools have, and no where in doubt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isogloss.notations.markup_grammar import whole_match
from isogloss.schema.formats import KNOWN, format_patterns

_SAYS_NOTHING = frozenset(
    {
        *("$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples"),
        *("deprecated", "readOnly", "writeOnly", "strict", "example", "contentMediaType"),
    }
)
_SAID = frozenset(
    {
        *("type", "enum", "const", "properties", "required", "additionalProperties", "items", "minItems", "maxItems"),
        *("pattern", "format", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("multipleOf", "anyOf", "oneOf", "$ref", "nullable"),
    }
)
_OF_STRINGS = frozenset({"pattern", "format", "minLength", "maxLength"})
_OF_NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_LONGEST = 1_000
"""Bounds on length above this are not counted by every grammar."""


def said_exactly(schema: object) -> bool:
    """Whether the grammars of notations say all that ``schema`` does about a call's arguments."""
    pending = [schema]
    while pending:
        part = pending.pop()
        if part is True or part is False:
            continue
        if not isinstance(part, Mapping) or not _is_simple(part):
            return False
        for keyword in ("properties", "$defs", "definitions"):
            pending.extend((part.get(keyword) or {}).values())
        pending.extend(part[keyword] for keyword in ("items", "additionalProperties") if keyword in part)
        for keyword in ("anyOf", "oneOf"):
            pending.extend(part.get(keyword, ()))
    return True


def _is_simple(part: Mapping[str, Any]) -> bool:
    says = part.keys() - _SAYS_NOTHING
    if not says <= _SAID:
        return False
    if "$ref" in part and len(says) > 1:
        return False
    if ("enum" in part or "const" in part) and not says <= {"enum", "const", "type"}:
        return False
    if not set(part.get("required", ())) <= (part.get("properties") or {}).keys():
        return False
    types = part.get("type")
    has_bounds = bool(says & (_OF_STRINGS | _OF_NUMBERS))
    if has_bounds and not isinstance(types, str):
        return False  # of several types, one might be read as the other
    for keyword in ("anyOf", "oneOf"):
        if keyword in part and not (says == {keyword} and _is_nullable(part[keyword])):
            return False
    return not says & _OF_STRINGS or _is_simple_string(part, says)


def _is_nullable(branches: object) -> bool:
    """Whether these are one schema and null."""
    return isinstance(branches, list) and len(branches) == 2 and {"type": "null"} in branches


def _is_simple_string(part: Mapping[str, Any], says: set[str]) -> bool:
    if any(part.get(keyword, 0) > _LONGEST for keyword in ("minLength", "maxLength")):
        return False
    if "format" in part and part["format"] not in KNOWN:
        says = says - {"format"}
    patterned = says & {"pattern", "format"}
    if (patterned and says & _OF_STRINGS != patterned) or len(patterned) > 1:
        return False
    if "pattern" in patterned:
        return whole_match(part["pattern"]) is not None
    return "format" not in patterned or any(map(whole_match, format_patterns(part["format"])))
