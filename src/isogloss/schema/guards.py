"""Guards: what a grammar cannot say of a value, checked while it is written.

`GuardPlan` follows a value through its schema, without the grammar's help: a place in a value leads to the one shape of
the schema that it can have there (told by its type), and that shape may have a `Guard`. Where a value may have several
shapes of one type, of which some are guarded, the guard is one for all of them, at their value.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Literal

import jsonschema_rs
import msgspec
from jsonschema_rs import CanonicalSchema
from jsonschema_rs import canonical as forms

from isogloss.schema.canonical import Canonical

ValueType = Literal["null", "boolean", "number", "string", "array", "object"]

_TYPE_OF_VIEW: dict[type, ValueType] = {
    forms.StringView: "string",
    forms.NumberView: "number",
    forms.IntegerView: "number",
    forms.ArrayView: "array",
    forms.ObjectView: "object",
}
_TYPE_OF_VALUE: dict[type, ValueType] = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
_EVERY_TYPE: tuple[ValueType, ...] = ("null", "boolean", "number", "string", "array", "object")


class Guard:
    """What to check of one value, and where its parts lead."""

    __slots__ = ("_members", "_plan", "_validator", "_view", "checks", "unique")

    def __init__(self, plan: GuardPlan, node: CanonicalSchema | None, *, checked: CanonicalSchema | None, unique: bool):
        self._plan = plan
        self._view = None if node is None else node.view()
        self._members = self._view.properties if isinstance(self._view, forms.ObjectView) else {}
        self._validator = None if checked is None else plan.canonical.validator(checked)
        self.checks = checked is not None
        """Whether `admits` says anything when the value closes."""
        self.unique = unique
        """Whether the items of the array have to differ."""

    def admits(self, value: Any) -> bool:
        """Whether a whole value passes."""
        return self._validator is None or bool(self._validator.is_valid(value))

    def member(self, name: str) -> CanonicalSchema | None:
        """Where the value of a key leads."""
        view = self._view
        if not isinstance(view, forms.ObjectView):
            return None
        found = self._members.get(name)
        if found is not None:
            return found
        plan, others = self._plan, view.additional_properties
        for pattern, schema in view.pattern_properties.items():
            if (plan.leads(schema) or plan.leads(others)) and plan.matches(pattern, name):
                if plan.leads(schema):
                    return schema
                others = None  # they hold only for keys that match no pattern
        return others

    def item(self, index: int) -> CanonicalSchema | None:
        """Where the item at an index leads."""
        view = self._view
        if not isinstance(view, forms.ArrayView):
            return None
        return view.prefix_items[index] if index < len(view.prefix_items) else view.items


class GuardPlan:
    """The guards of one schema.

    ``inexact`` says which nodes the grammar admits too much for, and in what way; ``derived`` which nodes it made on
    the way, for which others: where one of those is inexact, these are checked as a whole.
    """

    def __init__(
        self,
        canonical: Canonical,
        inexact: Mapping[CanonicalSchema, AbstractSet[str]],
        derived: Mapping[CanonicalSchema, AbstractSet[CanonicalSchema]] | None = None,
    ) -> None:
        self.canonical = canonical
        self._inexact = {node: set(kinds) for node, kinds in inexact.items()}
        if not canonical.exact:
            self._inexact.setdefault(canonical.root, set()).add("value")
        self.leading = self._leading(derived or {}) if self._inexact else set()
        """Nodes at or below which something is guarded."""
        self._guards: dict[tuple[CanonicalSchema, ValueType], Guard | None] = {}
        self._patterns: dict[str, jsonschema_rs.Validator] = {}

    def __bool__(self) -> bool:
        return bool(self._inexact)

    def root(self) -> CanonicalSchema:
        """Where the whole value leads."""
        return self.canonical.root

    def guard(self, node: CanonicalSchema | None, value_type: ValueType) -> Guard | None:
        """The guard of a value of this type at a node, None where nothing in it is guarded."""
        if node is None or node not in self.leading:
            return None
        key = (node, value_type)
        if key not in self._guards:
            self._guards[key] = self._guard(node, value_type)
        return self._guards[key]

    def leads(self, node: CanonicalSchema | None) -> bool:
        """Whether something is guarded at a node or below it."""
        return node is not None and node in self.leading

    def matches(self, pattern: str, text: str) -> bool:
        if pattern not in self._patterns:
            self._patterns[pattern] = jsonschema_rs.validator_for({"pattern": pattern})
        return bool(self._patterns[pattern].is_valid(text))

    def _guard(self, node: CanonicalSchema, value_type: ValueType) -> Guard | None:
        if node == self.canonical.root and not self.canonical.exact:
            return Guard(self, None, checked=node, unique=False)
        candidates, within = self._shapes(node, value_type)
        if any("value" in self._inexact.get(outer, ()) for outer in within):
            return Guard(self, None, checked=node, unique=False)
        guarded = [shape for shape in candidates if shape in self.leading]
        if not guarded:
            return None
        if len(candidates) > 1:
            return Guard(self, None, checked=node, unique=False)
        shape = guarded[0]
        kinds = self._inexact.get(shape, set())
        return Guard(self, shape, checked=shape if "value" in kinds else None, unique="unique" in kinds)

    def _shapes(
        self, node: CanonicalSchema, value_type: ValueType
    ) -> tuple[list[CanonicalSchema], list[CanonicalSchema]]:
        """The shapes of a type that a value at a node may have, and what leads to them: unions and references."""
        shapes = []
        unions = []
        seen = set()
        pending = [node]
        while pending:
            part = pending.pop()
            resolved = self.canonical.resolve(part)[0]
            if resolved != part:
                unions.append(part)
            if resolved in seen:
                continue
            seen.add(resolved)
            view = resolved.view()
            if isinstance(view, (forms.AnyOfView, forms.OneOfView)):
                unions.append(resolved)
                pending.extend(view.branches)
            elif isinstance(view, forms.TypedGroupView):
                pending.append(view.body)
            elif value_type in _types(view):
                shapes.append(resolved)
        return shapes, unions

    def _leading(self, derived: Mapping[CanonicalSchema, AbstractSet[CanonicalSchema]]) -> set[CanonicalSchema]:
        parents: dict[CanonicalSchema, list[CanonicalSchema]] = {}
        seen = {self.canonical.root, *derived}
        pending = list(seen)
        while pending:
            node = pending.pop()
            for child in self._parts(node):
                parents.setdefault(child, []).append(node)
                if child not in seen:
                    seen.add(child)
                    pending.append(child)
        leading = set()
        rising = list(self._inexact)
        while rising:
            node = rising.pop()
            if node in leading:
                continue
            leading.add(node)
            rising.extend(parents.get(node, ()))
            for owner in derived.get(node, ()):
                self._inexact.setdefault(owner, set()).add("value")
                rising.append(owner)
        return leading

    def _parts(self, node: CanonicalSchema) -> list[CanonicalSchema]:
        """The nodes that a node is made of, one step down."""
        resolved = self.canonical.resolve(node)[0]
        if resolved != node:
            return [resolved]
        view = node.view()
        if isinstance(view, (forms.AnyOfView, forms.OneOfView)):
            return list(view.branches)
        if isinstance(view, forms.TypedGroupView):
            return [view.body]
        if isinstance(view, forms.ArrayView):
            return [*view.prefix_items, *([] if view.items is None else [view.items])]
        if isinstance(view, forms.ObjectView):
            others = [] if view.additional_properties is None else [view.additional_properties]
            return [*view.properties.values(), *view.pattern_properties.values(), *others]
        return []


def _types(view: forms.CanonicalViewType) -> tuple[ValueType, ...]:
    """The types of the values of a shape."""
    known = _TYPE_OF_VIEW.get(type(view))
    if known is not None:
        return (known,)
    if isinstance(view, forms.MultiTypeView):
        return tuple("number" if name == "integer" else name for name in view.types)  # type: ignore[misc]
    if isinstance(view, forms.ConstView):
        return (_TYPE_OF_VALUE.get(type(view.value), "number"),)
    if isinstance(view, forms.EnumView):
        return tuple(_TYPE_OF_VALUE.get(type(value), "number") for value in view.values)
    return () if isinstance(view, forms.FalseView) else _EVERY_TYPE


class Guards(msgspec.Struct, frozen=True):
    """Everything that a grammar leaves to the one who drives it."""

    plan: GuardPlan | None = None
    """Values to check when they close."""
    open_keys: bool = False
    """Whether some object takes keys that are not listed: none may come twice."""
    escaped_keys: bool = True
    """Whether keys may hold ``\\u`` escapes; where not, one could spell a listed key as if it were another."""
    open_numbers: bool = False
    """Whether some number has no bound on its digits."""

    def __bool__(self) -> bool:
        return bool(self.plan) or self.open_keys or self.open_numbers or not self.escaped_keys
