"""Schemas rewritten for the validator: to mean the same, or to admit at least as much where it cannot hold it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from isogloss.schema.patterns import strict_spelling

_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_LISTED = frozenset({"allOf", "anyOf", "prefixItems"})
_SINGLE = frozenset({"items", "additionalProperties", "additionalItems"})

_NARROWING = frozenset({"not", "oneOf", "if", "contains", "propertyNames", "dependentSchemas", "dependencies"})
_EXCLUDING = frozenset(
    {"not", "if", "then", "else", "contains", "minContains", "maxContains", "dependentSchemas", "dependencies"}
    | {"uniqueItems"}
)
_UNEVALUATED = ("unevaluatedItems", "unevaluatedProperties")


def without_inner_dialects(schema: Any) -> Any:
    """The schema without ``$schema`` in parts that have no ``$id``, where it says nothing (draft 2019-09, 8.1.1)."""
    return _rebuilt(schema, root=True)


def _rebuilt(value: Any, *, root: bool = False) -> Any:
    if isinstance(value, list):
        return [_rebuilt(item) for item in value]
    if not isinstance(value, dict):
        return value
    inner = not root and "$id" not in value and isinstance(value.get("$schema"), str)
    return {key: _rebuilt(item) for key, item in value.items() if not (inner and key == "$schema")}


def with_strict_patterns(schema: Any) -> Any:
    """The schema with its patterns as strict engines spell them."""
    if isinstance(schema, list):
        return [with_strict_patterns(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    rewritten = {key: with_strict_patterns(item) for key, item in schema.items()}
    if isinstance(schema.get("pattern"), str):
        rewritten["pattern"] = strict_spelling(schema["pattern"])
    if isinstance(schema.get("patternProperties"), dict):
        rewritten["patternProperties"] = {
            strict_spelling(key): item for key, item in rewritten["patternProperties"].items()
        }
    return rewritten


def with_conditions_as_choices(schema: Any) -> Any:
    """The schema with each ``if`` that holds a choice spelled as a choice itself, where ``unevaluated*`` is about.

    The canonical form (jsonschema-rs 0.61) forgets what the branches of a choice evaluate when the choice always holds
    and stands in an ``if``.
    """
    words = set(_words(schema))
    if words.isdisjoint(_UNEVALUATED) or "if" not in words or any("/if/" in word for word in words):
        return schema
    return _without_conditions(schema)


def _words(value: Any) -> Iterator[str]:
    """Every key, and every string that is a reference."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            if key == "$ref" and isinstance(item, str):
                yield item.replace("/then/", "/if/").replace("/else/", "/if/") + "/"
            yield from _words(item)
    elif isinstance(value, list):
        for item in value:
            yield from _words(item)


def _without_conditions(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_conditions(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    rewritten = {}
    for key, value in schema.items():
        if key in _NAMED or key in ("dependentSchemas", "dependencies"):
            named = value.items() if isinstance(value, dict) else ()
            rewritten[key] = {name: _without_conditions(item) for name, item in named}
        elif key in _LISTED or key in _SINGLE or key in _HOLDING:
            rewritten[key] = _without_conditions(value)
        else:
            rewritten[key] = value
    condition = rewritten.get("if")
    together: Any = rewritten.get("allOf", [])
    if condition is None or not isinstance(together, list) or not {"anyOf", "oneOf"} & set(_words(condition)):
        return rewritten
    then, otherwise = rewritten.get("then", True), rewritten.get("else", True)
    choice = {"anyOf": [{"allOf": [condition, then]}, {"allOf": [{"not": condition}, otherwise]}]}
    kept = {key: value for key, value in rewritten.items() if key not in ("if", "then", "else")}
    return {**kept, "allOf": [*together, choice]}


_HOLDING = frozenset({"if", "then", "else", "not", "oneOf", "contains", "propertyNames", *_UNEVALUATED})


def widenable(schema: Any) -> Any:
    """The schema, or one that admits at least as much, of which every part that is widened widens the whole.

    A reference under a keyword that narrows would have to be to what it was: where there is one, such keywords go.
    """
    if not _narrows_by_reference(schema):
        return schema
    return _widened(_without_unevaluated(schema), _without_narrowing_references)


def _narrows_by_reference(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_narrows_by_reference, value))
    if not isinstance(value, dict):
        return False
    return any((key in _NARROWING and _refers(item)) or _narrows_by_reference(item) for key, item in value.items())


def _without_narrowing_references(members: dict[str, Any]) -> dict[str, Any]:
    gone = {key for key in _NARROWING & members.keys() if _refers(members[key])}
    kept = {key: value for key, value in members.items() if key not in gone}
    return _with_any_of(kept, members["oneOf"]) if "oneOf" in gone else kept


def _refers(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_refers, value))
    return isinstance(value, dict) and (not _REFERENCES.isdisjoint(value) or any(map(_refers, value.values())))


_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})


def weaker(schema: Any, pointer: str) -> Any:
    """The schema with what stands at the pointer (or around it) simplified, or replaced by ``true``.

    Only places where more values inside mean more values outside are touched, so the result admits all that the
    schema (a `widenable` one) does.
    """
    return _replaced(schema, list(_widening_prefix(pointer)))


def _widening_prefix(pointer: str) -> Iterator[str]:
    """The longest part of the pointer that leads through such places only."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    while parts:
        if parts[0] in _SINGLE:
            yield parts.pop(0)
        elif parts[0] in _NAMED | _LISTED and len(parts) > 1:
            yield parts.pop(0)
            yield parts.pop(0)
        else:
            return


def _replaced(value: Any, place: list[str]) -> Any:
    if not place:
        for simplify in (_without_unevaluated, _simplified):
            simpler = simplify(value)
            if simpler != value:
                return simpler
        return True
    head, rest = place[0], place[1:]
    if isinstance(value, list) and head.isdecimal() and int(head) < len(value):
        copy = list(value)
        copy[int(head)] = _replaced(value[int(head)], rest)
        return copy
    if isinstance(value, dict) and head in value:
        return {**value, head: _replaced(value[head], rest)}
    return True


def _without_unevaluated(schema: Any) -> Any:
    """The schema without the keywords that depend on what others evaluate."""
    return _widened(schema, lambda members: {k: v for k, v in members.items() if k not in _UNEVALUATED})


def _simplified(schema: Any) -> Any:
    """The schema without conditions and exclusions, where one branch of a choice is as good as several."""
    return _widened(schema, _simplified_members)


def _simplified_members(members: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in members.items() if key not in _EXCLUDING and key not in _UNEVALUATED}
    return _with_any_of(kept, kept.pop("oneOf")) if "oneOf" in kept else kept


def _with_any_of(members: dict[str, Any], branches: Any) -> dict[str, Any]:
    return {**members, "allOf": [*members.get("allOf", ()), {"anyOf": branches}]}


def _widened(schema: Any, widen: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """Every schema that a schema is made of, widened; those inside what narrows by them are left alone."""
    if isinstance(schema, list):
        return [_widened(item, widen) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if not _standard(schema.get("$schema")):
        return True
    return {
        key: value if key in _NARROWING else _widened_by_keyword(key, value, widen)
        for key, value in widen(schema).items()
    }


def _widened_by_keyword(key: str, value: Any, widen: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    if key in _NAMED and isinstance(value, dict):
        return {name: _widened(item, widen) for name, item in value.items()}
    if key in _LISTED or key in _SINGLE:
        return _widened(value, widen)
    return value


def _standard(dialect: Any) -> bool:
    return dialect is None or (isinstance(dialect, str) and "json-schema.org" in dialect)
