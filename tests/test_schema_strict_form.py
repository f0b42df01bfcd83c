"""Any schema brought into the strict subset."""

from __future__ import annotations

import copy
import json
import lzma
import tarfile
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from isogloss.errors import SchemaTooComplexError, UnsatisfiableSchemaError
from isogloss.schema import SchemaView, check_strict, to_strict, without_placeholders

MASKBENCH = Path(__file__).parents[2] / "shared" / "data" / "maskbench-300.tar.xz"

STRING = {"type": "string"}


def closed(properties: dict[str, Any], /, **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
        **more,
    }


def strict(schema: object) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The strict form, which passes the check, and where something got lost."""
    before = copy.deepcopy(schema)
    result, losses = to_strict(schema)
    assert schema == before
    assert check_strict(result) == []
    return result, [(loss.pointer, loss.keyword) for loss in losses]


def strict_property(schema: object, **more: Any) -> tuple[Any, list[tuple[str, str]]]:
    """The strict form of a required property; the losses in it."""
    result, losses = strict({"type": "object", "properties": {"p": schema}, "required": ["p"], **more})
    return result["properties"]["p"], [(pointer.removeprefix("/properties/p"), keyword) for pointer, keyword in losses]


@pytest.mark.parametrize(
    "schema",
    [
        closed({}),
        closed({"a": STRING, "b": {"type": ["string", "null"], "enum": ["x", None]}}),
        closed({"n": {"type": "number", "multipleOf": 0.5, "minimum": 0, "maximum": 9}}),
        closed({"s": {"title": "T", "description": "D", "type": "string", "pattern": "^a", "format": "date"}}),
        closed({"l": {"type": "array", "items": STRING, "minItems": 1, "maxItems": 3}}),
        closed({"u": {"anyOf": [STRING, {"type": "null"}]}, "k": {"type": "string", "const": "x"}}),
        closed({"me": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}),
        closed({"a": {"$ref": "#/$defs/A"}}, **{"$defs": {"A": closed({"a": {"$ref": "#/$defs/A"}})}}),
    ],
)
def test_a_strict_schema_stays_as_it_is(schema: dict[str, Any]) -> None:
    assert strict(schema) == (schema, [])


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"$ref": "#/$defs/A", "description": "d"}, {"description": "d", "type": "integer"}),
        ({"allOf": [{"$ref": "#/$defs/A"}], "description": "d"}, {"description": "d", "type": "integer"}),
        (
            {"allOf": [{"type": "integer", "minimum": 1}, {"minimum": 3, "maximum": 9}]},
            {"type": "integer", "minimum": 3, "maximum": 9},
        ),
        ({"oneOf": [STRING, {"type": "null"}]}, {"anyOf": [STRING, {"type": "null"}]}),
        ({"anyOf": [STRING, {"oneOf": [{"type": "null"}, STRING]}]}, {"anyOf": [STRING, {"type": "null"}]}),
        ({"anyOf": [STRING, False]}, STRING),
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"anyOf": [STRING], "nullable": True}, {"anyOf": [STRING, {"type": "null"}]}),
        ({"enum": ["a", 1, None]}, {"type": ["string", "integer", "null"], "enum": ["a", 1, None]}),
        ({"enum": ["a"], "type": ["string", "null"]}, {"type": "string", "enum": ["a"]}),
        ({"const": 1.5}, {"type": "number", "const": 1.5}),
        ({"const": None}, {"type": "null"}),
        (
            {"const": {"a": [], "b": True}},
            closed(
                {
                    "a": {"type": "array", "items": {"type": ["string", "number", "boolean", "null"]}, "maxItems": 0},
                    "b": {"type": "boolean", "const": True},
                }
            ),
        ),
        (
            {"minimum": 5, "exclusiveMinimum": True, "type": "number"},
            {"type": "number", "minimum": 5, "exclusiveMinimum": 5},
        ),
        ({"properties": {"a": STRING}, "required": ["a"]}, closed({"a": STRING})),
        ({"items": STRING}, {"type": "array", "items": STRING}),
        ({"pattern": "a"}, {"type": "string", "pattern": "a"}),
        ({"minimum": 1}, {"type": "number", "minimum": 1}),
        (
            {"type": "array", "items": False},
            {"type": "array", "items": {"type": ["string", "number", "boolean", "null"]}, "maxItems": 0},
        ),
        ({"type": ["array", "null"], "items": STRING}, {"type": ["array", "null"], "items": STRING}),
        ({"type": "string", "minLength": 0, "minimum": 3, "examples": ["x"], "x-own": 1}, STRING),
        ({"type": "float"}, {"type": "number"}),
        (
            {
                "type": "object",
                "properties": {"k": STRING},
                "anyOf": [{"required": ["k"]}, {"properties": {"n": STRING}}],
            },
            {
                "anyOf": [
                    closed({"k": STRING}),
                    closed({"n": {"type": ["string", "null"]}, "k": {"type": ["string", "null"]}}),
                ]
            },
        ),
    ],
)
def test_nothing_is_lost(schema: object, expected: object) -> None:
    assert strict_property(schema, **{"$defs": {"A": {"type": "integer"}}}) == (expected, [])


def test_an_optional_property_may_be_null() -> None:
    schema = {
        "type": "object",
        "properties": {
            "s": STRING,
            "n": {"type": ["integer", "null"]},
            "e": {"enum": ["a"]},
            "c": {"const": 1},
            "r": {"$ref": "#/$defs/A"},
            "u": {"anyOf": [STRING, {"type": "integer"}]},
            "d": {"type": "string", "default": None},
            "never": False,
        },
        "$defs": {"A": {"type": "boolean"}},
    }
    result, losses = strict(schema)
    assert losses == []
    assert result == closed(
        {
            "s": {"type": ["string", "null"]},
            "n": {"type": ["integer", "null"]},
            "e": {"type": ["string", "null"], "enum": ["a", None]},
            "c": {"type": ["integer", "null"], "enum": [1, None]},
            "r": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]},
            "u": {"anyOf": [STRING, {"type": "integer"}, {"type": "null"}]},
            "d": {"type": ["string", "null"]},
        },
        **{"$defs": {"A": {"type": "boolean"}}},
    )


@pytest.mark.parametrize(
    ("schema", "expected", "losses"),
    [
        ({"type": "string", "minLength": 1, "maxLength": 5}, STRING, ["minLength", "maxLength"]),
        ({"type": "string", "format": "uri"}, STRING, ["format"]),
        ({"type": "string", "pattern": "a", "allOf": [{"pattern": "b"}]}, {"type": "string", "pattern": "a"}, None),
        ({"type": "string", "default": "x"}, STRING, ["default"]),
        ({"type": "string", "not": {"const": "x"}}, STRING, ["not"]),
        ({"type": "string", "if": {}, "then": {"pattern": "x"}}, STRING, ["if"]),
        ({"type": "array", "items": STRING, "uniqueItems": True}, {"type": "array", "items": STRING}, ["uniqueItems"]),
        ({"type": "object", "additionalProperties": STRING}, closed({}), ["additionalProperties"]),
        ({"type": "object", "patternProperties": {"^x": STRING}}, closed({}), ["patternProperties"]),
        ({"type": "object"}, closed({}), ["properties"]),
        ({}, {"type": ["string", "number", "boolean", "null"]}, ["type"]),
        (True, {"type": ["string", "number", "boolean", "null"]}, None),
        (
            {"oneOf": [STRING, {"type": "string", "pattern": "a"}]},
            {"anyOf": [STRING, {"type": "string", "pattern": "a"}]},
            ["oneOf"],
        ),
        (
            {"type": "array", "prefixItems": [STRING, {"type": "null"}], "items": False, "minItems": 2},
            {"type": "array", "items": {"anyOf": [STRING, {"type": "null"}]}, "minItems": 2, "maxItems": 2},
            ["prefixItems"],
        ),
        ({"type": "array"}, {"type": "array", "items": {"type": ["string", "number", "boolean", "null"]}}, ["items"]),
    ],
)
def test_what_is_lost_is_reported(schema: object, expected: object, losses: list[str] | None) -> None:
    result, found = strict_property(schema)
    assert result == expected
    if losses is None:
        assert len(found) == 1
    else:
        assert found == [("", keyword) for keyword in losses]


def test_losses_point_at_the_schema_that_said_it() -> None:
    schema = {
        "type": "object",
        "properties": {"a/b": {"allOf": [{"$ref": "#/$defs/A"}, {"type": "string", "format": "uri"}]}},
        "$defs": {"A": {"minLength": 3}},
    }
    assert strict(schema)[1] == [("/$defs/A", "minLength"), ("/properties/a~1b/allOf/1", "format")]


@pytest.mark.parametrize(
    "schema",
    [STRING, {"type": "array", "items": STRING}, {"anyOf": [closed({}), {"type": "null"}]}, {"enum": ["a", "b"]}],
)
def test_a_root_that_is_no_object_goes_under_a_property(schema: object) -> None:
    result, losses = strict(schema)
    assert list(result["properties"]) == ["value"]
    assert losses == [("", "type")]


def test_a_wrapped_root_may_refer_to_itself() -> None:
    result, _ = strict({"anyOf": [{"type": "array", "items": {"$ref": "#"}}, {"type": "null"}]})
    items = result["properties"]["value"]["anyOf"][0]["items"]
    name = items["$ref"].removeprefix("#/$defs/")
    assert result["$defs"][name]["anyOf"][0]["items"] == items


def test_a_union_at_the_root_becomes_one_object() -> None:
    branches = [
        {"properties": {"k": {"const": "a"}, "n": {"type": "integer"}}, "required": ["k", "n"]},
        {"properties": {"k": {"const": "b"}, "s": STRING}, "required": ["k", "s"]},
    ]
    result, losses = strict({"type": "object", "anyOf": branches})
    assert result["properties"] == {
        "k": {"anyOf": [{"type": "string", "const": "a"}, {"type": "string", "const": "b"}]},
        "n": {"type": ["integer", "null"]},
        "s": {"type": ["string", "null"]},
    }
    assert losses == [("", "anyOf")]


def test_references_become_top_level_definitions() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
            "b": {"$ref": "#/properties/a"},
            "c": {"$ref": "#named"},
            "d": {"$ref": "#/$defs/with%20blank"},
            "e": {"$ref": "#/$defs/chain"},
            "f": {"$ref": "#/$defs/circle"},
        },
        "required": ["a", "b", "c", "d", "e"],
        "$defs": {
            "n": {"$anchor": "named", "type": "null"},
            "with blank": {"type": "boolean"},
            "chain": {"$ref": "#named"},
            "circle": {"$ref": "#/$defs/circle"},
            "unused": {"type": "string", "minLength": 3},
        },
    }
    result, losses = strict(schema)
    definitions = result["$defs"]
    found = {name: definitions[result["properties"][name]["$ref"].removeprefix("#/$defs/")] for name in "bcde"}
    assert found == {
        "b": closed({"x": {"type": "integer"}}),
        "c": {"type": "null"},
        "d": {"type": "boolean"},
        "e": {"type": "null"},
    }
    assert len(definitions) == 3
    assert losses == [("/$defs/circle", "type")] or losses == [("/properties/f", "type")]


def test_a_described_reference_to_a_schema_inside_itself() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node", "description": "more"}}}
    result, losses = strict({"type": "object", "properties": {"n": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}})
    assert result["$defs"]["Node"]["properties"]["next"] == {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}
    assert losses == [("/$defs/Node/properties/next", "description")]


def test_what_is_nested_too_deeply_becomes_a_definition() -> None:
    schema: dict[str, Any] = STRING
    for _ in range(35):
        schema = closed({"a": {"type": "array", "items": schema}})
    result, losses = strict(schema)
    assert losses == []
    assert len(result["$defs"]) == 6
    instance: Any = "x"
    for _ in range(35):
        instance = {"a": [instance]}
    assert jsonschema_rs.is_valid(result, instance)
    assert not jsonschema_rs.is_valid(result, {"a": [{"a": [{"a": "x"}]}]})


def test_large_enums_are_dropped_where_the_limits_end() -> None:
    numbers = {"type": "integer", "enum": list(range(600))}
    result, losses = strict(closed({"a": numbers, "b": numbers}))
    assert result["properties"] == {"a": numbers, "b": {"type": "integer"}}
    assert losses == [("/properties/a", "enum")]  # one schema, used twice
    words = {"type": "string", "enum": [f"{i:060}" for i in range(251)]}
    assert strict_property(words) == (STRING, [("", "enum")])


def test_what_nothing_satisfies() -> None:
    for schema in (False, closed({"a": False}), {"enum": []}, {"type": "object", "allOf": [{"type": "string"}]}):
        with pytest.raises(UnsatisfiableSchemaError):
            to_strict(schema)


@pytest.mark.parametrize(
    "schema",
    [
        closed({f"p{i}": STRING for i in range(5001)}),
        closed({"n" * 120_001: STRING}),
    ],
)
def test_what_is_over_the_limits_whatever_is_left_out(schema: object) -> None:
    with pytest.raises(SchemaTooComplexError):
        to_strict(schema)


@pytest.mark.parametrize("keyword", ["items", "anyOf", "allOf", "properties"])
def test_great_depth_is_no_fault_of_the_stack(keyword: str) -> None:
    schema: Any = STRING
    for _ in range(20_000):
        schema = {
            "items": {"items": schema},
            "anyOf": {"anyOf": [schema]},
            "allOf": {"allOf": [schema]},
            "properties": {"properties": {"a": schema}},
        }[keyword]
    try:
        result, _ = to_strict(schema)
    except SchemaTooComplexError:
        return
    assert check_strict(result) == []


def test_inlining_ends() -> None:
    references = [{"$ref": f"#/$defs/{i}", "minimum": i} for i in range(10)]
    schema = {"$defs": {str(i): {"anyOf": references} for i in range(10)}, "$ref": "#/$defs/0"}
    strict({"type": "object", "properties": {"a": schema | {"minimum": 3}}, "$defs": schema["$defs"]})


NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.sampled_from(["", "a", "b", "#"])
REFERENCES = st.sampled_from(["#", "#/$defs/a", "#/$defs/b", "#/properties/a", "#/nowhere"])
TYPES = st.sampled_from(["string", "number", "integer", "boolean", "null", "array", "object"])


def schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "required": st.lists(NAMES, unique=True, max_size=2),
            "additionalProperties": st.booleans() | inner,
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "anyOf": st.lists(inner, min_size=1, max_size=3),
            "oneOf": st.lists(inner, min_size=1, max_size=3),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "$ref": REFERENCES,
            "enum": st.lists(SCALARS | st.just({"a": [1]}), min_size=1, max_size=3),
            "const": SCALARS,
            "minimum": st.integers(-2, 2),
            "minItems": st.integers(0, 2),
            "minLength": st.integers(0, 2),
            "pattern": st.just("^a"),
            "format": st.sampled_from(["date", "uri"]),
            "description": st.just("d"),
            "default": SCALARS,
            "nullable": st.booleans(),
            "$defs": st.dictionaries(NAMES, inner, max_size=2),
        },
    )


SCHEMAS = st.recursive(st.booleans() | schemas(st.booleans()), schemas, max_leaves=8)


@settings(deadline=None, max_examples=300)
@given(SCHEMAS)
def test_the_strict_form_of_any_schema_is_strict(schema: object) -> None:
    try:
        strict(schema)
    except (UnsatisfiableSchemaError, SchemaTooComplexError):
        return


JUNK = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "required", "items", "anyOf", "allOf", "$ref", "enum", "minItems", "$defs"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@settings(deadline=None)
@given(JUNK)
def test_the_strict_form_of_what_is_hardly_a_schema_is_strict(schema: object) -> None:
    try:
        strict(schema)
    except (UnsatisfiableSchemaError, SchemaTooComplexError):
        return


def exact_schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schemas that the strict subset can say in full."""
    objects = st.dictionaries(NAMES, inner, min_size=1, max_size=3).flatmap(
        lambda properties: st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.just(properties),
                "required": st.lists(st.sampled_from(sorted(properties)), unique=True),
            }
        )
    )
    return (
        objects
        | st.builds(lambda items, least: {"type": "array", "items": items, "minItems": least}, inner, st.integers(0, 2))
        | st.builds(lambda branches: {"anyOf": branches}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(lambda one, two: {"allOf": [one], "anyOf": [two, {"type": "integer"}]}, inner, inner)
        | st.builds(lambda one, least: {"allOf": [one, {"minimum": least}]}, inner, st.integers(-2, 2))
        | st.builds(lambda one: {"oneOf": [{"type": "array", "items": one}, {"enum": ["a", 1]}]}, inner)
    )


EXACT = st.recursive(
    st.sampled_from(
        [{"type": kind} for kind in ("string", "integer", "number", "boolean", "null")]
        + [{"type": ["string", "null"]}, {"enum": ["a", "b", 1]}, {"const": {"a": 1}}, {"$ref": "#/$defs/a"}]
        + [{"$ref": "#/$defs/b", "description": "d"}, {"type": "integer", "maximum": 1}]
    ),
    exact_schemas,
    max_leaves=6,
)
DEFINITIONS = {
    "a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}, "b": {"type": "null"}}},
    "b": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/b"}}]},
}


def instances(root: Any, schema: Any, depth: int = 0) -> st.SearchStrategy[Any]:
    """Values that a strict schema permits."""
    if "$ref" in schema:
        reference = schema["$ref"].split("/")
        return instances(root, root if reference == ["#"] else root["$defs"][reference[2]], depth)
    if "anyOf" in schema:
        return st.sampled_from(schema["anyOf"]).flatmap(lambda branch: instances(root, branch, depth))
    if "const" in schema or "enum" in schema:
        return st.sampled_from(schema.get("enum", [schema.get("const")]))
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if depth > 5 and "null" in kinds:
        return st.none()
    return st.sampled_from(kinds).flatmap(lambda kind: of_kind(root, schema, kind, depth))


def of_kind(root: Any, schema: Any, kind: str, depth: int) -> st.SearchStrategy[Any]:
    if kind == "object":
        return st.fixed_dictionaries(
            {name: instances(root, member, depth + 1) for name, member in schema["properties"].items()}
        )
    if kind == "array":
        least, most = schema.get("minItems", 0), schema.get("maxItems", 3)
        return st.lists(instances(root, schema["items"], depth + 1), min_size=least, max_size=max(least, min(most, 3)))
    numbers = (
        st.integers(schema.get("minimum"), schema.get("maximum")) if schema.get("minimum", -9) <= 1 else st.just(2)
    )
    return {"string": st.text(max_size=2), "boolean": st.booleans(), "null": st.none()}.get(kind, numbers)


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(EXACT, st.data())
def test_what_the_strict_form_permits_the_schema_permits(schema: Any, data: st.DataObject) -> None:
    """But for the null of what may be absent, which `without_placeholders` takes out again."""
    whole = {"type": "object", "properties": {"p": schema}, "required": ["p"], "$defs": DEFINITIONS}
    try:
        result, losses = to_strict(whole)
    except UnsatisfiableSchemaError:
        return
    assert check_strict(result) == []
    assert losses == []
    value = data.draw(instances(result, result))
    assume(jsonschema_rs.is_valid(result, value))
    assert jsonschema_rs.is_valid(whole, without_placeholders(SchemaView(whole), value)), (result, value)


@pytest.mark.parametrize("impossible", [{"type": "string"}, {"const": {"a": 1}}, {"enum": ["a"]}])
def test_a_branch_that_no_value_is_of_makes_no_null_of_a_placeholder(impossible: Any) -> None:
    text = {"type": "object", "properties": {"b": {"type": "string"}}}
    null = {"allOf": [impossible], "anyOf": [{"$ref": "#/$defs/a"}, {"type": "integer"}]}
    view = SchemaView({"anyOf": [null, text], "$defs": DEFINITIONS})
    assert without_placeholders(view, {"b": None}) == {}
    assert without_placeholders(SchemaView({"anyOf": [DEFINITIONS["b"], text]}), {"b": None}) == {}


def test_a_null_that_some_branch_means_stays() -> None:
    text = {"type": "object", "properties": {"b": {"type": "string"}}}
    view = SchemaView({"anyOf": [{"$ref": "#/$defs/a"}, text], "$defs": DEFINITIONS})
    assert without_placeholders(view, {"b": None}) == {"b": None}


def test_schemas_from_the_wild() -> None:
    """All of them have a strict form; where nothing got lost, it takes what they take, with null for what is absent."""
    if not MASKBENCH.exists():
        pytest.skip("the schemas of MaskBench are not here")
    compared = 0
    with lzma.open(MASKBENCH) as packed, tarfile.open(fileobj=packed) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isfile() else None
            if file is None:
                continue
            sample = json.load(file)
            result, losses = strict(sample["schema"])
            if losses:
                continue
            view = SchemaView(result)
            for test in sample["tests"]:
                if test["valid"] and _names_are_known(view, test["data"]):
                    assert jsonschema_rs.is_valid(result, _with_nulls(view, test["data"])), member.name
                    compared += 1
    assert compared > 80


def _names_are_known(view: SchemaView | None, value: object) -> bool:
    if isinstance(value, dict) and view is not None:
        return all(_names_are_known(view.member(name), member) for name, member in value.items() if name) and all(
            name in view.member_names for name in value
        )
    return all(_names_are_known(view.items, member) for member in value) if isinstance(value, list) and view else True


def _with_nulls(view: SchemaView | None, value: Any) -> Any:
    if isinstance(value, dict) and view is not None:
        return {name: _with_nulls(view.member(name), value.get(name)) for name in view.member_names}
    return [_with_nulls(view.items, member) for member in value] if isinstance(value, list) and view else value
