"""The scan that finds plain schemas. What it lets pass has some value, and the compiler's meaning is the schema's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import jsonschema_rs

from isogloss.schema import plain_form
from isogloss.schema.exclusive import are_exclusive
from isogloss.schema.pattern_placements import matches_all
from isogloss.schema.patterns import engine_pattern
from isogloss.schema.plain_choices import CHOICES, branches_of, may_be_spread
from isogloss.schema.plain_scalars import (
    NUMBER_BOUNDS,
    SPECIAL,
    TYPES,
    are_literals,
    are_ordered_bounds,
    is_number,
    is_string,
    named_types,
)

MAXIMUM_DEPTH = 60
MAXIMUM_NODES = 10_000
MAXIMUM_ITEMS = 1_024
"""Items are compiled one by one up to the bounds of an array."""

_TAKEN = frozenset(
    {"type", "properties", "required", "additionalProperties", "patternProperties", "minProperties"}
    | {"items", "prefixItems", "additionalItems", "minItems", "maxItems"}
    | {"minLength", "maxLength", "pattern", "format"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    | {"enum", "const", "anyOf", "oneOf", "allOf", "$ref"}
)
_MEANINGFUL = frozenset(
    {"not", "if", "then", "else", "dependentSchemas", "dependentRequired", "dependencies"}
    | {"contains", "minContains", "maxContains", "uniqueItems", "unevaluatedItems"}
    | {"propertyNames", "maxProperties", "unevaluatedProperties", "multipleOf"}
    | {"contentMediaType", "contentEncoding", "contentSchema", "$anchor"}
    | {"$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary", "extends", "disallow"}
    | {"x-guidance"}
)
_IDENTIFIERS = frozenset({"$id", "id", "$schema"})
_RESPELLED = frozenset({"pattern", "oneOf", "allOf", "patternProperties", "minProperties", "additionalItems"})
"""Keywords for which the compiler has other words."""
_DIALECT = re.compile(r"https?://json-schema\.org/(?:draft-0([467])|draft/(2019-09|2020-12))/schema#?")
_REFERENCE = re.compile(r"#(?:/[A-Za-z0-9_$.:@+,=-]+)*")
_SCALARS = ("null", "boolean", "number", "integer", "string")
_OF_CONTAINERS = frozenset(
    {"properties", "required", "additionalProperties", "patternProperties", "minProperties"}
    | {"items", "prefixItems", "additionalItems", "minItems", "maxItems"}
)
_TYPE_ALONE = frozenset({"type"})
_FREE_SCALARS = ("string", "boolean", "null")
_LISTING = frozenset({"enum", "const", "$ref", "oneOf", "allOf"})
MAXIMUM_HOPS = 8
_NOTHING: dict[str, Any] = {}


class Scan:
    """One reading of a document. `root` says whether it is plain; the rest is known then."""

    def __init__(self, document: Mapping[str, Any], *, formats: bool) -> None:
        self.document = document
        self.formats = formats
        self.has_another_form = False
        """Whether the compiler takes the schema in other words only."""
        self.open_keys = False
        self.lists_open_keys = False
        self.open_numbers = False
        self._meaningful = _MEANINGFUL
        self._has_item_lists = False
        self._count = 0
        self._references = 0
        self._optional = 0
        """How many of the schemas that lead here are of something that may be left out."""
        self.targets: set[int] = set()
        """The ids of the schemas that references lead to."""
        self._targets: dict[str, bool | int] = {}
        """Whether what a reference leads to is plain; `_optional` at its start while that is not known."""

    def root(self) -> bool:
        dialect = self.document.get("$schema")
        draft = None
        if dialect is not None:
            found = _DIALECT.fullmatch(dialect) if isinstance(dialect, str) else None
            if found is None:
                return False
            draft = found[1] or found[2]
        if draft == "4":
            self._meaningful = _MEANINGFUL | {"const"}
        self._has_item_lists = draft is not None and draft != "2020-12"
        if self._has_item_lists:
            self._meaningful |= {"prefixItems"}
        if not self._schema(self.document, 0):
            return False
        return not self.has_another_form or all(reference.count("/") < 3 for reference in self._targets)

    def _schema(self, schema: Any, depth: int) -> bool:
        self._count += 1
        if depth > MAXIMUM_DEPTH or self._count > MAXIMUM_NODES:
            return False
        if schema is True:
            self._anything()
            return True
        if not isinstance(schema, dict):
            return False
        keys = schema.keys()
        if not keys.isdisjoint(self._meaningful):
            return False
        taken = keys & _TAKEN
        if not taken.isdisjoint(_RESPELLED):
            self.has_another_form = True
        if depth and not keys.isdisjoint(_IDENTIFIERS):
            return self._identified(schema, taken, depth)
        if taken == _TYPE_ALONE and schema["type"] in _FREE_SCALARS:
            return True
        return self._taken(schema, taken, depth)

    def _identified(self, schema: dict[str, Any], taken: set[str], depth: int) -> bool:
        """A schema with an identifier or a dialect: plain where no reference in it would lead elsewhere.

        A dialect without an identifier says nothing (draft 2019-09, 8.1.1).
        """
        self.has_another_form = True
        if schema.keys().isdisjoint(("$id", "id")):
            return self._taken(schema, taken, depth)
        if schema.get("$schema", self.document.get("$schema")) != self.document.get("$schema"):
            return False
        before = self._references
        return self._taken(schema, taken, depth) and self._references == before

    def _taken(self, schema: dict[str, Any], taken: set[str], depth: int) -> bool:
        if not taken:
            self._anything()
            return True
        if "$ref" in taken:
            return len(taken) == 1 and self._reference(schema["$ref"], depth)
        if "allOf" in taken:
            part = plain_form.only_part(schema)
            return (
                len(taken) == 1
                and part is not None
                and part.keys().isdisjoint(("$defs", "definitions", *_IDENTIFIERS))
                and self._schema(part, depth + 1)
            )
        for choice in CHOICES:
            if choice in taken:
                return may_be_spread(schema, choice, taken) and self._choice(schema, taken, choice, depth)
        if "enum" in taken or "const" in taken:
            if len(taken) > 1 and "const" not in taken:
                self.has_another_form = True
            return are_literals(schema, taken)
        return self._typed(schema, taken, depth)

    def _anything(self) -> None:
        self.open_keys = self.open_numbers = True

    def _reference(self, reference: Any, depth: int) -> bool:
        self._references += 1
        if not isinstance(reference, str) or not _REFERENCE.fullmatch(reference):
            return False
        if reference in self._targets:
            known = self._targets[reference]
            # A reference within what it leads to is well where the way passes something that may be left out.
            return known if isinstance(known, bool) else known < self._optional
        self._targets[reference] = self._optional
        found = self._target(reference)
        self.targets.add(id(found))
        is_plain = found is not None and self._schema(found, depth + 1)
        self._targets[reference] = is_plain
        return is_plain

    def _target(self, reference: str) -> Any:
        found: Any = self.document
        for part in reference.split("/")[1:]:
            found = found.get(part) if isinstance(found, dict) else None
        return found

    def _choice(self, schema: dict[str, Any], taken: set[str], choice: str, depth: int) -> bool:
        types = schema.get("type")
        branches = branches_of(schema)
        if not branches:
            return False
        if len(taken) > 1:
            self.has_another_form = True
        if types is not None and not all(self._is_of(branch, types) for branch in branches):
            return False
        if choice == "oneOf" and not are_exclusive(branches, self._target):
            return False
        return all(self._schema(branch, depth + 1) for branch in branches)

    def _is_of(self, branch: Any, types: Any, hops: int = 0) -> bool:
        """Whether a branch has values of the types that stand beside the choice, as far as it says which it has."""
        allowed = named_types(types)
        if isinstance(branch, dict) and isinstance(branch.get("$ref"), str):
            branch = self._target(branch["$ref"])
        if not isinstance(branch, dict):
            return False
        named = branch.get("type")
        if named is None and types == "object" and hops < MAXIMUM_HOPS and branch.keys().isdisjoint(_LISTING):
            parts = branch.get("anyOf", ())
            if isinstance(parts, list):
                return bool(parts) and all(self._is_of(part, types, hops + 1) for part in parts)
            return "properties" in branch
        if isinstance(named, str):
            return named in allowed
        return isinstance(named, list) and bool(named) and allowed >= named_types(named)

    def _typed(self, schema: dict[str, Any], taken: set[str], depth: int) -> bool:
        types = schema.get("type")
        if isinstance(types, str):
            types = (types,)
        elif types is None:
            types = TYPES
            self._anything()
        if not isinstance(types, (list, tuple)) or not types:
            return False
        for name in types:
            if name == "object":
                if not self._object(schema, taken, depth):
                    return False
            elif name == "array":
                if not self._array(schema, taken, depth):
                    return False
            elif name == "string":
                if "format" in taken:  # the compiler refuses those that it does not know, of strings alone
                    self.has_another_form = True
                if not is_string(schema, taken, formats=self.formats):
                    return False
            elif name in ("number", "integer"):
                bounds = taken & NUMBER_BOUNDS
                if name == "number" or len(bounds) < 2:  # two are one at each end, or are not taken
                    self.open_numbers = True
                if not is_number(schema, bounds, integers=name == "integer"):
                    return False
            elif name not in ("null", "boolean"):
                return False
        return True

    def _object(self, schema: dict[str, Any], taken: set[str], depth: int) -> bool:
        properties = schema.get("properties", _NOTHING)
        required = schema.get("required", ())
        additional = schema.get("additionalProperties", True)
        if not isinstance(properties, dict) or not isinstance(required, (list, tuple)):
            return False
        names = list(properties)
        if not all(isinstance(name, str) for name in required) or SPECIAL.search("".join([*names, *required])):
            return False
        if schema.get("patternProperties"):
            if not self._keys_of_a_pattern(schema, depth):
                return False
        elif additional is False:
            if not properties.keys() >= set(required):
                return False
        else:
            self.open_keys = True
            if names or required:
                self.lists_open_keys = True
            if additional is True:
                self.open_numbers = True
            elif not self._left_out(additional, depth):
                return False
        needed = set(required)
        if schema.get("minProperties") and not self._has_a_key(schema, needed, additional is False):
            return False
        for name, child in properties.items():
            if not (self._schema(child, depth + 1) if name in needed else self._left_out(child, depth)):
                return False
        return True

    def _keys_of_a_pattern(self, schema: dict[str, Any], depth: int) -> bool:
        """Whether the other keys of an object are told by the one pattern there is."""
        patterns = schema["patternProperties"]
        if not isinstance(patterns, dict) or len(patterns) != 1 or schema.get("minProperties"):
            return False
        ((pattern, child),) = patterns.items()
        is_every_key = matches_all(pattern)
        if not is_every_key and (schema.get("additionalProperties") is not False or engine_pattern(pattern) is None):
            return False
        listed = schema.get("properties", _NOTHING)
        if (listed or schema.get("required")) and (
            is_every_key
            or not listed.keys() >= set(schema.get("required", ()))
            or not all(_is_silent_on(child, listed[name]) for name in _matched(pattern, listed))
        ):
            return False
        self.open_keys = True
        return self._left_out(child, depth)

    def _has_a_key(self, schema: dict[str, Any], needed: set[str], is_closed: bool) -> bool:
        """Whether ``minProperties`` asks for no more than required keys, or for any one of those that are listed."""
        least = schema["minProperties"]
        if type(least) is not int:
            return False
        return 0 <= least <= len(needed) or (least == 1 and is_closed and len(schema.get("properties", ())) > 0)

    def _left_out(self, schema: Any, depth: int) -> bool:
        """A schema of something that may be left out."""
        self._optional += 1
        is_plain = self._schema(schema, depth + 1)
        self._optional -= 1
        return is_plain

    def _array(self, schema: dict[str, Any], taken: set[str], depth: int) -> bool:
        if not are_ordered_bounds(schema, "minItems", "maxItems", MAXIMUM_ITEMS):
            return False
        if isinstance(schema.get("items"), list) and not self._has_item_lists:
            return False
        prefix, rest = plain_form.items_of(schema)
        if prefix or isinstance(schema.get("items"), list):
            self.has_another_form = True
        if not isinstance(prefix, list) or len(prefix) > MAXIMUM_ITEMS:
            return False
        least = schema.get("minItems") or 0
        for position, item in enumerate(prefix):
            if not (self._schema(item, depth + 1) if position < least else self._left_out(item, depth)):
                return False
        if rest is False:
            return bool(prefix) and least <= len(prefix)
        if rest is None:
            self._anything()
            return True
        return self._schema(rest, depth + 1) if least > len(prefix) else self._left_out(rest, depth)


def _matched(pattern: str, names: Iterable[str]) -> list[str]:
    validator = jsonschema_rs.validator_for({"pattern": pattern})
    return [name for name in names if validator.is_valid(name)]


def _is_silent_on(schema: Any, other: Any) -> bool:
    """Whether a schema speaks of objects and arrays only, and another admits neither."""
    return (
        isinstance(schema, dict)
        and isinstance(other, dict)
        and schema.keys() & _TAKEN <= _OF_CONTAINERS
        and other.get("type") in _SCALARS
    )
