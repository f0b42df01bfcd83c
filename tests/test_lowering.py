"""Lowered schemas: their grammars accept exactly the valid instances, keys in schema order."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.constraints import Constraint, Matcher
from isogloss.constraints.guarded_matcher import GuardedMatcher, json_matcher
from isogloss.errors import SchemaError, UnsatisfiableSchemaError
from isogloss.schema.lowering import Lowered, in_schema_order, lower
from isogloss.tokenizers import byte_level

BYTES = byte_level()


def compact(instance: Any) -> bytes:
    return json.dumps(instance, ensure_ascii=False, separators=(",", ":")).encode()


def accepts(matcher: Matcher, text: bytes) -> bool:
    return matcher.accept_all(list(text)) == len(text) and matcher.is_complete


def written(lowered: Lowered) -> Matcher:
    """A matcher of the grammar written for the schema, also where the engine would take the schema as it is."""
    return GuardedMatcher(lowered.grammar().text(), BYTES, lowered.guards)


TREE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"value": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}},
            "additionalProperties": False,
        }
    }
}
LETTERS = {letter: {"type": "integer"} for letter in "abcd"}

EXACT: list[tuple[str, Any, list[Any], list[Any]]] = [
    (
        "closed object",
        {"type": "object", "properties": LETTERS, "additionalProperties": False},
        [{}, {"a": 1, "d": 2}],
        [{"e": 1}, {"a": "1"}],
    ),
    (
        "open object",
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        [{"a": 1}, {"a": 1, "x": [None]}],
        [{"x": 1}],
    ),
    ("no type", {"properties": {"a": {"type": "integer"}}}, [1, "x", {"a": 1}, [{"a": "x"}]], [{"a": "x"}]),
    (
        "counted keys",
        {
            "type": "object",
            "properties": LETTERS,
            "additionalProperties": False,
            "minProperties": 2,
            "maxProperties": 3,
        },
        [{"a": 1, "b": 1}, {"c": 1, "d": 1}],
        [{"a": 1}, {"a": 1, "b": 1, "c": 1, "d": 1}],
    ),
    (
        "counted extra keys",
        {"type": "object", "minProperties": 1, "maxProperties": 2},
        [{"x": 1}, {"x": 1, "y": 2}],
        [{}, {"x": 1, "y": 2, "z": 3}],
    ),
    (
        "overlapping patterns",
        {
            "type": "object",
            "patternProperties": {"^a": {"type": "string"}, "b$": {"minLength": 2}},
            "additionalProperties": False,
        },
        [{"ab": "xx", "a": "x"}, {"b": 1}],
        [{"ab": "x"}, {"ab": 1}, {"c": 1}],
    ),
    (
        "names of keys",
        {"propertyNames": {"pattern": "^[ab]+$", "maxLength": 2}},
        [{"ab": 1}, 3],
        [{"c": 1}, {"aba": 1}],
    ),
    (
        "dependent keys",
        {"type": "object", "dependentRequired": {"a": ["b"]}},
        [{"b": 1}, {"a": 1, "b": 1}, {}],
        [{"a": 1}],
    ),
    (
        "dependent schemas",
        {"properties": {"a": {}}, "dependentSchemas": {"a": {"properties": {"b": {"type": "null"}}}}},
        [{"a": 1, "b": None}, {"b": 1}],
        [{"a": 1, "b": 1}],
    ),
    (
        "condition",
        {
            "if": {"properties": {"k": {"const": 1}}, "required": ["k"]},
            "then": {"required": ["x"]},
            "else": {"required": ["y"]},
            "type": "object",
        },
        [{"k": 1, "x": 0}, {"k": 2, "y": 0}],
        [{"k": 1, "y": 0}, {"x": 0}],
    ),
    ("not an enum", {"not": {"enum": ["a", 1, None]}}, ["b", 2, 1.5, {}], ["a", 1, None]),
    ("not a type", {"not": {"type": ["integer", "object"]}}, ["b", 1.5, []], [1, {}]),
    ("not a range", {"type": "integer", "not": {"minimum": 3, "maximum": 5}}, [2, 6], [3, 4, 5]),
    ("not a pattern", {"type": "string", "not": {"pattern": "b"}}, ["ac", ""], ["abc"]),
    ("not a required key", {"type": "object", "not": {"required": ["a"]}}, [{}, {"b": 1}], [{"a": 1}]),
    (
        "not all values",
        {"type": "object", "not": {"additionalProperties": {"type": "integer"}}},
        [{"a": "x"}, {"a": 1, "b": "x"}],
        [{}, {"a": 1}],
    ),
    (
        "not all names",
        {"type": "object", "not": {"propertyNames": {"pattern": "^a"}}},
        [{"b": 1}, {"a": 1, "b": 1}],
        [{}, {"a": 1}],
    ),
    (
        "overlapping oneOf",
        {"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object", "properties": LETTERS},
        [{"a": 1}, {"b": 1, "c": 1}],
        [{}, {"a": 1, "b": 1}],
    ),
    ("numeric oneOf", {"oneOf": [{"type": "integer"}, {"minimum": 2}]}, [1, 2.5], [3, 1.5]),
    (
        "recursive conjunction",
        {
            **TREE,
            "allOf": [
                {"$ref": "#/$defs/node"},
                {"required": ["next"], "properties": {"next": {"required": ["value"]}}},
            ],
        },
        [{"next": {"value": 1}}, {"next": {"value": 1, "next": {}}}],
        [{}, {"next": {}}, {"next": {"value": "x"}}],
    ),
    ("contains", {"type": "array", "contains": {"type": "string"}}, [["a"], [1, "a"], ["a", 1, "b"]], [[], [1]]),
    (
        "counted contains",
        {"type": "array", "contains": {"type": "string"}, "minContains": 2, "maxContains": 2},
        [["a", 1, "b"]],
        [["a"], ["a", "b", "c"]],
    ),
    (
        "contains in little room",
        {"type": "array", "contains": {"const": 7}, "maxItems": 2},
        [[7], [1, 7], [7, 7]],
        [[1], [1, 2], [7, 1, 1]],
    ),
    (
        "contains nothing",
        {"type": "array", "contains": {"type": "string"}, "minContains": 0, "maxContains": 0},
        [[], [1]],
        [["a"]],
    ),
    (
        "unique values",
        {"type": "array", "items": {"enum": [1, "a", None]}, "uniqueItems": True, "minItems": 2},
        [[1, "a"], ["a", None, 1]],
        [[1], ["a", "a"], [1, 1, "a"]],
    ),
    (
        "tuple",
        {
            "type": "array",
            "prefixItems": [{"type": "string"}, {"type": "integer"}],
            "items": {"type": "null"},
            "minItems": 1,
            "maxItems": 3,
        },
        [["a"], ["a", 1], ["a", 1, None]],
        [[], [1], ["a", 1, 1], ["a", 1, None, None]],
    ),
    (
        "long tuple",
        {"type": "array", "prefixItems": [{"const": i} for i in range(40)], "items": False, "minItems": 2},
        [[0, 1], list(range(40)), list(range(20))],
        [[0], [0, 2], list(range(41)), list(range(1, 20))],
    ),
    (
        "unevaluated keys",
        {"allOf": [{"properties": {"a": {"type": "integer"}}}], "unevaluatedProperties": False, "type": "object"},
        [{}, {"a": 1}],
        [{"b": 1}, {"a": "x"}],
    ),
    (
        "unevaluated items",
        {"type": "array", "prefixItems": [{"type": "string"}], "unevaluatedItems": False},
        [[], ["a"]],
        [["a", 1], [1]],
    ),
    ("multiples", {"type": "integer", "multipleOf": 7, "minimum": 10}, [14, 70], [7, 15]),
    ("decimal multiples", {"type": "number", "multipleOf": 0.01, "maximum": 5}, [1.25, 5, -3.1], [1.255, 6]),
    ("fractions", {"type": "number", "not": {"type": "integer"}, "minimum": 1}, [1.5, 20.25], [1, 0.5, 3]),
    ("range", {"type": "number", "exclusiveMinimum": -1.5, "maximum": 10}, [-1.49, 0, 10, 9.999], [-1.5, 10.01, -2]),
    (
        "literals",
        {"enum": ['a"b', "<x>", 1.5, 1e-07, True, "é", [], {"b": 1, "a": [2]}]},
        ['a"b', "<x>", 1.5, 1e-07, True, "é", [], {"b": 1, "a": [2]}],
        ["a", 1, False, [1], {}],
    ),
    ("lengths", {"type": "string", "minLength": 1, "maxLength": 2}, ["é", "🐲🐲", '"\\'], ["", "abc"]),
    (
        "draft 4",
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "type": "integer",
            "minimum": 1,
            "exclusiveMinimum": True,
        },
        [2],
        [1],
    ),
    (
        "draft 7 items",
        {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "null"}], "additionalItems": False},
        [[], [None]],
        [[1], [None, None]],
    ),
    (
        "dynamic reference",
        {
            "$id": "https://example.org/tree",
            "$dynamicAnchor": "node",
            "type": "object",
            "properties": {"d": {"$dynamicRef": "#node"}},
            "unevaluatedProperties": False,
        },
        [{}, {"d": {"d": {}}}],
        [{"x": 1}, {"d": {"x": 1}}],
    ),
    ("anchor", {"$defs": {"a": {"$anchor": "here", "type": "null"}}, "$ref": "#here"}, [None], [1]),
]


@pytest.mark.parametrize(("schema", "valid", "invalid"), [case[1:] for case in EXACT], ids=[case[0] for case in EXACT])
def test_a_grammar_is_exact(schema: Any, valid: list[Any], invalid: list[Any]) -> None:
    lowered = lower(schema)
    assert lowered.guards.plan is None
    for instances, expected in ((valid, True), (invalid, False)):
        for instance in instances:
            text = compact(lowered.in_schema_order(instance))
            assert accepts(written(lowered), text) == expected, text
            assert accepts(json_matcher(lowered, BYTES), text) == expected, text


def test_keys_come_in_schema_order() -> None:
    schema = {
        "type": "object",
        "properties": {"z": {"type": "string"}, "m": {}, "a": {"type": "integer"}},
        "required": ["a"],
        "patternProperties": {"^x": {"type": "null"}},
    }
    lowered = lower(schema)
    assert list(in_schema_order(schema, {"k": 1, "a": 1, "m": 1, "z": "s"})) == ["z", "m", "a", "k"]
    assert accepts(written(lowered), b'{"z":"s","m":1,"a":1,"k":1}')
    assert not accepts(written(lowered), b'{"a":1,"z":"s"}')


def test_nested_objects_keep_their_own_order() -> None:
    part = {"type": "object", "properties": {"b": {"type": "null"}, "a": {"type": "null"}}, "required": ["a", "b"]}
    other = {"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}, "c": {"const": 1}}}
    lowered = lower({"type": "object", "properties": {"y": other, "x": part}, "minProperties": 2})
    ordered = lowered.in_schema_order({"x": {"a": None, "b": None}, "y": {"c": 1, "b": None, "a": None}})
    assert compact(ordered) == b'{"y":{"a":null,"b":null,"c":1},"x":{"b":null,"a":null}}'
    assert accepts(written(lowered), compact(ordered))


def test_white_space_is_bounded() -> None:
    lowered = lower({"type": "array", "items": {"multipleOf": 5, "type": "integer"}})
    assert accepts(written(lowered), b"[\n  5,\n  10\n]")
    assert accepts(written(lowered), b"[5, 10]")
    assert not accepts(written(lowered), b"[5," + b" " * 100 + b"10]")
    assert not accepts(written(lowered), b"[5,\n\n10]")


def test_numbers_are_bounded_in_length() -> None:
    for schema in ({"type": "number"}, {"type": "integer"}, {"type": "integer", "multipleOf": 3}, {}):
        matcher = Constraint.from_json_schema(schema).matcher(BYTES)
        assert matcher.accept_all(list(b"3" * 1_000)) < 300, schema
        assert matcher.is_complete or any(matcher.mask())
    matcher = Constraint.from_json_schema({"type": "number"}).matcher(BYTES)
    assert matcher.accept_all(list(b"1e999")) < 5


def test_a_registry_gives_what_is_outside() -> None:
    registry = {"https://example.org/name": {"type": "string", "maxLength": 3}}
    lowered = lower({"type": "array", "items": {"$ref": "https://example.org/name"}}, registry=registry)
    assert accepts(written(lowered), b'["abc"]')
    assert not accepts(written(lowered), b'["abcd"]')
    with pytest.raises(SchemaError, match=r"example\.org/name"):
        lower({"$ref": "https://example.org/name"})


def test_a_constraint_takes_a_registry() -> None:
    registry = {
        "https://example.org/tree": {
            "type": "object",
            "properties": {"name": {"$ref": "name"}, "child": {"$ref": "https://example.org/tree"}},
            "additionalProperties": False,
        },
        "https://example.org/name": {"type": "string", "maxLength": 3},
        "https://example.org/never": False,
    }
    constraint = Constraint.from_json_schema({"$ref": "https://example.org/tree"}, registry=registry)
    assert accepts(constraint.matcher(BYTES), b'{"name":"a","child":{"name":"abc"}}')
    assert not accepts(constraint.matcher(BYTES), b'{"child":{"name":"abcd"}}')
    with pytest.raises(UnsatisfiableSchemaError):
        Constraint.from_json_schema({"$ref": "https://example.org/never"}, registry=registry)


PLAIN: list[tuple[str, Any, list[Any], list[Any]]] = [
    ("types apart", {"oneOf": [{"type": "string"}, {"type": "integer"}]}, ["a", 1], [1.5, None]),
    ("recursion", {**TREE, "$ref": "#/$defs/node"}, [{}, {"value": 1, "next": {"value": 2}}], [{"next": 1}]),
    ("pattern", {"type": "string", "pattern": "^[a-f0-9]{4}$"}, ["00ff"], ["00fg", "00f"]),
    (
        "format",
        {"type": ["string", "null"], "format": "uuid"},
        ["2eb8aa08-aa98-11ea-b4aa-73b441d16380", None],
        ["2eb8"],
    ),
    (
        "both",
        {"type": "string", "format": "date", "pattern": "^2[0-9-]+$"},
        ["2024-02-29"],
        ["1999-01-01", "2023-02-29"],
    ),
    ("annotation", {"type": "integer", "format": "int32", "title": "n", "deprecated": True}, [1], ["1"]),
    ("annotation of strings", {"type": ["string", "integer"], "format": "int-or-string"}, ["a", 1], [None]),
    (
        "keys beside those of a pattern",
        {
            "type": "object",
            "properties": {"version": {"type": "number"}, "note": {"type": "string"}},
            "required": ["version"],
            "additionalProperties": False,
            "patternProperties": {"^.+$": {"properties": {"b": {}, "a": {"type": "integer"}}, "required": ["a"]}},
        },
        [{"version": 1}, {"version": 1, "note": "n", "x": {"a": 1, "b": 2}, "y": 3}],
        [{}, {"version": {"a": 1}}, {"version": 1, "x": {"b": 1}}, {"version": 1, "": {"a": 1}}],
    ),
    (
        "a key that its pattern does not match",
        {
            "type": "object",
            "properties": {"kind": {"type": "object", "properties": {"x": {"type": "null"}}}},
            "additionalProperties": False,
            "patternProperties": {"^x-": {"type": "string"}},
        },
        [{}, {"kind": {}, "x-a": "b"}, {"x-a": "", "x-b": ""}],
        [{"kind": 1}, {"x-a": 1}, {"other": "a"}],
    ),
    (
        "what is required beside a choice",
        {
            "anyOf": [
                {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False},
                {"type": "object", "properties": {"a": {}, "b": {"type": "integer"}}, "required": ["b"]},
            ],
            "required": ["a"],
        },
        [{"a": "x"}, {"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3}],
        [{}, {"a": 1}, {"b": 2}, {"a": "x", "b": "y"}],
    ),
    (
        "one of some keys",
        {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": "null"}},
            "required": ["c"],
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
            "additionalProperties": False,
        },
        [{"a": "x", "c": None}, {"b": 1, "c": None}, {"a": "x", "b": 1, "c": None}],
        [{"c": None}, {"a": "x"}, {"a": 1, "c": None}, {"a": "x", "c": None, "d": 1}],
    ),
    (
        "a dialect named again with an identifier",
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "a": {
                    "$schema": "http://json-schema.org/draft-07/schema#",
                    "$id": "https://example.org/a",
                    "items": [{"type": "null"}],
                    "additionalItems": False,
                }
            },
        },
        [{"a": [None]}, {}],
        [{"a": [1]}],
    ),
    (
        "a pattern of every key",
        {"type": "object", "patternProperties": {"[a-z]*": {"type": "integer"}}, "additionalProperties": False},
        [{"A": 1, "": 2}, {}],
        [{"a": "x"}, {"A": "x"}],
    ),
    (
        "lengths of a pattern",
        {"type": "string", "pattern": "^(ab|c)*$", "minLength": 3, "maxLength": 3},
        ["abc"],
        ["ab"],
    ),
]


@pytest.mark.parametrize(("schema", "valid", "invalid"), [case[1:] for case in PLAIN], ids=[case[0] for case in PLAIN])
def test_a_plain_schema_is_exact_both_ways(schema: Any, valid: list[Any], invalid: list[Any]) -> None:
    lowered = lower(schema)
    assert lowered.plain is not None
    for instances, expected in ((valid, True), (invalid, False)):
        for instance in instances:
            text = compact(lowered.in_schema_order(instance))
            assert accepts(json_matcher(lowered, BYTES), text) == expected, text
            assert accepts(written(lowered), text) == expected, text


@pytest.mark.parametrize(
    "schema",
    [
        {"oneOf": [{"type": "number"}, {"type": "integer"}]},
        {"$defs": {"n": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "required": ["n", "x"]}}},
        {"type": "string", "pattern": '^[^"]$'},
        {"type": "string", "pattern": "^(?!a).$"},
        {"type": "string", "const": "\x7f"},
        {"$schema": "http://json-schema.org/draft-04/schema#", "const": 1},
        {"type": "object", "properties": {"a": {"$id": "https://example.org/a", "$ref": "#"}}},
        {"type": "string", "format": "hostname"},
        {"type": "object", "properties": {"a": {}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"type": "object", "required": ["c"], "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "patternProperties": {"a": {"minimum": 1}},
            "additionalProperties": False,
        },
        {"type": "object", "properties": {"a": {"type": "null"}}, "patternProperties": {"b": {"type": "string"}}},
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "items": {"$schema": "http://json-schema.org/draft-04/schema#", "$id": "https://example.org/a"},
        },
    ],
)
def test_what_the_engine_would_take_otherwise_is_not_plain(schema: Any) -> None:
    if "$defs" in schema:
        schema = {**schema, "type": "object", "properties": {"top": {"$ref": "#/$defs/n"}}}
    assert lower(schema).plain is None


def test_the_metaschema_is_known() -> None:
    lowered = lower({"$ref": "https://json-schema.org/draft/2020-12/schema"})
    assert accepts(written(lowered), b'{"type":"string"}')
    assert not accepts(written(lowered), b'{"type":"strng"}')


def test_fragments_share_their_definitions() -> None:
    first = lower({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}).grammar("one_")
    second = lower({"type": "array", "items": {"type": "string", "pattern": "^x"}}).grammar("two_")
    shared = "".join(f"{name}: {body}\n" for name, body in {**first.shared, **second.shared}.items())
    matcher = Matcher(f'start: {first.start} "|" {second.start}\n{first.rules}{second.rules}{shared}', BYTES)
    assert accepts(matcher, b'{"a":"b"}|["x"]')


# --- any schema ----------------------------------------------------------------------------------------------------

NAMES = ["a", "b", "c", "ab"]
SCALARS = st.sampled_from([None, True, False, 0, 1, 2, 3, 10, -1, 1.5, "", "a", "b", "ab", "xyz"])
INSTANCES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*NAMES, "x"]), inner, max_size=3),
    max_leaves=6,
)


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    count = st.integers(0, 3)
    some = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "type": st.sampled_from(["object", "array", "string", "number", "integer", "null", ["object", "array"]]),
        "properties": named,
        "required": st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
        "additionalProperties": inner,
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b", "."]), inner, max_size=2),
        "propertyNames": st.sampled_from([{"maxLength": 1}, {"pattern": "^a"}, {"enum": ["a", "b"]}]),
        "minProperties": count,
        "maxProperties": count,
        "dependentRequired": st.just({"a": ["b"]}),
        "dependentSchemas": st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=1),
        "items": inner,
        "prefixItems": some,
        "minItems": count,
        "maxItems": count,
        "contains": inner,
        "maxContains": count,
        "uniqueItems": st.just(True),
        "pattern": st.sampled_from(["^a", "b$", "^[ab]+$", "^(?!a)"]),
        "maxLength": count,
        "minimum": st.sampled_from([-1, 0, 1.5]),
        "exclusiveMaximum": st.sampled_from([2, 10]),
        "multipleOf": st.sampled_from([2, 0.5, 10]),
        "enum": st.lists(SCALARS, min_size=1, max_size=3),
        "allOf": some,
        "anyOf": some,
        "oneOf": some,
        "not": inner,
        "if": inner,
        "then": inner,
        "else": inner,
    }
    return st.lists(st.sampled_from(sorted(keywords)), min_size=1, max_size=4, unique=True).flatmap(
        lambda names: st.fixed_dictionaries({name: keywords[name] for name in names})
    )


SCHEMAS = st.recursive(st.sampled_from([True, False, {}, {"type": "string"}, {"const": 1}]), _schemas, max_leaves=5)


@settings(max_examples=150, deadline=None)
@given(SCHEMAS, st.lists(INSTANCES, min_size=1, max_size=6))
def test_a_matcher_agrees_with_a_validator(schema: Any, instances: list[Any]) -> None:
    validator = jsonschema_rs.validator_for(schema)
    try:
        lowered = lower(schema)
    except UnsatisfiableSchemaError:
        assert not any(validator.is_valid(instance) for instance in instances)
        return
    for instance in instances:
        text = compact(lowered.in_schema_order(instance))
        assert accepts(json_matcher(lowered, BYTES), text) == validator.is_valid(instance), text
        assert accepts(written(lowered), text) == validator.is_valid(instance), text
