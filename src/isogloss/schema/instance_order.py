"""Instances with their keys in the order in which a schema lists them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from typing import Any

import jsonschema_rs
from jsonschema_rs import CanonicalSchema
from jsonschema_rs import canonical as forms

from isogloss.schema.canonical import Canonical
from isogloss.schema.key_order import KeyOrder, local
from isogloss.schema.plain_choices import branches_of
from isogloss.schema.plain_form import items_of, only_part


def ordered(canonical: Canonical, order: KeyOrder, instance: Any) -> Any:
    """The instance in the order of the first shape of the schema that it has; unchanged where it has none."""
    return _Ordering(canonical, order).value(canonical.root, instance)


def ordered_plainly(document: Mapping[str, Any], schema: Any, instance: Any) -> Any:
    """The instance in the order of a plain schema (see `isogloss.schema.plain`), whose keywords say it themselves."""
    if not isinstance(schema, Mapping) or not isinstance(instance, (dict, list)):
        return instance
    if "$ref" in schema:
        return ordered_plainly(document, local(document, schema["$ref"]), instance)
    if (part := only_part(schema)) is not None:
        return ordered_plainly(document, part, instance)
    for branch in branches_of(schema) or ():
        definitions = {key: document[key] for key in ("$schema", "$defs", "definitions") if key in document}
        if isinstance(branch, Mapping) and jsonschema_rs.is_valid({**definitions, **branch}, instance):
            return ordered_plainly(document, branch, instance)
    if isinstance(instance, list):
        first, others = items_of(schema)
        schemas = itertools.chain(first, itertools.repeat(others))
        return [ordered_plainly(document, schema, item) for schema, item in zip(schemas, instance, strict=False)]
    properties = schema.get("properties", {})
    names = dict.fromkeys([*properties, *schema.get("required", ()), *instance])
    others = next(iter(schema.get("patternProperties", {}).values()), schema.get("additionalProperties"))
    return {
        name: ordered_plainly(document, properties.get(name, others), instance[name])
        for name in names
        if name in instance
    }


class _Ordering:
    def __init__(self, canonical: Canonical, order: KeyOrder) -> None:
        self._canonical = canonical
        self._order = order
        self._validators: dict[CanonicalSchema, Any] = {}

    def value(self, node: CanonicalSchema | None, instance: Any) -> Any:
        if node is None or not isinstance(instance, (dict, list)):
            return instance
        resolved = self._canonical.resolve(node)[0]
        view = resolved.view()
        if isinstance(view, (forms.AnyOfView, forms.OneOfView)):
            is_exclusive = isinstance(view, forms.OneOfView)
            for branch in self._canonical.exclusive(resolved)[0] if is_exclusive else view.branches:
                if self._admits(branch, instance):
                    return self.value(branch, instance)
        elif isinstance(view, forms.TypedGroupView):
            return self.value(view.body, instance)
        elif isinstance(view, (forms.ConstView, forms.EnumView)):
            return self._literal(instance)
        elif isinstance(view, forms.ObjectView) and isinstance(instance, dict):
            return self._object(view, instance)
        elif isinstance(view, forms.ArrayView) and isinstance(instance, list):
            return [self.value(self._item(view, index, item), item) for index, item in enumerate(instance)]
        return instance

    def _item(self, view: forms.ArrayView, index: int, item: Any) -> CanonicalSchema | None:
        """What an item has to be, with the kinds that the array has to contain and that it is of."""
        prefix = view.prefix_items
        node = prefix[index] if index < len(prefix) else view.items
        for contains in view.contains if isinstance(item, (dict, list)) else ():
            if self._admits(contains.schema, item):
                node = _both(node, contains.schema)
            elif contains.max_contains is not None:
                node = _both(node, _inverse(contains.schema))
        return node

    def _admits(self, node: CanonicalSchema, instance: Any) -> bool:
        if node not in self._validators:
            self._validators[node] = self._canonical.validator(node)
        return bool(self._validators[node].is_valid(instance))

    def _literal(self, instance: Any) -> Any:
        if isinstance(instance, list):
            return [self._literal(item) for item in instance]
        if isinstance(instance, dict):
            return {name: self._literal(instance[name]) for name in self._order.of_literal(instance)}
        return instance

    def _object(self, view: forms.ObjectView, instance: dict[str, Any]) -> dict[str, Any]:
        """Declared keys first, as the grammar has them, then the others as they are."""
        properties = view.properties
        listed = [*properties, *(name for name in view.required if name not in properties)]
        finite = None if view.property_names is None else self._canonical.finite_strings(view.property_names)
        if finite is not None:
            listed = list(dict.fromkeys([*(name for name in listed if name in set(finite)), *finite]))
        names = self._order.of_object(listed, view.required, additions=finite is None)
        result = {name: instance[name] for name in names if name in instance}
        result.update((name, value) for name, value in instance.items() if name not in result)
        schemas = {name: self._schema_of(view, name) for name in result}
        for violation in view.violations:
            self._narrow(schemas, result, violation)
        return {name: self.value(schemas[name], value) for name, value in result.items()}

    def _narrow(
        self,
        schemas: dict[str, CanonicalSchema | None],
        members: dict[str, Any],
        violation: forms.NameFailsView | forms.UndeclaredValueFailsView | forms.PatternValueFailsView,
    ) -> None:
        """Let the first key that has to break a rule be what breaks it."""
        if isinstance(violation, forms.NameFailsView):
            return
        broken = violation.schema if isinstance(violation, forms.PatternValueFailsView) else violation.additional
        for name, value in members.items():
            if isinstance(violation, forms.PatternValueFailsView):
                concerned = _matches(violation.pattern, name)
            else:
                concerned = name not in violation.names and not any(_matches(p, name) for p in violation.patterns)
            if concerned and not self._admits(broken, value):
                schemas[name] = _both(schemas[name], _inverse(broken))
                return

    def _schema_of(self, view: forms.ObjectView, name: str) -> CanonicalSchema | None:
        found = view.properties.get(name)
        for pattern, schema in view.pattern_properties.items():
            if _matches(pattern, name):
                found = _both(found, schema)
        return view.additional_properties if found is None else found


def _both(first: CanonicalSchema | None, second: CanonicalSchema | None) -> CanonicalSchema | None:
    """What both admit as far as it can be told."""
    if first is None or second is None:
        return first or second
    try:
        return first.intersect(second)
    except forms.CanonicalizationError:
        return first


def _inverse(node: CanonicalSchema) -> CanonicalSchema | None:
    try:
        return node.negate()
    except forms.CanonicalizationError:
        return None


@functools.lru_cache(maxsize=256)
def _matcher(pattern: str) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for({"pattern": pattern})


def _matches(pattern: str, text: str) -> bool:
    return bool(_matcher(pattern).is_valid(text))
