"""Instances with their keys in the order in which a schema lists them."""

from __future__ import annotations

from typing import Any

from jsonschema_rs import CanonicalSchema
from jsonschema_rs import canonical as forms

from isogloss.schema.canonical import Canonical
from isogloss.schema.key_order import KeyOrder


def ordered(canonical: Canonical, order: KeyOrder, instance: Any) -> Any:
    """The instance in the order of the first shape of the schema that it has; unchanged where it has none."""
    return _Ordering(canonical, order).value(canonical.root, instance)


class _Ordering:
    def __init__(self, canonical: Canonical, order: KeyOrder) -> None:
        self._canonical = canonical
        self._order = order
        self._validators: dict[CanonicalSchema, Any] = {}

    def value(self, node: CanonicalSchema | None, instance: Any) -> Any:
        if node is None or not isinstance(instance, (dict, list)):
            return instance
        view = self._canonical.resolve(node)[0].view()
        if isinstance(view, (forms.AnyOfView, forms.OneOfView)):
            for branch in view.branches:
                if self._admits(branch, instance):
                    return self.value(branch, instance)
        elif isinstance(view, forms.TypedGroupView):
            return self.value(view.body, instance)
        elif isinstance(view, (forms.ConstView, forms.EnumView)):
            return self._literal(instance)
        elif isinstance(view, forms.ObjectView) and isinstance(instance, dict):
            return self._object(view, instance)
        elif isinstance(view, forms.ArrayView) and isinstance(instance, list):
            prefix = view.prefix_items
            return [self.value(prefix[i] if i < len(prefix) else view.items, item) for i, item in enumerate(instance)]
        return instance

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
        closed = view.property_names is not None and _finite(self._canonical, view.property_names)
        if closed and view.property_names is not None:
            listed = [*listed, *(name for name in instance if name not in listed)]
        names = self._order.of_object(listed, additions=not closed)
        result = {name: instance[name] for name in names if name in instance}
        result.update((name, value) for name, value in instance.items() if name not in result)
        return {name: self.value(self._schema_of(view, name), value) for name, value in result.items()}

    def _schema_of(self, view: forms.ObjectView, name: str) -> CanonicalSchema | None:
        if name in view.properties:
            return view.properties[name]
        import jsonschema_rs

        for pattern, schema in view.pattern_properties.items():
            if jsonschema_rs.is_valid({"pattern": pattern}, name):
                return schema
        return view.additional_properties


def _finite(canonical: Canonical, node: CanonicalSchema) -> bool:
    return isinstance(canonical.resolve(node)[0].view(), (forms.ConstView, forms.EnumView, forms.FalseView))
