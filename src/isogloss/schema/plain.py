"""Schemas that the grammar engine's own JSON Schema compiler takes exactly, found by one cheap scan.

Most schemas of tools and answers are made of a handful of keywords. They need not be brought into canonical form:
compiling them as they are is several times faster than compiling a grammar text. What that compiler leaves open
(digits without end, keys that come twice, listed keys spelled with escapes) is noted for the guards.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from isogloss.schema.formats import GUARDED, KNOWN, format_alternatives
from isogloss.schema.guards import Guards
from isogloss.schema.patterns import engine_pattern

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
        "pattern",
        "format",
        "oneOf",
    }
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "enum", "const", "anyOf", "$ref"}
)
_MEANINGFUL = frozenset(
    {"allOf", "not", "if", "then", "else", "dependentSchemas", "dependentRequired", "dependencies"}
    | {"prefixItems", "additionalItems", "contains", "minContains", "maxContains", "uniqueItems", "unevaluatedItems"}
    | {"patternProperties", "propertyNames", "minProperties", "maxProperties", "unevaluatedProperties", "multipleOf"}
    | {"contentMediaType", "contentEncoding", "contentSchema", "$id", "id", "$anchor", "$schema"}
    | {"$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary", "extends", "disallow"}
    | {"x-guidance"}
)
_AT_THE_ROOT = frozenset({"$schema", "$id", "id"})
_DIALECT = re.compile(r"https?://json-schema\.org/(?:draft-0[467]|draft/2019-09|draft/2020-12)/schema#?")
_REFERENCE = re.compile(r"#(?:/[A-Za-z0-9_$.:@+,=-]+)*")
_SPECIAL = re.compile(r"[\"\\<>&'\x00-\x1f\x7f\ud800-\udfff]")
"""Characters that have more spellings in JSON than the compiler takes in a literal."""


class PlainSchema(msgspec.Struct, frozen=True):
    """A schema that the compiler takes exactly, in the form in which it does, and what it leaves open of it."""

    form: dict[str, Any]
    guards: Guards


def plain_schema(schema: Any, *, formats: bool = True) -> PlainSchema | None:
    """The schema as the compiler takes it; None for one that it does not take exactly."""
    if not isinstance(schema, Mapping):
        return None
    scan = _Scan(schema, formats=formats)
    if not scan.root():
        return None
    form = _engine_form(schema, formats) if scan.spells_strings else schema
    guards = Guards(open_keys=scan.open_keys, escaped_keys=not scan.lists_open_keys, open_numbers=scan.open_numbers)
    return PlainSchema({**form, "x-guidance": ENGINE_OPTIONS}, guards)


def _engine_form(schema: Any, formats: bool) -> Any:
    """A plain schema with its patterns spelled for the engine and its formats as patterns."""
    if not isinstance(schema, Mapping):
        return schema
    form: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs", "definitions") and isinstance(value, Mapping):
            form[key] = {name: _engine_form(child, formats) for name, child in value.items()}
        elif key in ("items", "additionalProperties"):
            form[key] = _engine_form(value, formats)
        elif key in ("anyOf", "oneOf"):
            form[key] = [_engine_form(branch, formats) for branch in value]
        elif key == "pattern":
            form[key] = engine_pattern(value) if isinstance(value, str) else value
        elif key != "format":
            form[key] = value
    name = schema.get("format")
    if formats and isinstance(name, str) and name in KNOWN and name not in GUARDED:
        pattern = engine_pattern(format_alternatives(name)[0][0])
        if "pattern" in form:
            form["allOf"] = [{"pattern": pattern}]
        else:
            form["pattern"] = pattern
    return form


class _Scan:
    def __init__(self, document: Mapping[str, Any], *, formats: bool) -> None:
        self.document = document
        self.formats = formats
        self.spells_strings = False
        """Whether some pattern or format has to be spelled for the engine."""
        self.open_keys = False
        self.lists_open_keys = False
        self.open_numbers = False
        self._meaningful = _MEANINGFUL
        self._count = 0
        self._optional = 0
        """How many of the schemas that lead here are of something that may be left out."""
        self._targets: dict[str, bool | int] = {}
        """Whether what a reference leads to is plain; `_optional` at its start while that is not known."""

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
        for choice in ("anyOf", "oneOf"):
            if choice in taken:
                branches = schema[choice]
                return (
                    len(taken) == 1
                    and isinstance(branches, list)
                    and len(branches) > 0
                    and (choice == "anyOf" or _differ_in_type(branches))
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
            known = self._targets[reference]
            # A reference within what it leads to is well where the way passes something that may be left out.
            return known if isinstance(known, bool) else known < self._optional
        self._targets[reference] = self._optional
        found: Any = self.document
        for part in reference.split("/")[1:]:
            found = found.get(part) if isinstance(found, dict) else None
        is_plain = found is not None and self._schema(found, depth + 1)
        self._targets[reference] = is_plain
        return is_plain

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
        if "pattern" in taken or "format" in taken:
            self.spells_strings = True
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
                if not _ordered_bounds(schema, "minLength", "maxLength", MAXIMUM_LENGTH) or not self._string(schema):
                    return False
            elif name in ("number", "integer"):
                if not self._number(schema, taken, integers=name == "integer"):
                    return False
            elif name not in ("null", "boolean"):
                return False
        return True

    def _string(self, schema: dict[str, Any]) -> bool:
        pattern, name = schema.get("pattern"), schema.get("format")
        if pattern is not None and (not isinstance(pattern, str) or engine_pattern(pattern) is None):
            return False
        if self.formats and isinstance(name, str) and name in KNOWN:
            return _is_spelled(name)
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
            elif not self._left_out(additional, depth):
                return False
        needed = set(required)
        return all(
            self._schema(child, depth + 1) if name in needed else self._left_out(child, depth)
            for name, child in properties.items()
        )

    def _left_out(self, schema: Any, depth: int) -> bool:
        """A schema of something that may be left out."""
        self._optional += 1
        is_plain = self._schema(schema, depth + 1)
        self._optional -= 1
        return is_plain

    def _array(self, schema: dict[str, Any], taken: set[str], depth: int) -> bool:
        if "items" not in taken:
            self._anything()
        elif not (
            self._schema(schema["items"], depth + 1)
            if schema.get("minItems")
            else self._left_out(schema["items"], depth)
        ):
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


def _differ_in_type(branches: list[Any]) -> bool:
    """Whether every branch names its types and no two have one in common."""
    seen: set[str] = set()
    for branch in branches:
        types = branch.get("type") if isinstance(branch, dict) else None
        named = {types} if isinstance(types, str) else set(types) if isinstance(types, list) else set()
        if "number" in named:
            named.add("integer")
        if not named or named & seen:
            return False
        seen |= named
    return True


@functools.cache
def _is_spelled(name: str) -> bool:
    """Whether a format can be told to the engine's compiler as one pattern."""
    if name in GUARDED:
        return False
    (together, *more) = format_alternatives(name)
    return not more and len(together) == 1 and engine_pattern(together[0]) is not None
