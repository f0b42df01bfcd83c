"""The resolved view of a schema."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.errors import SchemaTooComplexError
from isogloss.schema.view import ANY_TYPE, SchemaView

DEEP = 5_000


def types(schema: object) -> set[str]:
    return set(SchemaView(schema).types)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, {"string"}),
        ({"type": "number"}, {"number", "integer"}),
        ({"type": "integer"}, {"integer"}),
        ({"type": ["string", "null"]}, {"string", "null"}),
        ({"type": "STRING"}, {"string"}),
        ({"type": "float"}, {"number", "integer"}),
        ({"type": "dict"}, {"object"}),
        ({"type": "string", "nullable": True}, {"string", "null"}),
        ({"type": "string", "enum": ["a"], "nullable": True}, {"string", "null"}),
        ({"enum": ["a", 1, 2.5, None, True, [], {}]}, set(ANY_TYPE)),
        ({"enum": ["a", 1.0]}, {"string", "integer"}),
        ({"type": "string", "enum": ["a", 1]}, {"string"}),
        ({"const": False}, {"boolean"}),
        ({"const": None}, {"null"}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"string", "null"}),
        (
            {"oneOf": [{"type": "integer"}, {"anyOf": [{"type": "object"}, {"const": "x"}]}]},
            {"integer", "object", "string"},
        ),
        ({"type": ["string", "integer"], "anyOf": [{"type": "string"}, {"type": "null"}]}, {"string"}),
        ({"allOf": [{"type": ["string", "integer"]}, {"type": ["integer", "null"]}]}, {"integer"}),
        ({"allOf": [{"$ref": "#/$defs/A"}], "nullable": True, "$defs": {"A": {"type": "object"}}}, {"object", "null"}),
        (True, set(ANY_TYPE)),
        ({}, set(ANY_TYPE)),
        (False, set()),
        ({"allOf": [True, False]}, set()),
        ({"enum": []}, set()),
    ],
)
def test_types(schema: object, expected: set[str]) -> None:
    assert types(schema) == expected


@pytest.mark.parametrize(
    "reference",
    [
        "#/$defs/A",
        "#/$defs/Chain",
        "#/$defs/with~1slash",
        "#/$defs/with/slash",
        "#/$defs/with%20blank",
        "#/$defs/Outer/properties/n",
        "#/$defs/Union/anyOf/1",
        "#anchored",
        "https://example.test/a",
        "https://example.test/b#inner",
        "https://example.test/b#/$defs/deep",
    ],
)
def test_references_are_found(reference: str) -> None:
    integer = {"type": "integer"}
    schema = {
        "type": "object",
        "properties": {"x": {"$ref": reference}},
        "$defs": {
            "A": integer,
            "Chain": {"$ref": "#/$defs/Chain2"},
            "Chain2": {"$ref": "#/$defs/A"},
            "with/slash": {"type": "integer"},
            "with blank": {"type": "integer"},
            "Outer": {"type": "object", "properties": {"n": {"type": "integer"}}},
            "Union": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "Anchored": {"$anchor": "anchored", "type": "integer"},
            "Named": {"$id": "https://example.test/a", "type": "integer"},
            "Resource": {
                "$id": "https://example.test/b",
                "$defs": {"deep": {"type": "integer"}, "inner": {"$anchor": "inner", "type": "integer"}},
            },
        },
    }
    view = SchemaView(schema).member("x")
    assert view is not None
    assert view.types == {"integer"}


@pytest.mark.parametrize(
    "reference",
    ["#/$defs/None", "#/properties/x/1", "#nowhere", "https://example.test/x", "other.json#/a", "#/", "#//", 3, None],
)
def test_broken_references_permit_anything(reference: object) -> None:
    schema = {"$defs": {}, "anyOf": [{"$ref": reference}], "properties": {"x": [1]}}
    assert SchemaView(schema).types == ANY_TYPE


def test_references_point_into_the_given_root() -> None:
    root = {"$defs": {"A": {"type": "boolean"}}}
    assert SchemaView({"$ref": "#/$defs/A"}, root).types == {"boolean"}


def test_a_reference_keeps_what_stands_beside_it() -> None:
    view = SchemaView(
        {"$ref": "#/$defs/A", "description": "near", "$defs": {"A": {"type": "string", "description": "far"}}}
    )
    assert view.types == {"string"}
    assert view.annotation("description") == "near"
    assert view.reference == "#/$defs/A"


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"$ref": "#"}, set(ANY_TYPE)),
        ({"anyOf": [{"$ref": "#"}, {"type": "string"}]}, {"string"}),
        ({"anyOf": [{"$ref": "#"}]}, set()),
        (
            {
                "$ref": "#/$defs/A",
                "$defs": {
                    "A": {"anyOf": [{"$ref": "#/$defs/B"}, {"type": "string"}]},
                    "B": {"oneOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]},
                },
            },
            {"string", "null"},
        ),
    ],
)
def test_schemas_that_refer_to_themselves(schema: object, expected: set[str]) -> None:
    assert types(schema) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"enum": ["a", "b", "a"]}, ("a", "b")),
        ({"const": 1}, (1,)),
        ({"enum": [1, True, 1.0]}, (1, True)),
        ({"type": "string", "enum": ["a", 1]}, ("a",)),
        ({"enum": ["a", "b"], "allOf": [{"enum": ["b", "c"]}]}, ("b",)),
        ({"anyOf": [{"const": "a"}, {"enum": ["b", "a"]}, {"type": "null"}]}, ("a", "b", None)),
        ({"type": "string", "enum": ["a"], "nullable": True}, ("a", None)),
        ({"anyOf": [{"const": "a"}, {"type": "string"}]}, None),
        ({"type": "string"}, None),
        ({"enum": [{"a": [1]}], "allOf": [{"enum": [{"a": [1.0]}, {"a": [True]}]}]}, ({"a": [1]},)),
    ],
)
def test_const_values(schema: object, expected: tuple[Any, ...] | None) -> None:
    assert SchemaView(schema).const_values == expected


def test_properties_are_joined_in_order() -> None:
    view = SchemaView(
        {
            "allOf": [{"$ref": "#/$defs/Base"}],
            "properties": {"b": {"maximum": 3}, "c": True},
            "required": ["c"],
            "additionalProperties": False,
            "$defs": {
                "Base": {
                    "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
                    "required": ["a"],
                }
            },
        }
    )
    assert list(view.properties) == ["b", "c", "a"]
    assert view.properties["b"].types == {"integer"}
    assert view.required == {"a", "c"}
    assert view.is_closed
    assert view.member("z") is None


def test_members_are_looked_for_in_unions() -> None:
    view = SchemaView(
        {
            "anyOf": [
                {"properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}},
                {"oneOf": [{"properties": {"kind": {"const": "b"}, "n": {"type": "null"}}}, {"$ref": "#"}]},
            ],
            "properties": {"common": {"type": "boolean"}},
        }
    )
    assert list(view.properties) == ["common"]
    for name, expected in {"common": {"boolean"}, "n": {"integer", "null"}, "kind": {"string"}}.items():
        found = view.member(name)
        assert found is not None
        assert found.types == expected
    kind = view.member("kind")
    assert kind is not None
    assert kind.const_values == ("a", "b")


def test_names_without_a_property() -> None:
    view = SchemaView(
        {
            "properties": {"a": {"type": "string"}},
            "patternProperties": {"(x+x+)+y": {"type": "integer"}},
            "additionalProperties": {"type": "null"},
        }
    )
    assert view.additional is not None
    assert view.additional.types == {"integer", "null"}
    assert view.member("x" * 100) is view.additional
    assert not view.is_closed


def test_items() -> None:
    view = SchemaView({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}})
    assert [view.item(i).types for i in range(2) if view.item(i)] == [{"string"}, {"integer"}]
    older = SchemaView({"items": [{"type": "string"}], "additionalItems": {"type": "integer"}})
    assert older.item(0).types == {"string"}  # type: ignore[union-attr]
    assert older.item(7).types == {"integer"}  # type: ignore[union-attr]
    nullable = SchemaView({"anyOf": [{"type": "array", "items": {"type": "boolean"}}, {"type": "null"}]})
    assert nullable.items is not None
    assert nullable.items.types == {"boolean"}
    assert SchemaView({"type": "array"}).items is None


def test_alternatives_keep_what_stands_beside_the_union() -> None:
    view = SchemaView(
        {
            "type": "object",
            "description": "says nothing about values",
            "properties": {"a": {"type": "string"}},
            "allOf": [{"anyOf": [{"required": ["a"]}, {"$ref": "#/$defs/B"}]}],
            "$defs": {"B": {"properties": {"b": {"type": "null"}}}},
        }
    )
    first, second = view.alternatives
    assert (first.types, list(first.properties), first.required) == ({"object"}, ["a"], {"a"})
    assert (second.types, set(second.properties), second.required) == ({"object"}, {"a", "b"}, frozenset())
    assert first.alternatives == second.alternatives == ()


def test_alternatives_of_a_plain_union_are_its_branches() -> None:
    branches = [{"type": "string"}, {"type": "null"}]
    assert [branch.schema for branch in SchemaView({"anyOf": branches, "title": "T"}).alternatives] == branches


def nested(make: Any) -> Any:
    schema: Any = {"type": "string"}
    for _ in range(DEEP):
        schema = make(schema)
    return schema


@pytest.mark.parametrize(
    "make",
    [
        lambda inner: {"anyOf": [inner]},
        lambda inner: {"allOf": [inner]},
        lambda inner: {"oneOf": [inner, {"type": "null"}]},
        lambda inner: {"type": "array", "items": inner},
        lambda inner: {"properties": {"a": inner}, "additionalProperties": inner},
    ],
)
def test_depth_is_no_fault(make: Any) -> None:
    everything(SchemaView(nested(make)))


def test_a_schema_as_a_document_of_its_own() -> None:
    root = {"properties": {"a": {"$ref": "#/$defs/A"}, "b": {"type": "string"}}, "$defs": {"A": {"type": "integer"}}}
    view = SchemaView(root)
    alone = view.properties["a"].standalone()
    assert SchemaView(alone).types == {"integer"}
    assert view.properties["b"].standalone() is root["properties"]["b"]
    assert view.standalone() is root
    with pytest.raises(SchemaTooComplexError):
        SchemaView(nested(lambda inner: {"items": inner}), root).standalone()


def test_a_long_chain_of_references() -> None:
    schema = {"$defs": {str(i): {"anyOf": [{"$ref": f"#/$defs/{i + 1}"}]} for i in range(5000)}, "$ref": "#/$defs/0"}
    everything(SchemaView(schema))


def test_a_union_of_unions_that_doubles() -> None:
    schema: dict[str, Any] = {"$ref": "#/$defs/0", "$defs": {"60": {"const": 1}}}
    for i in range(60):
        schema["$defs"][str(i)] = {"anyOf": [{"$ref": f"#/$defs/{i + 1}"}, {"$ref": f"#/$defs/{i + 1}"}]}
    view = SchemaView(schema)
    everything(view)
    assert view.types == {"integer"}


def everything(view: SchemaView) -> None:
    """Ask a view everything there is to ask."""
    assert view.types <= ANY_TYPE
    assert view.only_string == (view.types == {"string"})
    assert view.allows_null == ("null" in view.types)
    assert isinstance(view.required, frozenset)
    assert isinstance(view.is_closed, bool)
    assert repr(view).startswith("SchemaView(")
    values = view.const_values
    assert values is None or isinstance(values, tuple)
    for inside in [*view.properties.values(), *view.alternatives, view.member("a"), view.additional, view.item(0)]:
        assert inside is None or inside.types <= ANY_TYPE
    view.annotation("description")


KEYWORDS = st.sampled_from(
    [
        "type",
        "enum",
        "const",
        "anyOf",
        "oneOf",
        "allOf",
        "$ref",
        "$defs",
        "properties",
        "items",
        "prefixItems",
        "additionalProperties",
        "patternProperties",
        "required",
        "nullable",
        "$anchor",
        "$id",
        "a",
        "not",
    ]
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["#", "#/$defs/a", "#a", "string", "a"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYWORDS, inner, max_size=5),
    max_leaves=20,
)


@settings(deadline=None)
@given(JUNK)
def test_anything_has_a_view(schema: object) -> None:
    everything(SchemaView(schema))


def test_a_branch_that_no_value_is_of_declares_nothing() -> None:
    impossible = {"type": "string", "anyOf": [{"properties": {"b": {"type": "null"}}, "type": "object"}]}
    view = SchemaView({"anyOf": [impossible, {"type": "object", "properties": {"b": {"type": "string"}}}]})
    member = view.member("b")
    assert member is not None
    assert member.types == {"string"}
