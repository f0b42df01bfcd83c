"""Choices of plain schemas: their branches, each with what stands beside the choice."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

CHOICES = ("anyOf", "oneOf")
_OF_OBJECTS = frozenset({"properties", "required", "additionalProperties"})
BESIDE = ("type", *sorted(_OF_OBJECTS))
"""What may stand beside a choice."""
_SAID_BY_BOTH = frozenset({"type", "required"})
_NAMING = frozenset({"properties", "additionalProperties", "patternProperties"})
"""Keywords that mean something else together."""


def branches_of(schema: Mapping[str, Any]) -> list[Any] | None:
    """The branches of a choice, each with what stands beside it; None where there is no choice."""
    for choice in CHOICES:
        branches = schema.get(choice)
        if isinstance(branches, list):
            beside = {key: schema[key] for key in BESIDE if key in schema}
            return [_with(beside, branch) for branch in branches] if beside else branches
    return None


def may_be_spread(schema: Mapping[str, Any], choice: str, taken: AbstractSet[str]) -> bool:
    """Whether each branch says with what stands beside the choice what both say: ``taken`` are the keywords of all.

    A type may stand beside any branches. An object may, and what it requires, where a branch only adds to that, so that
    the order of its keys is that of one list of properties.
    """
    beside = taken - {choice}
    if beside <= {"type"}:
        return True
    branches = schema[choice]
    if not beside <= {"type"} | _OF_OBJECTS or not isinstance(branches, list):
        return False
    return all(isinstance(branch, dict) and _may_take(branch, schema, beside) for branch in branches)


def _may_take(branch: Mapping[str, Any], schema: Mapping[str, Any], beside: AbstractSet[str]) -> bool:
    if "$ref" in branch:
        return False
    is_whole_object = not beside <= _SAID_BY_BOTH
    if is_whole_object and not branch.keys().isdisjoint(_NAMING):
        return False
    listed = (schema if is_whole_object else branch).get("properties")
    required = [schema.get("required", []), branch.get("required", [])]
    return isinstance(listed, dict) and all(
        isinstance(names, list) and all(isinstance(name, str) and name in listed for name in names)
        for names in required
    )


def _with(beside: Mapping[str, Any], branch: Any) -> Any:
    if not isinstance(branch, dict) or "$ref" in branch:
        return branch
    whole = {**beside, **branch}
    if "required" in beside and "required" in branch:
        whole["required"] = list(dict.fromkeys([*beside["required"], *branch["required"]]))
    return whole
