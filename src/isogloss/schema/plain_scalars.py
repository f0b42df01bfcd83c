"""Scalars of a plain schema (see `isogloss.schema.plain_scan`): whether the engine's own compiler takes them."""

from __future__ import annotations

import re
from typing import Any

from isogloss.schema import plain_form
from isogloss.schema.formats import KNOWN, format_alternatives
from isogloss.schema.pattern_lengths import leaves_some
from isogloss.schema.patterns import engine_pattern
from isogloss.schema.scalar_terminals import is_empty, strings_terminal

MAXIMUM_VALUES = 5_000
MAXIMUM_LENGTH = 100_000

TYPES = ("null", "boolean", "number", "integer", "string", "array", "object")
SPECIAL = re.compile(r"[\"\\\x00-\x1f\x7f\ud800-\udfff]")
"""Characters that compact JSON may not have as they are, or that the compiler does not take so."""
NUMBER_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_LITERAL_TYPES: dict[type, str] = {str: "string", int: "integer", bool: "boolean", type(None): "null"}


def are_literals(schema: dict[str, Any], taken: set[str]) -> bool:
    """Whether the values of an ``enum`` or a ``const`` are taken, with the keywords beside it."""
    if "const" in taken:
        if taken - {"type", "const"}:
            return False
        values = [schema["const"]]
        if "type" in taken and _LITERAL_TYPES.get(type(values[0])) not in named_types(schema["type"]):
            return False
    else:
        beside = taken - {"enum"}
        if beside and (beside - plain_form.BESIDE_ENUM or not _are_bounds(schema)):
            return False
        if not isinstance(schema["enum"], list) or not 0 < len(schema["enum"]) <= MAXIMUM_VALUES:
            return False
        values = plain_form.literal_values(schema)
    return bool(values) and all(map(_is_simple, values))


def is_string(schema: dict[str, Any], taken: set[str], *, formats: bool) -> bool:
    """Whether the strings of a schema are taken, and are some."""
    if not are_ordered_bounds(schema, "minLength", "maxLength", MAXIMUM_LENGTH):
        return False
    pattern = schema.get("pattern")
    name = schema.get("format") if formats else None
    if not isinstance(name, str) or name not in KNOWN:
        name = None
    if pattern is None and name is None:
        return True
    if pattern is not None and (not isinstance(pattern, str) or engine_pattern(pattern) is None):
        return False
    if name is not None and not plain_form.is_spelled(name):
        return False
    is_bounded = "maxLength" in taken or bool(schema.get("minLength"))
    if name is None and not is_bounded:
        return True
    if name is not None and pattern is None and not is_bounded:
        return True
    alternatives = ((),) if name is None else format_alternatives(name)
    own = () if pattern is None else (pattern,)
    bounds = (schema.get("minLength", 0), schema.get("maxLength"))
    return any(_has_strings((*own, *patterns), *bounds) for patterns in alternatives)


def is_number(schema: dict[str, Any], bounds: set[str], *, integers: bool) -> bool:
    """Whether numbers within these bounds are taken, and are some."""
    if len(bounds & {"minimum", "exclusiveMinimum"}) > 1 or len(bounds & {"maximum", "exclusiveMaximum"}) > 1:
        return False
    for name in bounds:
        value = schema[name]
        if type(value) is not int and (integers or type(value) is not float):
            return False
        if not -1e15 < value < 1e15:
            return False
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    if low is None or high is None:
        return True
    slack = len(bounds & {"exclusiveMinimum", "exclusiveMaximum"})
    return bool(low + slack <= high if integers else low < high or (low == high and not slack))


def named_types(types: Any) -> set[str]:
    """The types that a ``type`` names, ``integer`` with ``number``."""
    found = {types} if isinstance(types, str) else {name for name in types if isinstance(name, str)}
    return found | {"integer"} if "number" in found else found


def _are_bounds(schema: dict[str, Any]) -> bool:
    """Whether the keywords beside an ``enum`` are what they should be."""
    types = schema.get("type", "string")
    return (isinstance(types, (str, list)) and set(named_types(types)) <= set(TYPES)) and all(
        type(schema[key]) is int and schema[key] >= 0 for key in ("minLength", "maxLength") if key in schema
    )


def _has_strings(patterns: tuple[str, ...], low: int, high: int | None) -> bool:
    """Whether some string within bounds matches all patterns."""
    known = leaves_some(patterns[0], low, high) if len(patterns) == 1 else None
    return not is_empty(strings_terminal(patterns, low, high)) if known is None else known


def _is_simple(value: Any) -> bool:
    kind = _LITERAL_TYPES.get(type(value))
    if kind == "string":
        return SPECIAL.search(value) is None
    return kind is not None and (kind != "integer" or abs(value) <= 1 << 53)


def are_ordered_bounds(schema: dict[str, Any], low_name: str, high_name: str, most: int) -> bool:
    """Whether a least and a most number are what they should be, up to a bound."""
    low, high = schema.get(low_name, 0), schema.get(high_name)
    if type(low) is not int or not 0 <= low <= most:
        return False
    return high is None or (type(high) is int and low <= high <= most)
