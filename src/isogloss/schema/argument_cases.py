"""The arguments of a call as cases, for notations that write each argument by itself.

Most parameters' schemas list properties and say which are required, and need no cases. Any other is brought into
canonical form, whose shapes of objects are the cases: which keys there are, what each holds, and how many there may be.
"""

from __future__ import annotations

import functools
from typing import Any

import msgspec
from jsonschema_rs import CanonicalSchema
from jsonschema_rs import canonical as forms

from isogloss.errors import UnsatisfiableSchemaError
from isogloss.schema.canonical import Canonical
from isogloss.schema.key_order import KeyOrder
from isogloss.schema.keywords import assertions
from isogloss.schema.view import SchemaView, shared_view

MAXIMUM_CASES = 64
LARGEST_KEPT = 65_536
"""Bytes of a schema that is kept with its cases: a bound on memory."""
_LISTS_PROPERTIES = frozenset({"type", "properties", "required", "additionalProperties"})


class Argument(msgspec.Struct, frozen=True):
    """One key and what its value may be.

    ``reads_as_such``: whether raw text that stands for such a value is read as that, for it is read under the schema of
    the parameters, which knows no cases.
    """

    name: str
    view: SchemaView
    is_required: bool
    reads_as_such: bool = True


class ArgumentCase(msgspec.Struct, frozen=True):
    """One shape of arguments: its keys in the order of the schema, and how many of them there are at least and at most.

    ``others`` is what further keys hold; None where there may be none, or none are looked for. Where it is not exact,
    there are arguments of this shape that the schema does not permit.
    """

    arguments: tuple[Argument, ...]
    others: SchemaView | None
    least: int = 0
    most: int | None = None
    is_exact: bool = True

    @property
    def is_counted(self) -> bool:
        """Whether the number of keys is bound by more than which of them are required."""
        if self.least > sum(argument.is_required for argument in self.arguments):
            return True
        return self.most is not None and (self.others is not None or self.most < len(self.arguments))


def argument_cases(schema: Any) -> tuple[ArgumentCase, ...]:
    """The cases of a schema of parameters: objects that satisfy any of them satisfy the schema, and the other way
    round as far as keys that are not listed are looked for.

    Raises `UnsatisfiableSchemaError` where no object does, and what `Canonical` raises.
    """
    view = shared_view(schema)
    if assertions(view) <= _LISTS_PROPERTIES and len(view.parts) == 1 and view.required <= view.properties.keys():
        return (ArgumentCase(_listed(view), _others(view)),)
    text = msgspec.json.encode(schema)
    return _kept(text) if len(text) <= LARGEST_KEPT else _spelled_out(text)


@functools.lru_cache(maxsize=128)
def _kept(text: bytes) -> tuple[ArgumentCase, ...]:
    return _spelled_out(text)


def _spelled_out(text: bytes) -> tuple[ArgumentCase, ...]:
    schema = msgspec.json.decode(text)
    view = SchemaView(schema)
    cases = _Cases(schema, view)
    cases.add(cases.canonical.root)
    if not cases.found:
        raise UnsatisfiableSchemaError("No object satisfies the schema of the parameters", pointer="")
    if len(cases.found) > MAXIMUM_CASES:
        return (ArgumentCase(_listed(view), _others(view), is_exact=False),)
    return tuple(cases.found)


def _listed(view: SchemaView) -> tuple[Argument, ...]:
    return tuple(
        Argument(name, member, name in view.required)
        for name, member in view.properties.items()
        if member.schema is not False or name in view.required
    )


def _others(view: SchemaView) -> SchemaView | None:
    """Further keys where the schema is open to any or says what they hold."""
    says_so = any(part.get("additionalProperties") not in (None, False) for part in view.parts)
    is_open = not view.is_closed and (says_so or not view.properties)
    return (view.additional or SchemaView(True)) if is_open else None


