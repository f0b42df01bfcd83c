"""JSON values: their types, their equality, and reading them from text without surprises."""

from __future__ import annotations

import re
from typing import Any

import msgspec

DEEPEST = 256
"""Containers nested deeper than this are not read."""


def type_of(value: object) -> str:
    """The JSON type of a value; a whole float is an ``integer``, and what JSON cannot hold an ``object``."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, (list, tuple)) else "object"


def same_value(left: object, right: object) -> bool:
    """Equality as JSON Schema has it: ``1`` is ``1.0`` but not ``True``, at every depth."""
    pending = [(left, right)]
    while pending:
        a, b = pending.pop()
        if isinstance(a, bool) or isinstance(b, bool):
            if a is not b:
                return False
        elif isinstance(a, dict) and isinstance(b, dict):
            if a.keys() != b.keys():
                return False
            pending.extend((a[key], b[key]) for key in a)
        elif isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
            if len(a) != len(b):
                return False
            pending.extend(zip(a, b, strict=True))
        elif a != b:
            return False
    return True


def unique(values: list[Any]) -> list[Any]:
    """The values in order, scalars that come again left out."""
    seen: set[tuple[str, Any]] = set()
    kept: list[Any] = []
    for value in values:
        key = _key(value)
        if key not in seen:
            kept.append(value)
            if key is not None:
                seen.add(key)
    return kept


def common(left: list[Any], right: list[Any]) -> list[Any]:
    """The values of ``left`` that ``right`` has too."""
    keys = {_key(value) for value in right}
    containers = [value for value in right if _key(value) is None]
    return [
        value
        for value in left
        if (any(same_value(value, other) for other in containers) if _key(value) is None else _key(value) in keys)
    ]


def contains(values: tuple[Any, ...], value: object) -> bool:
    """Whether the value is one of the values."""
    return any(same_value(member, value) for member in values)


def _key(value: object) -> tuple[str, Any] | None:
    """Equal for equal scalars; ``None`` for what is not a scalar."""
    if value is None or isinstance(value, (str, int, float)):
        return (type_of(value), value)
    return None


def read_json(text: str) -> Any:
    """The value of a JSON text, all of it JSON. Raises `ValueError`.

    Stricter than `json.loads`: no NaN or infinities (``1e999`` included), no lone surrogates, nothing nested deeper
    than `DEEPEST`, whatever the depth of the caller's stack.
    """
    if _deeper_than(text, DEEPEST):
        raise ValueError(f"nested deeper than {DEEPEST}")
    try:
        return msgspec.json.decode(text)
    except RecursionError:
        raise ValueError("nested deeper than the stack allows") from None


# A string that never ends takes the rest of the text: no start is tried twice.
_STRING_OR_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.S)


def _deeper_than(text: str, limit: int) -> bool:
    if text.count("[") + text.count("{") <= limit:
        return False
    depth = 0
    for found in _STRING_OR_BRACKET.finditer(text):
        token = found.group()
        if token in ("[", "{"):
            depth += 1
            if depth > limit:
                return True
        elif token in ("]", "}"):
            depth -= 1
    return False
