"""Whether a schema permits a value, as far as a view of it tells.

That is types, enum and const, the bounds of numbers, unions, and what is inside of objects and arrays. It is enough to
choose between readings of a text; a validator has the last word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import ge, gt, le, lt
from typing import Any

from isogloss.schema.values import contains, type_of
from isogloss.schema.view import SchemaView

_MOST_STEPS = 4096
"""Pairs of a schema and a value looked at; when they are used up, the value is taken to be permitted."""

_DEEPEST = 64

_BOUNDS: tuple[tuple[str, Callable[[Any, Any], bool]], ...] = (
    ("minimum", ge),
    ("maximum", le),
    ("exclusiveMinimum", gt),
    ("exclusiveMaximum", lt),
)


def permits(view: SchemaView, value: object) -> bool:
    """False when the value violates the schema in a way that is looked at, else true."""
    return _Question().permits(view, value, 0)


class _Question:
    def __init__(self) -> None:
        self.steps = 0

    def permits(self, view: SchemaView, value: object, depth: int) -> bool:
        self.steps += 1
        kind = type_of(value)
        if kind not in view.types:
            return False
        values = view.const_values
        if values is not None and not contains(values, value):
            return False
        if kind in ("integer", "number") and not _within_bounds(view, value):
            return False
        if depth >= _DEEPEST or self.steps > _MOST_STEPS:
            return True
        for branches in view.unions:
            if not any(self.permits(branch, value, depth + 1) for branch in branches):
                return False
        if isinstance(value, dict):
            return self.members_permitted(view, value, depth)
        return not isinstance(value, (list, tuple)) or self.all(_elements(view, value), depth)

    def members_permitted(self, view: SchemaView, value: dict[str, Any], depth: int) -> bool:
        if not view.required.issubset(value):
            return False
        own = view.properties
        if view.is_closed and view.additional is None and not own.keys() >= value.keys():
            return False
        return self.all(((own[name], member) for name, member in value.items() if name in own), depth)

    def all(self, pairs: Iterable[tuple[SchemaView | None, object]], depth: int) -> bool:
        return all(view is None or self.permits(view, value, depth + 1) for view, value in pairs)


def _elements(view: SchemaView, value: list[Any] | tuple[Any, ...]) -> Iterator[tuple[SchemaView | None, object]]:
    for position, member in enumerate(value):
        yield view.item(position), member


def _within_bounds(view: SchemaView, value: object) -> bool:
    for part in view.parts:
        for keyword, holds in _BOUNDS:
            bound = part.get(keyword)
            if isinstance(bound, (int, float)) and not isinstance(bound, bool) and not holds(value, bound):
                return False
    return True
