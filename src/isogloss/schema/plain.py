"""Schemas that the grammar engine's own JSON Schema compiler takes exactly, found by one cheap scan.

Most schemas of tools and answers are made of a handful of keywords. They need not be brought into canonical form:
compiling them as they are is several times faster than compiling a grammar text. What that compiler leaves open
(digits without end, keys that come twice, listed keys spelled with escapes) is noted for the guards.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from isogloss.schema.guards import Guards

MAXIMUM_DEPTH = 60
MAXIMUM_NODES = 10_000
MAXIMUM_ITEMS = 256
"""Items are compiled one by one up to the bounds of an array."""
MAXIMUM_VALUES = 5_000
MAXIMUM_LENGTH = 10_000

WHITE_SPACE = r"[ \t]{1,2}|\r?\n[ \t]{0,40}"
ENGINE_OPTIONS = {"whitespace_pattern": WHITE_SPACE, "json_allow_general_unicode_escapes": True}
"""Options of the compiler: white space as bounded as in grammars written here, every JSON escape in free strings."""

_TYPES = {"null", "boolean", "number", "integer", "string", "array", "object"}
_TAKEN = frozenset(
    {
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
    }
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "enum", "const", "anyOf", "$ref"}
)
_MEANINGFUL = frozenset(
    {"allOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependentRequired", "dependencies"}
    | {"prefixItems", "additionalItems", "contains", "minContains", "maxContains", "uniqueItems", "unevaluatedItems"}
    | {"patternProperties", "propertyNames", "minProperties", "maxProperties", "unevaluatedProperties", "multipleOf"}
    | {"pattern", "format", "contentMediaType", "contentEncoding", "contentSchema", "$id", "id", "$anchor", "$schema"}
    | {"$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary", "extends", "disallow"}
    | {"x-guidance"}
)
_AT_THE_ROOT = frozenset({"$schema", "$id", "id"})
_DIALECT = re.compile(r"https?://json-schema\.org/(?:draft-0[467]|draft/2019-09|draft/2020-12)/schema#?")
_REFERENCE = re.compile(r"#(?:/[A-Za-z0-9_$.:@+,=-]+)*")
_SPECIAL = re.compile(r"[\"\\<>&'\x00-\x1f\x7f\ud800-\udfff]")
"""Characters that have more spellings in JSON than the compiler takes in a literal."""


def plain_guards(schema: Any) -> Guards | None:
    """What the compiler leaves open of a schema that it takes exactly; None for any other schema."""
    if not isinstance(schema, Mapping):
        return None
    scan = _Scan(schema)
    if not scan.root():
        return None
    return Guards(open_keys=scan.open_keys, escaped_keys=not scan.lists_open_keys, open_numbers=scan.open_numbers)


class _Scan:
    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self.open_keys = False
        self.lists_open_keys = False
        self.open_numbers = False
        self._meaningful = _MEANINGFUL
        self._count = 0
        self._targets: dict[str, bool | None] = {}

    def root(self) -> bool:
        dialect = self.document.get("$schema")
        if dialect is not None and not (isinstance(dialect, str) and _DIALECT.fullmatch(dialect)):
            return False
        if dialect is not None and "draft-04" in dialect:
            self._meaningful = _MEANINGFUL | {"const"}
        return self._schema(self.document, 0, at_root=True)

    def _schema(self, schema: Any, depth: int, *, at_root: bool = False) -> bool:
        self._count += 1
        if depth > MAXIMUM_DEPTH or self._count > MAXIMUM_NODES:
            return False
        if schema is True:
            self._anything()
            return True
        if not isinstance(schema, dict):
            return False
        taken = schema.keys() & _TAKEN
        if schema.keys() & self._meaningful - (_AT_THE_ROOT if at_root else frozenset()):
            return False
        if not taken:
            self._anything()
            return True
        if "$ref" in taken:
            return len(taken) == 1 and self._reference(schema["$ref"], depth)
        if "anyOf" in taken:
            branches = schema["anyOf"]
            return (
                len(taken) == 1
                and isinstance(branches, list)
                and len(branches) > 0
                and all(self._schema(branch, depth + 1) for branch in branches)
            )
        if "enum" in taken or "const" in taken:
            return self._literals(schema, taken)
        return self._typed(schema, taken, depth)

    def _anything(self) -> None:
        self.open_keys = self.open_numbers = True

    def _reference(self, reference: Any, depth: int) -> bool:
        if not isinstance(reference, str) or not _REFERENCE.fullmatch(reference):
            return False
        if reference in self._targets:
            return bool(self._targets[reference])  # None: it leads back to itself
        self._targets[reference] = None
        found: Any = self.document
        for part in reference.split("/")[1:]:
            found = found.get(part) if isinstance(found, dict) else None
        self._targets[reference] = found is not None and self._schema(found, depth + 1)
        return bool(self._targets[reference])

    def _literals(self, schema: dict[str, Any], taken: set[str]) -> bool:
        if taken - {"type", "enum", "const"} or {"enum", "const"} <= taken:
            return False
        values = schema["enum"] if "enum" in taken else [schema["const"]]
        types = schema.get("type")
        if not isinstance(values, list) or not 0 < len(values) <= MAXIMUM_VALUES:
            return False
        allowed = None if types is None else {types} if isinstance(types, str) else set(types)
        if allowed is not None and "number" in allowed:
            allowed.add("integer")
        for value in values:
            kind = _LITERAL_TYPES.get(type(value))
            if kind is None or (allowed is not None and kind not in allowed):
                return False
            if kind == "string" and _SPECIAL.search(value):
                return False
            if kind == "integer" and abs(value) > 1 << 53:
                return False
        return True

    def _typed(self, schema: dict[str, Any], taken: set[str], depth: int) -> bool:
        types = schema.get("type")
        if isinstance(types, str):
            types = (types,)
        elif types is None:
            types = tuple(_TYPES)
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
                if not _ordered_bounds(schema, "minLength", "maxLength", MAXIMUM_LENGTH):
                    return False
            elif name in ("number", "integer"):
                if not self._number(schema, taken, integers=name == "integer"):
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
        if not all(isinstance(name, str) for name in required) or _SPECIAL.search("".join([*names, *required])):
            return False
        if additional is False:
            if not properties.keys() >= set(required):
                return False
        else:
            self.open_keys = True
            if names or required:
                self.lists_open_keys = True
            if additional is True:
                self.open_numbers = True
            elif not self._schema(additional, depth + 1):
                return False
        return all(self._schema(child, depth + 1) for child in properties.values())

    def _array(self, schema: dict[str, Any], taken: set[str], depth: int) -> bool:
        if "items" not in taken:
            self._anything()
        elif not self._schema(schema["items"], depth + 1):
            return False
        return _ordered_bounds(schema, "minItems", "maxItems", MAXIMUM_ITEMS)

    def _number(self, schema: dict[str, Any], taken: set[str], *, integers: bool) -> bool:
        bounds = taken & _NUMBER_BOUNDS
        if not bounds:
            self.open_numbers = True
            return True
        if len(bounds & {"minimum", "exclusiveMinimum"}) > 1 or len(bounds & {"maximum", "exclusiveMaximum"}) > 1:
            return False
        for name in bounds:
            value = schema[name]
            if type(value) is not int and (integers or type(value) is not float):
                return False
            if not -1e15 < value < 1e15:
                return False
        low = schema.get("minimum", schema.get("exclusiveMinimum"))
        high = schema.get("maximum", schema.get("exclusiveMaximum"))
        if not integers or low is None or high is None:
            self.open_numbers = True
        if low is None or high is None:
            return True
        slack = len(bounds & {"exclusiveMinimum", "exclusiveMaximum"})
        return bool(low + slack <= high if integers else low < high or (low == high and not slack))


_NOTHING: dict[str, Any] = {}
_NUMBER_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_LITERAL_TYPES: dict[type, str] = {str: "string", int: "integer", bool: "boolean", type(None): "null"}


def _ordered_bounds(schema: dict[str, Any], low_name: str, high_name: str, most: int) -> bool:
    low, high = schema.get(low_name, 0), schema.get(high_name)
    if type(low) is not int or not 0 <= low <= most:
        return False
    return high is None or (type(high) is int and low <= high <= most)
