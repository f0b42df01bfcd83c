"""Whether no value can be in two branches of a ``oneOf``, told from the keywords alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

MAXIMUM_BRANCHES = 64
MAXIMUM_REFERENCES = 16
"""References that lead from one to the next."""

_EVERY_TYPE = frozenset({"null", "boolean", "integer", "fraction", "string", "array", "object"})
_LITERAL_TYPES: dict[type, str] = {str: "string", int: "integer", bool: "boolean", type(None): "null"}


class _Traits(msgspec.Struct):
    """What is known of the values of a branch: always too much rather than too little."""

    types: frozenset[str]
    literals: frozenset[tuple[str, Any]] | None
    """Scalars by type, where the values are listed."""
    properties: Mapping[str, Any]
    required: frozenset[str]
    is_closed: bool


def are_exclusive(branches: list[Any], resolve: Callable[[str], Any]) -> bool:
    """Whether every two branches are told apart: by type, by listed values, by a key that both require with other
    values, or by one that the first requires and the second forbids. ``resolve`` follows a reference, None for none."""
    if len(branches) > MAXIMUM_BRANCHES:
        return False
    traits = [_traits(branch, resolve) for branch in branches]
    return all(_differ(first, second, resolve) for first, second in itertools.combinations(traits, 2))


def _differ(first: _Traits, second: _Traits, resolve: Callable[[str], Any]) -> bool:
    shared = first.types & second.types
    if not shared:
        return True
    if first.literals is not None and second.literals is not None:
        return not first.literals & second.literals
    if shared != {"object"}:
        return False
    return (
        any(_differs_at(name, first, second, resolve) for name in first.required & second.required)
        or _forbids(second, first.required)
        or _forbids(first, second.required)
    )


def _differs_at(name: str, first: _Traits, second: _Traits, resolve: Callable[[str], Any]) -> bool:
    if name not in first.properties or name not in second.properties:
        return False
    one, other = _traits(first.properties[name], resolve), _traits(second.properties[name], resolve)
    if one.literals is not None and other.literals is not None:
        return not one.literals & other.literals
    return not one.types & other.types


def _forbids(branch: _Traits, names: frozenset[str]) -> bool:
    return branch.is_closed and not names <= branch.properties.keys()


def _traits(schema: Any, resolve: Callable[[str], Any]) -> _Traits:
    for _ in range(MAXIMUM_REFERENCES):
        if not (isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str)):
            break
        schema = resolve(schema["$ref"])
    if not isinstance(schema, Mapping) or "$ref" in schema:
        return _Traits(_EVERY_TYPE, None, {}, frozenset(), False)
    properties, required = schema.get("properties", {}), schema.get("required", ())
    return _Traits(
        _types(schema.get("type")),
        _literals(schema),
        properties if isinstance(properties, Mapping) else {},
        frozenset(name for name in required if isinstance(name, str)) if isinstance(required, list) else frozenset(),
        schema.get("additionalProperties") is False and not schema.get("patternProperties"),
    )


def _types(named: Any) -> frozenset[str]:
    names = {named} if isinstance(named, str) else set(named) if isinstance(named, list) else set(_EVERY_TYPE)
    if "number" in names:
        names = (names - {"number"}) | {"integer", "fraction"}
    return frozenset(names)


def _literals(schema: Mapping[str, Any]) -> frozenset[tuple[str, Any]] | None:
    values = schema["enum"] if "enum" in schema else [schema["const"]] if "const" in schema else None
    if not isinstance(values, list):
        return None
    found = []
    for value in values:
        kind = _LITERAL_TYPES.get(type(value))
        if kind is None:
            return None
        found.append((kind, value))
    return frozenset(found)
