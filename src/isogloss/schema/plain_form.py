"""Plain schemas in the words of the grammar engine's own compiler.

What it has no word for, or a looser one, is said by others that it takes exactly: formats by patterns, an exclusive
``oneOf`` by ``anyOf``, lists of ``items`` by ``prefixItems``.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import jsonschema_rs

from isogloss.schema.formats import GUARDED, KNOWN, format_alternatives
from isogloss.schema.pattern_placements import matches_all
from isogloss.schema.patterns import engine_pattern
from isogloss.schema.plain_choices import BESIDE, branches_of

BESIDE_ENUM = frozenset({"type", "minLength", "maxLength", "minimum", "maximum"})
"""What may stand beside an ``enum``, which then lists the values that it admits."""
_DEFINITIONS = ("$defs", "definitions")
_SPELLED = frozenset(
    {"items", "prefixItems", "additionalItems", "anyOf", "oneOf", "allOf", "patternProperties", "minProperties"}
    | {"format", "enum", "pattern", "properties", "additionalProperties", *_DEFINITIONS}
)
_RESPELLED = _SPELLED | {"$schema", "$id", "id"}


class EngineForm:
    """Writes the form of one document. ``targets`` are the ids of the schemas that references in it lead to."""

    def __init__(self, *, formats: bool, targets: AbstractSet[int]) -> None:
        self._formats = formats
        self._targets = targets
        self._shared: dict[str, Any] = {}
        """Formats that are referred to, so that the compiler reads each once."""

    def document(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """A plain schema as the compiler takes it."""
        form: dict[str, Any] = self._of(schema)
        if self._shared:
            form["$defs"] = {**form.get("$defs", {}), **self._shared}
        return form

    def _of(self, schema: Any) -> Any:
        if not isinstance(schema, dict) or _RESPELLED.isdisjoint(schema):
            return schema
        named = self._named_format(schema)
        if named is not None:
            return {"$ref": f"#/$defs/{named}"}
        while (only := only_part(schema)) is not None:
            schema = {**{key: value for key, value in schema.items() if key != "allOf"}, **only}
        form = {
            key: value
            for key, value in schema.items()
            if key not in _SPELLED and not (key in ("$schema", "$id", "id") and isinstance(value, str))
        }
        for key in _DEFINITIONS:
            if isinstance(schema.get(key), dict):
                form[key] = {name: self._of(child) for name, child in schema[key].items() if id(child) in self._targets}
        branches = branches_of(schema)
        if branches is not None:
            if not any("$ref" in branch for branch in branches if isinstance(branch, dict)):
                form = {key: value for key, value in form.items() if key not in BESIDE}
            form["anyOf"] = [self._of(branch) for branch in branches]
            return form
        for name, write in (("object", self._object), ("array", self._array), ("string", self._string)):
            if has_type(schema, name):  # what is said of other types means nothing, whatever it is
                write(schema, form)
        if "enum" in schema:
            for key in BESIDE_ENUM & form.keys():
                del form[key]
            form["enum"] = literal_values(schema)
        return form

    def _object(self, schema: Mapping[str, Any], form: dict[str, Any]) -> None:
        if "properties" in schema:
            form["properties"] = {name: self._of(child) for name, child in schema["properties"].items()}
        if "additionalProperties" in schema:
            form["additionalProperties"] = self._of(schema["additionalProperties"])
        if schema.get("patternProperties"):
            ((pattern, child),) = schema["patternProperties"].items()
            if matches_all(pattern):
                form["additionalProperties"] = self._of(child)
            else:
                form["patternProperties"] = {engine_pattern(pattern): self._of(child)}
        if schema.get("minProperties", 0) > len(schema.get("required", ())):
            form["minProperties"] = schema["minProperties"]

    def _array(self, schema: Mapping[str, Any], form: dict[str, Any]) -> None:
        prefix, rest = items_of(schema)
        if prefix:
            form["prefixItems"] = [self._of(item) for item in prefix]
        if rest is not None:
            form["items"] = self._of(rest)

    def _string(self, schema: Mapping[str, Any], form: dict[str, Any]) -> None:
        pattern, name = schema.get("pattern"), schema.get("format")
        if pattern is not None:
            form["pattern"] = engine_pattern(pattern)
        if not self._formats or not isinstance(name, str) or name not in KNOWN:
            return
        form_of_format = _spelled_format(name)
        if pattern is None:
            form.update(form_of_format)
        else:
            form["allOf"] = [form_of_format]

    def _named_format(self, schema: Mapping[str, Any]) -> str | None:
        """The name under which a schema of nothing but a long format is shared."""
        name = schema.get("format")
        if (
            not self._formats
            or name not in _LONG
            or schema.get("type") != "string"
            or not _BESIDE_FORMAT.isdisjoint(schema)
        ):
            return None
        shared = f"isogloss-{name}"
        self._shared[shared] = {"type": "string", **_spelled_format(name)}
        return shared


_LONG = frozenset(
    {"date-time", "time", "email", "ipv6", "uri", "uri-reference", "iri", "iri-reference", "uri-template"}
)
_BESIDE_FORMAT = frozenset({"pattern", "minLength", "maxLength", "enum", "const", *_DEFINITIONS})


@functools.cache
def _spelled_format(name: str) -> dict[str, Any]:
    """Keywords that say a format. Not to be changed."""
    alternatives = [[{"pattern": engine_pattern(p)} for p in patterns] for patterns in format_alternatives(name)]
    forms: list[dict[str, Any]] = [
        together[0] if len(together) == 1 else {"allOf": together} for together in alternatives
    ]
    return forms[0] if len(forms) == 1 else {"anyOf": forms}


def has_type(schema: Mapping[str, Any], name: str) -> bool:
    """Whether values of a type are spoken of."""
    types = schema.get("type")
    return types is None or types == name or (isinstance(types, list) and name in types)


def items_of(schema: Mapping[str, Any]) -> tuple[list[Any], Any]:
    """The schemas of the first items, and of all after them (None: anything)."""
    items = schema.get("items")
    if isinstance(items, list):
        return items, schema.get("additionalItems")
    return schema.get("prefixItems", []), items


def only_part(schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The one part of an ``allOf`` of one."""
    parts = schema.get("allOf")
    return parts[0] if isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0], dict) else None


def literal_values(schema: Mapping[str, Any]) -> list[Any]:
    """The values of an ``enum`` that the keywords beside it admit."""
    values: list[Any] = schema["enum"]
    beside = {key: schema[key] for key in BESIDE_ENUM if key in schema}
    if not beside:
        return values
    if beside == {"type": "string"}:
        return [value for value in values if isinstance(value, str)]
    validator = jsonschema_rs.validator_for(beside)
    return [value for value in values if validator.is_valid(value)]


def is_spelled(name: str) -> bool:
    """Whether a format can be told to the compiler by patterns."""
    return name in KNOWN and name not in GUARDED
