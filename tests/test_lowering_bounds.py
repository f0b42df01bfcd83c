"""Hostile schemas are refused, or compiled within bounds."""

from __future__ import annotations

from typing import Any

import pytest

from isogloss.constraints import Constraint
from isogloss.errors import SchemaError, SchemaTooComplexError, UnsatisfiableSchemaError
from isogloss.schema.lowering import lower
from isogloss.tokenizers import byte_level


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema, "maxItems": 2}
    return schema


def doubling(count: int, combine: Any) -> dict[str, Any]:
    definitions: dict[str, Any] = {f"d{i}": combine({"$ref": f"#/$defs/d{i + 1}"}) for i in range(count)}
    definitions[f"d{count}"] = {"type": "string"}
    return {"$defs": definitions, "$ref": "#/$defs/d0"}


REFUSED = {
    "nesting": nested(5_000),
    "deep but not that deep": nested(200),
    "many values": {"enum": [f"v{i}" for i in range(99_000)]},
    "large": {"examples": [0] * 200_000, "not": {}},
    "doubling exclusive choices": doubling(30, lambda r: {"oneOf": [r, {"type": "array", "items": r}]}),
    "combinations": {
        "allOf": [{"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(40)],
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_over_the_bounds_is_refused(name: str) -> None:
    with pytest.raises(SchemaTooComplexError):
        Constraint.from_json_schema(REFUSED[name])


def test_what_is_over_the_means_of_the_engine_is_refused() -> None:
    schema = {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(8_000)}, "minProperties": 3}
    with pytest.raises(SchemaTooComplexError, match="over the grammar engine's means") as caught:
        Constraint.from_json_schema(schema).matcher(byte_level())
    assert caught.value.pointer == ""


TAKEN = {
    "doubling references": doubling(
        40, lambda r: {"type": "object", "properties": {"l": r, "r": r}, "required": ["l"]}
    ),
    "doubling conjunctions": doubling(40, lambda r: {"allOf": [r, r]}),
    "wide oneOf": {
        "oneOf": [{"type": "object", "properties": {f"p{i}": {}}, "required": [f"p{i}", f"q{i}"]} for i in range(60)]
    },
    "discriminated conditions": {
        "type": "object",
        "properties": {"k": {"enum": [f"k{i}" for i in range(60)]}},
        "required": ["k"],
        "allOf": [
            {"if": {"properties": {"k": {"const": f"k{i}"}}}, "then": {"required": [f"r{i}"]}} for i in range(60)
        ],
    },
    "dependencies": {"type": "object", "dependentRequired": {f"a{i}": [f"b{i}"] for i in range(30)}},
    "nested repetition": {"type": "string", "pattern": "^(a|aa)+$", "minLength": 100, "maxLength": 10_000},
    "backtracking": {"type": "string", "pattern": "^(a+)+$"},
    "many items": {"type": "array", "minItems": 10**6, "maxItems": 10**9},
    "many characters": {"type": "string", "minLength": 10**9},
    "many keys": {"type": "object", "minProperties": 10**6},
    "many declared keys": {"type": "object", "properties": {f"p{i}": {"multipleOf": 2} for i in range(600)}},
    "many positions": {"type": "array", "prefixItems": [{"type": "integer"}] * 500},
    "many patterns": {"type": "string", "allOf": [{"pattern": f"w{i}"} for i in range(12)]},
    "many remainders": {"type": "string", "allOf": [{"pattern": f"(a|b)*a(a|b){{{i}}}$"} for i in range(12)]},
    "a prime divisor": {"type": "integer", "multipleOf": 1_000_003},
    "a long range": {"type": "number", "minimum": -1e308, "maximum": 1e308},
}


@pytest.mark.parametrize("name", TAKEN)
def test_within_the_bounds_compiles(name: str) -> None:
    matcher = Constraint.from_json_schema(TAKEN[name]).matcher(byte_level())
    assert matcher.mask().any()


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": "string", "enum": [1]},
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"allOf": [{"type": "string"}, {"type": "null"}]},
        {
            "$defs": {"n": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "required": ["n"]}},
            "$ref": "#/$defs/n",
        },
        {"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True, "minItems": 3},
        {"not": {}},
        {"type": "string", "pattern": "^x$", "minLength": 5},
        {"type": "string", "pattern": "^x$", "format": "date"},
        {"type": "string", "pattern": "^x$", "allOf": [{"pattern": "^y"}]},
        {
            "type": "object",
            "properties": {"a": {"type": "string", "pattern": "^x*$", "minLength": 5, "maxLength": 4}},
            "required": ["a"],
        },
    ],
)
def test_what_no_value_satisfies_is_refused_at_once(schema: Any) -> None:
    with pytest.raises(UnsatisfiableSchemaError):
        Constraint.from_json_schema(schema)


@pytest.mark.parametrize(
    ("schema", "pointer", "said"),
    [
        ({"type": "strng"}, "/type", "strng"),
        ({"properties": {"a": {"minLength": -1}}, "not": {}}, "/properties/a/minLength", "-1"),
        ({"$ref": "#/$defs/missing"}, None, "missing"),
        ({"$ref": "https://example.org/other"}, None, "https://example.org/other"),
        ({"type": "string", "pattern": "("}, None, "("),
    ],
)
def test_what_is_wrong_is_told(schema: Any, pointer: str | None, said: str) -> None:
    with pytest.raises(SchemaError) as caught:
        lower(schema)
    assert caught.value.pointer == pointer
    assert said in str(caught.value)