class _Cases:
    def __init__(self, schema: Any, view: SchemaView) -> None:
        self.canonical = Canonical(schema)
        self.found: list[ArgumentCase] = []
        self._schema = schema
        self._view = view
        self._order = KeyOrder([schema])
        self._is_open = _others(view) is not None

    def add(self, node: CanonicalSchema) -> None:
        """Add the objects of a node."""
        resolved, is_exact = self.canonical.resolve(node)
        known = len(self.found)
        is_exact = self._add(resolved) and is_exact and self.canonical.exact
        if not is_exact:
            self.found[known:] = [msgspec.structs.replace(case, is_exact=False) for case in self.found[known:]]

    def _add(self, resolved: CanonicalSchema) -> bool:
        """Add the objects of a shape or a choice, and tell whether no others were added."""
        view = resolved.view()
        are_exact = True
        if isinstance(view, (forms.AnyOfView, forms.OneOfView)):
            branches = view.branches
            if isinstance(view, forms.OneOfView):
                branches, are_exact = self.canonical.exclusive(resolved)
            for branch in branches:
                self.add(branch)
        elif isinstance(view, forms.TypedGroupView):
            self.add(view.body)
        elif isinstance(view, (forms.ConstView, forms.EnumView)):
            values = [view.value] if isinstance(view, forms.ConstView) else view.values
            self.found += [self._of_value(value) for value in values if isinstance(value, dict)]
        elif isinstance(view, forms.ObjectView):
            case = self._of_object(view)
            if case is not None:
                self.found.append(case)
        elif isinstance(view, forms.TrueView) or (isinstance(view, forms.MultiTypeView) and "object" in view.types):
            self.found.append(ArgumentCase((), SchemaView(True) if self._is_open else None))
        elif isinstance(view, (forms.RawView, forms.NotView)):
            self.found.append(ArgumentCase(_listed(self._view), _others(self._view), is_exact=False))
        return are_exact

    def _of_value(self, members: dict[str, Any]) -> ArgumentCase:
        names = self._order.of_literal(members)
        views = [(name, SchemaView({"const": members[name]})) for name in names]
        return ArgumentCase(tuple(Argument(name, view, True, not view.allows_string) for name, view in views), None)

    def _of_object(self, view: forms.ObjectView) -> ArgumentCase | None:
        finite = None if view.property_names is None else self.canonical.finite_strings(view.property_names)
        is_open = self._is_open and view.property_names is None
        required = dict.fromkeys(view.required)
        names = [*view.properties, *required, *(finite or ())]
        found = []
        for name in self._order.of_object(dict.fromkeys(names), required, additions=finite is None):
            held = view.properties.get(name, view.additional_properties)
            if self._admits(view, finite, name) and not _is_never(held):
                found.append(self._argument(name, held, name in required))
            elif name in required:
                return None
        others = view.additional_properties
        return ArgumentCase(
            tuple(found),
            SchemaView(True if others is None else others.to_json_schema()) if is_open else None,
            view.min_properties or 0,
            view.max_properties,
            is_exact=not view.pattern_properties and not view.violations,
        )

    def _admits(self, view: forms.ObjectView, finite: list[str] | None, name: str) -> bool:
        if finite is not None:
            return name in finite
        return view.property_names is None or self.canonical.validator(view.property_names).is_valid(name)

    def _argument(self, name: str, held: CanonicalSchema | None, is_required: bool) -> Argument:
        reading = self._view.member(name)
        if held is None:
            return Argument(name, SchemaView(True), is_required)
        if reading is not None and Canonical(reading.standalone()).root == held:
            return Argument(name, reading, is_required)
        narrowed = SchemaView(self._in_order(reading, held.to_json_schema()))
        both_are_strings = narrowed.only_string and reading is not None and reading.only_string
        return Argument(name, narrowed, is_required, not narrowed.allows_string or both_are_strings)

    def _in_order(self, reading: SchemaView | None, schema: Any) -> Any:
        """The schema with the order of keys that the canonical form has lost."""
        if reading is None or "$defs" in schema:
            return schema
        return reading.view_of({"allOf": [reading.schema, schema]}).standalone()


def _is_never(node: CanonicalSchema | None) -> bool:
    return node is not None and isinstance(node.view(), forms.FalseView)
