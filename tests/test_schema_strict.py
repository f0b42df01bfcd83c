"""The strict subset: its rules, its limits, the API's words."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.lib._pydantic import to_strict_json_schema
from pydantic import BaseModel, Field

from isogloss.errors import StrictSchemaError
from isogloss.schema import Violation, api_message, check_name, check_strict, ensure_strict

STRING = {"type": "string"}


def closed(properties: dict[str, Any], /, **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
        **more,
    }


def messages(schema: object) -> list[str]:
    return [violation.message for violation in check_strict(schema)]


@pytest.mark.parametrize(
    "schema",
    [
        closed({}),
        {"type": "object", "properties": {}, "additionalProperties": False},
        closed({"a": STRING, "b": {"type": ["string", "null"], "enum": ["x", None]}, "c": {"type": "boolean"}}),
        closed({"n": {"type": "number", "minimum": 0, "maximum": 9.5, "multipleOf": 0.5}}),
        closed({"i": {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10}}),
        closed({"s": {"type": "string", "pattern": "^a", "format": "date-time", "title": "T", "description": "D"}}),
        closed({"l": {"type": "array", "items": STRING, "minItems": 1, "maxItems": 3.0}}),
        closed({"k": {"type": "string", "const": "x"}, "d": {"type": "string", "default": None}}),
        closed({"u": {"anyOf": [STRING, {"type": "null"}, closed({"a": STRING})]}}),
        closed({"o": {**closed({"a": STRING}), "type": ["object", "null"]}}),
        closed({"me": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}),
        closed({"a": {"$ref": "#/$defs/A"}}, **{"$defs": {"A": closed({"a": {"$ref": "#/$defs/A"}})}}),
        closed({"a": {"$ref": "#/definitions/a~1b"}}, definitions={"a/b": STRING}, **{"$schema": "https://x.test/"}),
    ],
)
def test_strict_schemas_pass(schema: object) -> None:
    assert check_strict(schema) == []


NO_EXTRA = "'additionalProperties' is required to be supplied and to be false."
REQUIRED = "'required' is required to be supplied and to be an array including every key in properties."
ROOT_UNION = (
    "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'const'/'not' at the top level."
)


@pytest.mark.parametrize(
    ("schema", "pointer", "keyword", "message"),
    [
        # Objects
        ({"type": "object", "properties": {}}, "", "additionalProperties", f"In context=(), {NO_EXTRA}"),
        (
            closed({"x": {**closed({}), "additionalProperties": True}}),
            "/properties/x",
            "additionalProperties",
            f"In context=('properties', 'x'), {NO_EXTRA}",
        ),
        (
            closed({"x": {**closed({}), "additionalProperties": STRING}}),
            "/properties/x",
            "additionalProperties",
            f"In context=('properties', 'x'), {NO_EXTRA}",
        ),
        (
            closed({"a/b": {"anyOf": [{**closed({}), "type": ["null", "object"], "additionalProperties": {}}]}}),
            "/properties/a~1b/anyOf/0",
            "additionalProperties",
            f"In context=('properties', 'a/b', 'anyOf', '0', 'type', '1'), {NO_EXTRA}",
        ),
        (closed({"id": STRING}, required=[]), "", "required", f"In context=(), {REQUIRED} Missing 'id'."),
        (closed({}, required=["x"]), "", "required", f"In context=(), {REQUIRED} Extra required key 'x' supplied."),
        (
            {"type": "object", "additionalProperties": False},
            "",
            "properties",
            "In context=(), object schema missing properties.",
        ),
        # Arrays
        (
            closed({"l": {"type": "array"}}),
            "/properties/l",
            "items",
            "In context=('properties', 'l'), array schema missing items.",
        ),
        # Keywords, types, formats
        (
            closed({"pet": {"oneOf": [STRING]}}),
            "/properties/pet",
            "oneOf",
            "In context=('properties', 'pet'), 'oneOf' is not permitted.",
        ),
        *(
            (
                closed({"s": {**STRING, keyword: value}}),
                "/properties/s",
                keyword,
                f"In context=('properties', 's'), '{keyword}' is not permitted.",
            )
            for keyword, value in {
                "default": "x",
                "uniqueItems": True,
                "allOf": [{}],
                "not": {},
                "if": {},
                "dependentRequired": {},
                "minLength": 1,
                "maxLength": 2,
                "patternProperties": {},
                "propertyNames": {},
                "prefixItems": [],
                "contains": {},
                "nullable": True,
                "examples": [],
                "$defs": {},
                "x-own": 1,
            }.items()
        ),
        (
            closed({"u": {"type": "string", "format": "uri"}}),
            "/properties/u",
            "format",
            "In context=('properties', 'u'), 'uri' is not a valid format.",
        ),
        (
            closed({"ok": {}}),
            "/properties/ok",
            "type",
            "In context=('properties', 'ok'), schema must have a 'type' key.",
        ),
        (
            closed({"ok": {"const": "x"}}),
            "/properties/ok",
            "type",
            "In context=('properties', 'ok'), schema must have a 'type' key.",
        ),
        (
            closed({"ok": True}),
            "/properties/ok",
            "type",
            "In context=('properties', 'ok'), schema must have a 'type' key.",
        ),
        (
            closed({"f": {"type": "float"}}),
            "/properties/f",
            "type",
            "'float' is not valid under any of the given schemas",
        ),
        # References
        (
            closed({"c": {"$ref": "#/$defs/C", "title": "C", "description": "d"}}, **{"$defs": {"C": STRING}}),
            "/properties/c",
            "$ref",
            "context=('properties', 'c'), $ref cannot have keywords {'description', 'title'}.",
        ),
        *(
            (
                closed({"x": {"type": "array", "items": {"$ref": reference}}}),
                "/properties/x/items",
                "$ref",
                "In context=('properties', 'x', 'items'), "
                "reference can only point to definitions defined at the top level of the schema.",
            )
            for reference in ("#/properties/x", "#/$defs/missing", "other.json", "#anchor", "#/$defs/a/b", "")
        ),
        # The root
        ({"anyOf": [], "type": "object"}, "", "anyOf", ROOT_UNION),
        (
            {"type": "array", "items": STRING},
            "",
            "type",
            _root := "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"array\"'.",
        ),
        ({"type": "string", "enum": ["a"]}, "", "enum", ROOT_UNION),
        ({}, "", "type", _root.replace('"array"', '"None"')),
        (
            {"$ref": "#/$defs/A", "$defs": {"A": closed({})}},
            "",
            "type",
            _root.replace('"array"', '"None"'),
        ),
        # Not JSON Schema at all
        ([], "", "", "[] is not of type 'object', 'boolean'"),
        (closed({"a": 5}), "/properties/a", "", "5 is not of type 'object', 'boolean'"),
        (closed({}, required=True), "", "required", "True is not of type 'array'"),
        (closed({}, required=["a", "a"]), "", "required", "['a', 'a'] has non-unique elements"),
        (closed({}, title=1), "", "title", "1 is not of type 'string'"),
        (closed({}, properties=[]), "", "properties", "[] is not of type 'object'"),
        (closed({"a": {"type": "string", "enum": []}}), "/properties/a", "enum", "[] should be non-empty"),
        (closed({"a": {"type": "number", "minimum": "1"}}), "/properties/a", "minimum", "'1' is not of type 'number'"),
        (
            closed({"a": {"type": "array", "items": [STRING]}}),
            "/properties/a",
            "items",
            "[{'type': 'string'}] is not of type 'object', 'boolean'",
        ),
        (
            closed({"a": {"type": "array", "items": STRING, "minItems": -1}}),
            "/properties/a",
            "minItems",
            "-1 is less than the minimum of 0",
        ),
        (
            closed({"a": {"type": "number", "multipleOf": 0}}),
            "/properties/a",
            "multipleOf",
            "0 is less than or equal to the minimum of 0",
        ),
    ],
)
def test_each_rule_in_the_words_of_the_api(schema: object, pointer: str, keyword: str, message: str) -> None:
    assert Violation(pointer, keyword, message) in check_strict(schema)


def test_every_fault_is_named_outermost_first() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "object", "properties": {"b": {"type": "string", "format": "uri"}}}, "c": {}},
        "required": ["c", "z"],
    }
    assert [(violation.pointer, violation.keyword) for violation in check_strict(schema)] == [
        ("", "additionalProperties"),
        ("", "required"),
        ("", "required"),
        ("/properties/a", "additionalProperties"),
        ("/properties/a", "required"),
        ("/properties/a/properties/b", "format"),
        ("/properties/c", "type"),
    ]


def nest(levels: int) -> Any:
    schema: Any = STRING
    for _ in range(levels):
        schema = closed({"a": schema})
    return schema


def test_nesting() -> None:
    assert messages(nest(10)) == []
    assert messages(nest(14)) == ["14 levels of nesting exceeds limit of 10."]
    listed = closed({"a": {"type": "array", "items": nest(9)}})
    assert messages(listed) == ["11 levels of nesting exceeds limit of 10."]
    assert messages(closed({"a": {"anyOf": [{"anyOf": [nest(9)]}]}})) == []
    assert messages(closed({"a": {"$ref": "#/$defs/A"}}, **{"$defs": {"A": nest(10)}})) == []


def test_number_of_properties() -> None:
    most = closed({f"p{i}": STRING for i in range(4999)} | {"o": closed({})})
    assert messages(most) == []
    more = closed({"o": closed({f"p{i}": STRING for i in range(5999)})})
    assert messages(more) == ["6000 parameters exceeds limit of 5000."]


def test_characters() -> None:
    half = {"n" * 40_000: {"type": "string", "enum": ["e" * 40_000]}}
    assert messages(closed(half, **{"$defs": {"d" * 39_998: {"type": "string", "const": "cc"}}})) == []
    assert messages(closed(half, **{"$defs": {"d" * 39_999: {"type": "string", "const": "cc"}}})) == [
        "120001 characters in property names, definition names, enum values, and const values exceeds limit of 120000."
    ]


def test_enum_values() -> None:
    enums = closed(
        {"a": {"type": "integer", "enum": list(range(700))}, "b": {"type": "integer", "enum": [*range(301)]}}
    )
    assert messages(enums) == [
        "Expected at most 1000 enum values in total within a single schema when using structured outputs, but received "
        "1001. Consider reducing the number of enums, or opt out of structured outputs by setting 'strict: false'."
    ]
    large = closed({"a": {"type": "string", "enum": [f"{i:060}" for i in range(251)]}})
    assert messages(large) == [
        "Expected at most 15000 total characters across enum values when there are more than 250 enum values, but "
        "received 15060. Consider reducing the number of enums, or opt out of structured outputs by setting "
        "'strict: false'."
    ]
    assert messages(closed({"a": {"type": "string", "enum": [f"{i:0100}" for i in range(250)]}})) == []


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        ("a-B_9", []),
        ("x" * 64, []),
        ("x" * 65, ["too long"]),
        ("", ["empty"]),
        ("a b", ["pattern"]),
        ("é", ["pattern"]),
    ],
)
def test_names(name: str, faults: list[str]) -> None:
    found = check_name(name, parameter="response_format.json_schema.name")
    assert len(found) == len(faults)
    for violation, fault in zip(found, faults, strict=True):
        assert fault in violation.message
        assert violation.message.startswith("Invalid 'response_format.json_schema.name': ")


def test_the_first_violation_is_what_is_raised() -> None:
    ensure_strict(closed({}))
    with pytest.raises(StrictSchemaError) as raised:
        ensure_strict({"type": "object", "properties": {"a": {}}}, name="f", what="function")
    assert raised.value.message == f"Invalid schema for function 'f': In context=(), {NO_EXTRA}"
    assert raised.value.pointer == ""
    assert len(raised.value.violations) == 3
    assert api_message(raised.value.violations[1], name="r") == (
        f"Invalid schema for response_format 'r': In context=(), {REQUIRED} Missing 'a'."
    )


class Inner(BaseModel):
    """Inside."""

    value: int = Field(ge=0, description="how many")
    kind: Literal["a", "b"] = "a"


class Outer(BaseModel):
    inner: Inner = Field(description="one")
    others: list[Inner] | None
    child: Outer | None = None


def test_what_the_official_client_makes_strict_is_strict_but_for_defaults() -> None:
    found = check_strict(to_strict_json_schema(Outer))
    assert {violation.pointer.rsplit("/", 1)[1] for violation in found} == {"kind"}
    assert {violation.keyword for violation in found} == {"default"}


@pytest.mark.parametrize("key", ["anyOf", "items", "properties", "$defs"])
def test_a_schema_that_contains_itself(key: str) -> None:
    schema: dict[str, Any] = {"type": "object"}
    schema[key] = {"anyOf": [schema], "items": schema, "properties": {"a": schema}, "$defs": {"a": schema}}[key]
    assert check_strict(schema)
    only_unions: dict[str, Any] = closed({"a": {"type": "string"}})
    loop: dict[str, Any] = {}
    loop["anyOf"] = [loop]
    only_unions["properties"]["a"] = loop
    assert messages(only_unions) == ["Please ensure it is a valid JSON Schema."]


def test_depth_is_no_fault_of_the_stack() -> None:
    schema: Any = STRING
    for _ in range(100_000):
        schema = {"anyOf": [schema]}
    assert messages(closed({"a": schema})) == []
    assert "99999 levels of nesting exceeds limit of 10." in messages(nest(99_999))
    value: Any = []
    for _ in range(100_000):
        value = [value]
    assert check_strict(closed({"a": {"type": value}}, required=value))


def test_the_list_of_faults_is_bounded() -> None:
    name = "n" * 100_000
    schema = closed({name: closed({str(i): {} for i in range(2000)})})
    violations = check_strict(schema)
    assert sum(len(violation.message) + len(violation.pointer) for violation in violations) < 2_000_000
    assert len(check_strict(closed({str(i): {} for i in range(6000)}))) <= 1001


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["string", "object"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "required", "items", "anyOf", "$ref", "enum", "minItems", "a", "$defs"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@settings(deadline=None)
@given(JUNK)
def test_nothing_raises(schema: object) -> None:
    for violation in check_strict(schema):
        assert violation.message
