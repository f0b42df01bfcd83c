"""How many cases the alternatives and conditions of a schema come to, and how to have fewer.

The canonical form spells out every combination of what may hold together: two cases for each condition, one for each
branch of a choice. Conditions on the value of one key, as a discriminator has them, need no combinations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isogloss.errors import SchemaTooComplexError

MAXIMUM_NODES = 100_000
"""Values (objects, arrays and scalars) in one schema document."""
MAXIMUM_DEPTH = 120
"""Nesting of one schema document."""
MAXIMUM_CASES = 4_096
FEW_CASES = 8
"""Up to so many combinations are spelled out at once."""
WIDE = 6
"""Branches from which on the canonical form is slow to compare them all with each other."""

_CHOICES = ("anyOf", "oneOf")
_DEPENDENT = ("dependentRequired", "dependentSchemas", "dependencies")


def survey(document: Any) -> tuple[int, bool]:
    """The most combinations that one place of the document has (counted up to one more than `MAXIMUM_CASES`), and
    whether some choice is wide.

    Raises `SchemaTooComplexError` for a document over the bounds of size and depth. Nothing here is recursive.
    """
    most = 1
    wide = False
    pending: list[tuple[Any, int]] = [(document, 0)]
    count = 0
    while pending:
        value, depth = pending.pop()
        count += 1
        if count > MAXIMUM_NODES:
            raise SchemaTooComplexError(f"Expected a schema of at most {MAXIMUM_NODES} values, got more")
        if depth > MAXIMUM_DEPTH:
            raise SchemaTooComplexError(f"Expected a schema nested at most {MAXIMUM_DEPTH} deep, got more")
        if isinstance(value, Mapping):
            if "allOf" in value or any(keyword in value for keyword in _DEPENDENT):
                most = max(most, _cases(value))
            wide = wide or _is_wide(value.get("anyOf"))
            pending.extend((child, depth + 1) for child in value.values())
        elif isinstance(value, (list, tuple)):
            pending.extend((child, depth + 1) for child in value)
    return most, wide


def _is_wide(branches: Any) -> bool:
    return (
        isinstance(branches, list)
        and len(branches) >= WIDE
        and sum(isinstance(branch, Mapping) and "$ref" not in branch for branch in branches) >= WIDE
    )


def _cases(schema: Mapping[str, Any]) -> int:
    found = 2 if "if" in schema else 1
    for keyword in _CHOICES:
        branches = schema.get(keyword)
        if isinstance(branches, list):
            found *= max(len(branches), 1)
    for keyword in _DEPENDENT:
        entries = schema.get(keyword)
        if isinstance(entries, Mapping):
            found <<= min(len(entries), 20)
    together = schema.get("allOf")
    for part in together if isinstance(together, list) else ():
        if isinstance(part, Mapping):
            found *= _cases(part)
        if found > MAXIMUM_CASES:
            break
    return min(found, MAXIMUM_CASES + 1)


def with_fewer_cases(document: Any) -> Any:
    """The same schema with its choices spelled so that the canonical form leaves them alone.

    Conditions in an ``allOf`` that all ask for the value of one key become one choice by that value, and the branches
    of wide choices are referred to instead of written in place.
    """
    if not isinstance(document, Mapping):
        return document
    rewriting = _Rewriting()
    rewritten = rewriting.schema(document, root=True)
    if rewriting.branches:
        rewritten["$defs"] = {**rewritten.get("$defs", {}), **rewriting.branches}
    return rewritten


class _Rewriting:
    def __init__(self) -> None:
        self.branches: dict[str, Any] = {}

    def schema(self, value: Any, *, root: bool = False) -> Any:
        if isinstance(value, list):
            return [self.schema(item) for item in value]
        if not isinstance(value, Mapping):
            return value
        if not root and ("$id" in value or "id" in value):
            return value  # references inside would lead elsewhere
        rewritten = {key: self.schema(item) for key, item in value.items()}
        if _is_wide(rewritten.get("anyOf")):
            rewritten["anyOf"] = self._referred(rewritten["anyOf"])
        if isinstance(rewritten.get("allOf"), list):
            rewritten["allOf"] = self._conditions(rewritten["allOf"])
        return rewritten

    def _conditions(self, together: list[Any]) -> list[Any]:
        by_key: dict[str, list[tuple[list[Any], bool, Any]]] = {}
        parts = []
        for part in together:
            condition = _condition(part)
            if condition is None:
                parts.append(part)
            else:
                by_key.setdefault(condition[0], []).append(condition[1:])
        parts += [{"anyOf": self._referred(_branches(key, found))} for key, found in by_key.items()]
        return parts

    def _referred(self, branches: list[Any]) -> list[Any]:
        references = []
        for branch in branches:
            name = f"isogloss-branch-{len(self.branches)}"
            self.branches[name] = branch
            references.append({"$ref": f"#/$defs/{name}"})
        return references


def _condition(part: Any) -> tuple[str, list[Any], bool, Any] | None:
    """The key, the values asked for, whether the key has to be there, and what then holds."""
    if not isinstance(part, Mapping) or part.keys() - {"if", "then", "$comment"} or "then" not in part:
        return None
    asked = part["if"]
    if not isinstance(asked, Mapping) or asked.keys() - {"properties", "required", "type"}:
        return None
    properties, required = asked.get("properties"), asked.get("required", [])
    if asked.get("type", "object") != "object" or not isinstance(properties, Mapping) or len(properties) != 1:
        return None
    ((key, schema),) = properties.items()
    if required not in ([], [key]) or not isinstance(schema, Mapping) or len(schema.keys() - {"type"}) != 1:
        return None
    if "const" in schema:
        values = [schema["const"]]
    elif isinstance(schema.get("enum"), list):
        values = schema["enum"]
    else:
        return None
    if "type" in asked or any(not isinstance(value, str) for value in values):
        return None
    if schema.get("type", "string") != "string":
        return None
    return key, values, required == [key], part["then"]


def _branches(key: str, conditions: list[tuple[list[Any], bool, Any]]) -> list[Any]:
    """One branch a value, one for other values, one for no such key, one for what is no object."""
    values: dict[str, None] = {}
    for asked, _, _ in conditions:
        values.update(dict.fromkeys(asked))
    branches: list[Any] = []
    for value in values:
        then = [consequence for asked, _, consequence in conditions if value in asked]
        branches.append({"type": "object", "properties": {key: {"const": value}}, "required": [key], "allOf": then})
    branches.append({"type": "object", "properties": {key: {"not": {"enum": list(values)}}}, "required": [key]})
    absent = [consequence for _, needs_key, consequence in conditions if not needs_key]
    without: dict[str, Any] = {"type": "object", "properties": {key: False}}
    branches.append({**without, "allOf": absent} if absent else without)
    other: dict[str, Any] = {"type": ["null", "boolean", "number", "string", "array"]}
    everything = [consequence for _, _, consequence in conditions]
    branches.append({**other, "allOf": everything} if everything else other)
    return branches


def without_conditions(value: Any) -> Any:
    """A schema that admits at least as much: conditions and dependencies are left out where that cannot admit less."""
    if isinstance(value, list):
        return [without_conditions(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    result = {}
    for key, item in value.items():
        if key in ("if", "then", "else") or key in _DEPENDENT:
            continue
        result[key] = item if key in _NARROWING else without_conditions(item)
    return result


_NARROWING = frozenset({"not", "oneOf", "contains", "propertyNames"})
