"""The strict subset of JSON Schema, as Structured Outputs has it: every rule and limit, in the API's own words.

Clients of the OpenAI API, and people who search the web for its errors, know these sentences; ``context=`` is a Python
tuple of the path into the schema. The API stops at the first fault, `check_strict` names them all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from reprlib import Repr
from typing import Any, Literal

import msgspec

from isogloss.errors import StrictSchemaError
from isogloss.schema.references import MISSING, References

MOST_PROPERTIES = 5_000
"""Object properties, over the whole schema."""

DEEPEST_NESTING = 10
"""Steps into ``properties`` and ``items`` on one path; unions and references are no steps."""

MOST_CHARACTERS = 120_000
"""Characters in all names of properties and definitions and all strings in ``enum`` and ``const``."""

MOST_ENUM_VALUES = 1_000
"""Values in all ``enum``."""

LARGE_ENUM = 250
MOST_LARGE_ENUM_CHARACTERS = 15_000
"""Characters in one ``enum`` of strings that has more than `LARGE_ENUM` values."""

TYPES = frozenset({"string", "number", "boolean", "integer", "object", "array", "null"})

FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})

KEYWORDS = frozenset(
    {
        *("type", "enum", "const", "anyOf", "$ref"),
        *("properties", "required", "additionalProperties"),
        *("items", "minItems", "maxItems"),
        *("pattern", "format"),
        *("multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("title", "description"),
    }
)
"""Keywords permitted in every schema. ``default`` is, too, when it is null."""

ROOT_KEYWORDS = frozenset({"$defs", "definitions", "$schema"})
"""Keywords permitted at the root besides."""

DEFINITIONS = ("$defs", "definitions")

_NOT_AT_ROOT = ("anyOf", "enum", "const")
_UNIONS = frozenset({"anyOf", "oneOf", "allOf"})

_MOST_NODES = 120_000
_LONGEST_PATH = 64
_MOST_VIOLATIONS = 1_000
_MOST_MESSAGE_CHARACTERS = 1_000_000


class Violation(msgspec.Struct, frozen=True):
    """One reason why a schema is outside the strict subset.

    ``pointer`` is the JSON pointer of the schema that is at fault (``""``: the root), ``keyword`` the keyword in it.
    """

    pointer: str
    keyword: str
    message: str


def check_strict(schema: object) -> list[Violation]:
    """Every reason why the schema is outside the strict subset, outermost first; empty when there is none.

    Never raises and takes time linear in the schema's size, whatever it is given. Only a schema that is far outside
    every limit may have more faults than the 1,000 that are listed.
    """
    return _Check(schema).run()


def ensure_strict(
    schema: object, *, name: str = "response", what: Literal["response_format", "function"] = "response_format"
) -> None:
    """Raise `StrictSchemaError` with every violation, worded after the first, unless the schema is strict."""
    violations = check_strict(schema)
    if violations:
        raise StrictSchemaError(
            api_message(violations[0], name=name, what=what), violations, pointer=violations[0].pointer
        )


def api_message(
    violation: Violation, *, name: str, what: Literal["response_format", "function"] = "response_format"
) -> str:
    """The violation as the API words it: ``Invalid schema for response_format 'NAME': In context=(), ...``."""
    return f"Invalid schema for {what} '{name}': {violation.message}"


def check_name(name: str, *, parameter: str) -> list[Violation]:
    """What is wrong with the name of a schema or function; ``parameter`` is where the request has it."""
    violations = []
    if len(name) > 64:
        violations.append(
            f"Invalid '{parameter}': string too long. "
            f"Expected a string with maximum length 64, but got a string with length {len(name)} instead."
        )
    if not name:
        violations.append(
            f"Invalid '{parameter}': empty string. "
            "Expected a string with minimum length 1, but got an empty string instead."
        )
    elif not _NAME.match(name):
        violations.append(
            f"Invalid '{parameter}': string does not match pattern. "
            "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        )
    return [Violation("", "name", message) for message in violations]


_NAME = re.compile(r"[a-zA-Z0-9_-]+\Z")


class _Place:
    """Where in the schema: a step down from another place. ``length`` counts the keys on the way."""

    __slots__ = ("above", "keys", "length")

    def __init__(self, above: _Place | None, keys: tuple[str, ...]) -> None:
        self.above = above
        self.keys = keys
        self.length: int = len(keys) + (above.length if above is not None else 0)

    def path(self) -> tuple[str, ...]:
        steps: list[tuple[str, ...]] = []
        place: _Place | None = self
        while place is not None:
            steps.append(place.keys)
            place = place.above
        return tuple([key for keys in reversed(steps) for key in keys])


class _Check:
    """One walk over a schema, outermost first, with its faults and its size."""

    def __init__(self, schema: object) -> None:
        self.root = schema
        self.references = References(schema)
        self.violations: list[Violation] = []
        self.characters_listed = 0
        self.properties = 0
        self.depth = 0
        self.characters = 0
        self.enum_values = 0

    def run(self) -> list[Violation]:
        self._root()
        stack: list[tuple[object, _Place, int]] = [(self.root, _Place(None, ()), 0)]
        nodes = 0
        while stack and nodes < _MOST_NODES:
            schema, place, depth = stack.pop()
            nodes += 1
            self.depth = max(self.depth, depth)
            if isinstance(schema, dict):
                self._count(schema, place)
            if place.length <= _LONGEST_PATH:
                self._schema(schema, place)
            if isinstance(schema, dict):
                stack.extend(reversed(list(_inside(schema, place, depth))))
        self._limits()
        if stack and not self.violations:  # a Python object that contains itself
            self._report("", "", "Please ensure it is a valid JSON Schema.")
        return self.violations

    # Reporting

    def _report(self, pointer: str, keyword: str, message: str, *, always: bool = False) -> None:
        self.characters_listed += len(pointer) + len(message)
        fits = len(self.violations) < _MOST_VIOLATIONS and self.characters_listed < _MOST_MESSAGE_CHARACTERS
        if fits or always:
            self.violations.append(Violation(pointer, keyword, message))

    def _fault(self, place: _Place, keyword: str, message: str, *, variant: tuple[str, ...] = ()) -> None:
        """A fault worded with its context. ``variant`` is the member of a list of types that it is about."""
        path = place.path()
        self._report(_pointer(path), keyword, f"In context={path + variant!r}, {message}")

    def _malformed(self, place: _Place, keyword: str, message: str) -> None:
        """Not JSON Schema at all; the API words it as its validator of schemas does, without context."""
        self._report(_pointer(place.path()), keyword, message)

    # Rules

    def _root(self) -> None:
        root = self.root
        if not isinstance(root, dict):
            return
        if root.get("type") != "object":
            named = root.get("type")
            shown = named if isinstance(named, str) else _shown(named)
            self._report("", "type", f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{shown}\"'.")
        for keyword in _NOT_AT_ROOT:
            if keyword in root:
                self._report(
                    "",
                    keyword,
                    "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'const'/'not' "
                    "at the top level.",
                )

    def _schema(self, schema: object, place: _Place) -> None:
        if isinstance(schema, bool):
            self._fault(place, "type", "schema must have a 'type' key.")
        elif not isinstance(schema, dict):
            self._malformed(place, "", f"{_shown(schema)} is not of type 'object', 'boolean'")
        elif "$ref" in schema:
            self._reference(schema, place)
        else:
            self._keywords(schema, place)
            self._types(schema, place)

    def _reference(self, schema: dict[str, Any], place: _Place) -> None:
        siblings = [key for key in schema if key != "$ref" and not (place.length == 0 and key in ROOT_KEYWORDS)]
        if siblings:
            listed = ", ".join(sorted(map(_shown, siblings)))
            path = place.path()
            self._report(_pointer(path), "$ref", f"context={path!r}, $ref cannot have keywords {{{listed}}}.")
        reference = schema["$ref"]
        if not isinstance(reference, str):
            self._malformed(place, "$ref", f"{_shown(reference)} is not of type 'string'")
        elif not self._is_top_level(reference):
            self._fault(
                place, "$ref", "reference can only point to definitions defined at the top level of the schema."
            )

    def _is_top_level(self, reference: str) -> bool:
        if reference == "#":
            return True
        parts = reference.split("/")
        return (
            len(parts) == 3
            and parts[0] == "#"
            and parts[1] in DEFINITIONS
            and self.references.resolve(reference) is not MISSING
        )

    def _keywords(self, schema: dict[str, Any], place: _Place) -> None:
        permitted = KEYWORDS | ROOT_KEYWORDS if place.length == 0 else KEYWORDS
        for keyword, value in schema.items():
            if keyword not in permitted and not (keyword == "default" and value is None):
                self._fault(place, str(keyword), f"{_shown(keyword)} is not permitted.")
                continue
            complaint = _complaint(keyword, value)
            if complaint is not None:
                self._malformed(place, keyword, complaint)
            elif keyword == "format" and value not in FORMATS:
                self._fault(place, keyword, f"{_shown(value)} is not a valid format.")

    def _types(self, schema: dict[str, Any], place: _Place) -> None:
        named = schema.get("type")
        if "type" not in schema:
            if place.length > 0 and _UNIONS.isdisjoint(schema):
                self._fault(place, "type", "schema must have a 'type' key.")
        elif isinstance(named, str) and named in TYPES:
            self._typed(schema, place, named, ())
        elif isinstance(named, list) and named and all(isinstance(name, str) and name in TYPES for name in named):
            for position, name in enumerate(named):
                self._typed(schema, place, name, ("type", str(position)))
        else:
            self._malformed(place, "type", f"{_shown(named)} is not valid under any of the given schemas")

    def _typed(self, schema: dict[str, Any], place: _Place, name: str, variant: tuple[str, ...]) -> None:
        if name == "array" and "items" not in schema:
            self._fault(place, "items", "array schema missing items.", variant=variant)
        elif name == "object":
            if "properties" not in schema:
                self._fault(place, "properties", "object schema missing properties.", variant=variant)
            if schema.get("additionalProperties") is not False:
                message = "'additionalProperties' is required to be supplied and to be false."
                self._fault(place, "additionalProperties", message, variant=variant)
            for detail in _required_details(schema):
                message = (
                    "'required' is required to be supplied and to be an array including every key in properties. "
                    + detail
                )
                self._fault(place, "required", message, variant=variant)

    # Limits

    def _count(self, schema: dict[str, Any], place: _Place) -> None:
        properties = schema.get("properties")
        if isinstance(properties, dict):
            self.properties += len(properties)
            self.characters += sum(map(_length, properties))
        for keyword in DEFINITIONS:
            if isinstance(schema.get(keyword), dict):
                self.characters += sum(map(_length, schema[keyword]))
        self.characters += _length(schema.get("const"))
        values = schema.get("enum")
        if isinstance(values, list):
            length = sum(map(_length, values))
            self.enum_values += len(values)
            self.characters += length
            if len(values) > LARGE_ENUM and length > MOST_LARGE_ENUM_CHARACTERS and place.length <= _LONGEST_PATH:
                self._report(
                    _pointer(place.path()),
                    "enum",
                    f"Expected at most {MOST_LARGE_ENUM_CHARACTERS} total characters across enum values when there "
                    f"are more than {LARGE_ENUM} enum values, but received {length}. {_FEWER_ENUMS}",
                )

    def _limits(self) -> None:
        limits = (
            ("properties", self.depth, DEEPEST_NESTING, "{} levels of nesting exceeds limit of {}."),
            ("properties", self.properties, MOST_PROPERTIES, "{} parameters exceeds limit of {}."),
            ("enum", self.enum_values, MOST_ENUM_VALUES, _TOO_MANY_ENUM_VALUES),
            ("", self.characters, MOST_CHARACTERS, _TOO_MANY_CHARACTERS),
        )
        for keyword, measured, limit, message in limits:
            if measured > limit:
                self._report("", keyword, message.format(measured, limit), always=True)


_TOO_MANY_CHARACTERS = (
    "{0} characters in property names, definition names, enum values, and const values exceeds limit of {1}."
)
_FEWER_ENUMS = "Consider reducing the number of enums, or opt out of structured outputs by setting 'strict: false'."
_TOO_MANY_ENUM_VALUES = (
    "Expected at most {1} enum values in total within a single schema when using structured outputs, "
    f"but received {{0}}. {_FEWER_ENUMS}"
)


def _inside(schema: dict[str, Any], place: _Place, depth: int) -> Iterator[tuple[object, _Place, int]]:
    """The schemas inside one, with how deep a value under them is nested."""
    properties = schema.get("properties")
    if isinstance(properties, dict):
        for name, inner in properties.items():
            yield inner, _Place(place, ("properties", str(name))), depth + 1
    if "items" in schema and not isinstance(schema["items"], list):
        yield schema["items"], _Place(place, ("items",)), depth + 1
    branches = schema.get("anyOf")
    if isinstance(branches, list):
        for position, inner in enumerate(branches):
            yield inner, _Place(place, ("anyOf", str(position))), depth
    for keyword in DEFINITIONS:
        definitions = schema.get(keyword)
        if place.length == 0 and isinstance(definitions, dict):
            for name, inner in definitions.items():
                yield inner, _Place(place, (keyword, str(name))), 0


def _required_details(schema: dict[str, Any]) -> Iterator[str]:
    properties = schema.get("properties")
    required = schema.get("required")
    names = list(properties) if isinstance(properties, dict) else []
    listed = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    known = set(listed)
    for name in names:
        if name not in known:
            yield f"Missing {_shown(name)}."
    known = set(names)
    for name in listed:
        if name not in known:
            yield f"Extra required key {_shown(name)} supplied."


def _length(value: object) -> int:
    return len(value) if isinstance(value, str) else 0


def _pointer(path: tuple[str, ...]) -> str:
    return "".join(["/" + key.replace("~", "~0").replace("/", "~1") for key in path])


# What a keyword's value must be, in the words of a validator of schemas.


def _complaint(keyword: str, value: object) -> str | None:
    rule = _RULES.get(keyword)
    return None if rule is None else rule(value)


def _of_type(name: str, kind: type | tuple[type, ...]) -> Callable[[object], str | None]:
    def rule(value: object) -> str | None:
        is_one = isinstance(value, kind) and (not isinstance(value, bool) or kind is bool)
        return None if is_one else f"{_shown(value)} is not of type '{name}'"

    return rule


_string = _of_type("string", str)
_object = _of_type("object", dict)
_array = _of_type("array", list)
_number = _of_type("number", (int, float))


def _integer(value: object) -> str | None:
    whole = isinstance(value, float) and value.is_integer()
    return None if whole else _of_type("integer", int)(value)


def _not_negative(value: object) -> str | None:
    complaint = _integer(value)
    if complaint is None and isinstance(value, (int, float)) and value < 0:
        return f"{_shown(value)} is less than the minimum of 0"
    return complaint


def _positive(value: object) -> str | None:
    complaint = _number(value)
    if complaint is None and isinstance(value, (int, float)) and value <= 0:
        return f"{_shown(value)} is less than or equal to the minimum of 0"
    return complaint


def _filled_array(value: object) -> str | None:
    return "[] should be non-empty" if isinstance(value, list) and not value else _array(value)


def _names(value: object) -> str | None:
    if not isinstance(value, list):
        return _array(value)
    for name in value:
        if not isinstance(name, str):
            return _string(name)
    return f"{_shown(value)} has non-unique elements" if len(set(value)) < len(value) else None


def _items(value: object) -> str | None:
    return f"{_shown(value)} is not of type 'object', 'boolean'" if isinstance(value, list) else None


_RULES: dict[str, Callable[[object], str | None]] = {
    "$schema": _string,
    "title": _string,
    "description": _string,
    "pattern": _string,
    "format": _string,
    "enum": _filled_array,
    "anyOf": _filled_array,
    "properties": _object,
    "$defs": _object,
    "definitions": _object,
    "required": _names,
    "items": _items,
    "minItems": _not_negative,
    "maxItems": _not_negative,
    "multipleOf": _positive,
    "minimum": _number,
    "maximum": _number,
    "exclusiveMinimum": _number,
    "exclusiveMaximum": _number,
}


class _Short(Repr):
    """`repr` in full for what people write, cut for what nobody can read."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = 20
        self.maxstring = self.maxother = self.maxlong = 200

    def repr_int(self, x: int, level: int) -> str:
        return super().repr_int(x, level) if abs(x) < 10**200 else "a very large integer"


_shown = _Short().repr
