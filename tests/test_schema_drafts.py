"""Schemas of every draft: a matcher accepts exactly the instances that are valid by the schema's own draft."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.constraints.guarded_matcher import GuardedMatcher, json_matcher
from isogloss.errors import SchemaTooComplexError, UnsatisfiableSchemaError
from isogloss.schema.lowering import Lowered, lower
from isogloss.tokenizers import byte_level

BYTES = byte_level()
DRAFTS = {
    "4": "http://json-schema.org/draft-04/schema#",
    "6": "http://json-schema.org/draft-06/schema#",
    "7": "http://json-schema.org/draft-07/schema#",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}

INTEGERS = {"type": "integer"}
TREE = {"type": "object", "properties": {"left": {"$ref": "#"}}, "additionalProperties": False}

CASES: list[tuple[str, str, dict[str, Any], list[Any], list[Any]]] = [
    ("exclusive bounds are booleans", "4", {"minimum": 3, "exclusiveMinimum": True}, [4, "x"], [3, 2]),
    ("a bound that excludes nothing", "4", {"maximum": 3, "exclusiveMaximum": False}, [3], [4]),
    ("const means nothing", "4", {"const": 1}, [1, 2], []),
    ("contains means nothing", "4", {"contains": {"type": "null"}}, [[], [1]], []),
    ("propertyNames means nothing", "4", {"propertyNames": {"pattern": "^a"}}, [{"b": 1}], []),
    ("items by position", "4", {"items": [INTEGERS, {"type": "string"}]}, [[1, "a", None], [1], []], [["a"], [1, 2]]),
    (
        "additional items",
        "4",
        {"type": "array", "items": [INTEGERS], "additionalItems": {"type": "null"}},
        [[1], [1, None], []],
        [[1, 2], [None]],
    ),
    ("additional items beside one schema", "4", {"items": INTEGERS, "additionalItems": False}, [[1, 2]], [["a"]]),
    (
        "definitions and identifiers",
        "4",
        {
            "id": "https://example.org/root",
            "definitions": {"a": {"id": "https://example.org/a", "type": "integer"}},
            "properties": {"x": {"$ref": "https://example.org/a"}, "y": {"$ref": "#/definitions/a"}},
            "type": "object",
        },
        [{"x": 1, "y": 2}],
        [{"x": "1"}, {"y": None}],
    ),
    (
        "siblings of a reference mean nothing",
        "4",
        {"definitions": {"a": INTEGERS}, "properties": {"x": {"$ref": "#/definitions/a", "minimum": 5}}},
        [{"x": 1}],
        [{"x": "a"}],
    ),
    ("dependencies on keys", "4", {"dependencies": {"a": ["b"]}}, [{"a": 1, "b": 2}, {"b": 1}, 1], [{"a": 1}]),
    ("dependencies on a schema", "4", {"dependencies": {"a": {"required": ["b"]}}}, [{"a": 1, "b": 2}], [{"a": 1}]),
    ("keywords of other types", "4", {"type": "null", "patternProperties": {"^a": {}, "b": {}}}, [None], [{}]),
    ("disallowed", "4", {"not": {"type": "string"}}, [1, None], ["a"]),
    ("recursion", "4", TREE, [{}, {"left": {"left": {}}}], [{"left": 1}, {"right": {}}]),
    (
        "extended",
        "4",
        {"allOf": [{"required": ["a"]}, {"properties": {"a": INTEGERS}}]},
        [{"a": 1}, 1],
        [{}, {"a": ""}],
    ),
    ("exclusive bounds are numbers", "6", {"exclusiveMinimum": 3, "exclusiveMaximum": 5}, [4, "x"], [3, 5]),
    ("const", "6", {"const": {"a": [1]}}, [{"a": [1]}], [{"a": [2]}, 1]),
    ("contains", "6", {"contains": {"type": "null"}}, [[1, None], "x"], [[], [1]]),
    ("bounds on contains mean nothing", "6", {"contains": INTEGERS, "maxContains": 1}, [[1, 2]], [[]]),
    ("conditions mean nothing", "6", {"if": {"type": "string"}, "then": {"minLength": 2}}, ["a", "ab"], []),
    ("names", "6", {"propertyNames": {"pattern": "^a"}}, [{"ab": 1}, {}], [{"b": 1}]),
    ("boolean schemas", "6", {"properties": {"a": True, "b": False}}, [{"a": 1}, {}], [{"b": 1}]),
    ("items by position, closed", "6", {"items": [True, INTEGERS], "additionalItems": False}, [[0, 1]], [[0, 1, 2]]),
    ("dependencies on nothing", "6", {"dependencies": {"a": False, "b": []}}, [{"b": 1}, {}], [{"a": 1}]),
    ("an identifier", "6", {"$id": "https://example.org/r", **TREE}, [{"left": {}}], [{"left": []}]),
    (
        "conditions",
        "7",
        {"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"minimum": 2}},
        ["ab", 2],
        ["a", 1],
    ),
    ("bounds on contains mean nothing", "7", {"contains": INTEGERS, "minContains": 2}, [[1]], [["a"]]),
    ("unevaluated means nothing", "7", {"unevaluatedProperties": False}, [{"a": 1}], []),
    (
        "siblings of a reference mean nothing",
        "7",
        {"definitions": {"a": INTEGERS}, "items": {"$ref": "#/definitions/a", "maximum": 1}},
        [[5]],
        [["a"]],
    ),
    ("an anchor by identifier", "7", {"definitions": {"a": {"$id": "#a", **INTEGERS}}, "$ref": "#a"}, [1], ["a"]),
    (
        "siblings of a reference count",
        "2019-09",
        {"$defs": {"a": INTEGERS}, "type": "array", "items": {"$ref": "#/$defs/a", "maximum": 1}},
        [[1]],
        [[5], ["a"]],
    ),
    (
        "bounds on contains",
        "2019-09",
        {"contains": INTEGERS, "minContains": 2, "maxContains": 3},
        [[1, 2]],
        [[1], [1] * 4],
    ),
    ("none contained", "2019-09", {"contains": INTEGERS, "minContains": 0}, [[], ["a"]], []),
    ("items by position", "2019-09", {"items": [INTEGERS], "additionalItems": {"type": "null"}}, [[1, None]], [[1, 2]]),
    ("prefixItems means nothing", "2019-09", {"prefixItems": [INTEGERS]}, [["a"]], []),
    ("dependent keys", "2019-09", {"dependentRequired": {"a": ["b"]}}, [{"a": 1, "b": 1}], [{"a": 1}]),
    ("dependent schemas", "2019-09", {"dependentSchemas": {"a": {"maxProperties": 1}}}, [{"a": 1}], [{"a": 1, "b": 1}]),
    ("an anchor", "2019-09", {"$defs": {"a": {"$anchor": "a", **INTEGERS}}, "items": {"$ref": "#a"}}, [[1]], [["a"]]),
    (
        "unevaluated properties",
        "2019-09",
        {"allOf": [{"properties": {"a": INTEGERS}}], "unevaluatedProperties": False},
        [{"a": 1}, 2],
        [{"b": 1}, {"a": "a"}],
    ),
    ("unevaluated items", "2019-09", {"items": [INTEGERS], "unevaluatedItems": False}, [[1], []], [[1, 2]]),
    (
        "recursion without an anchor",
        "2019-09",
        {"type": "object", "properties": {"a": {"$recursiveRef": "#"}}, "additionalProperties": False},
        [{"a": {"a": {}}}],
        [{"a": {"b": {}}}],
    ),
    (
        "recursion to an anchor further out",
        "2019-09",
        {
            "$id": "https://example.org/strict",
            "$recursiveAnchor": True,
            "$ref": "tree",
            "unevaluatedProperties": False,
            "$defs": {
                "tree": {
                    "$id": "tree",
                    "$recursiveAnchor": True,
                    "type": "object",
                    "properties": {"data": True, "child": {"$recursiveRef": "#"}},
                }
            },
        },
        [{"data": 1, "child": {"data": 2}}, {}],
        [{"child": {"dat": 2}}, {"x": 1}],
    ),
    (
        "a condition that holds by a choice evaluates",
        "2020-12",
        {"if": True, "then": {"if": {"anyOf": [{}, {"prefixItems": [{}]}]}}, "unevaluatedItems": False},
        [[None], []],
        [[None, None]],
    ),
    (
        "a condition by a choice of properties",
        "2019-09",
        {
            "if": {"oneOf": [{"properties": {"a": INTEGERS}, "required": ["a"]}, {"required": ["b"]}]},
            "then": {"properties": {"c": {}}},
            "else": {"properties": {"d": {}}},
            "unevaluatedProperties": False,
        },
        [{"a": 1, "c": 1}, {"d": 1}, 3],
        [{"b": 1}, {"c": 1}, {"a": 1, "d": 1}],
    ),
    ("items of the new draft", "2020-12", {"prefixItems": [INTEGERS], "items": False}, [[1], []], [[1, 2], ["a"]]),
    (
        "contains evaluates",
        "2020-12",
        {"contains": INTEGERS, "unevaluatedItems": {"type": "null"}},
        [[1, None]],
        [[1, "a"]],
    ),
]


def compact(lowered: Lowered, instance: Any) -> bytes:
    return json.dumps(lowered.in_schema_order(instance), ensure_ascii=False, separators=(",", ":")).encode()


def accepts(matcher: Any, text: bytes) -> bool:
    return bool(matcher.accept_all(list(text)) == len(text) and matcher.is_complete)


@pytest.mark.parametrize(
    ("draft", "schema", "valid", "invalid"), [case[1:] for case in CASES], ids=[f"{c[1]}: {c[0]}" for c in CASES]
)
def test_a_draft_has_its_own_meaning(draft: str, schema: dict[str, Any], valid: list[Any], invalid: list[Any]) -> None:
    schema = {"$schema": DRAFTS[draft], **schema}
    lowered = lower(schema)
    for instances, expected in ((valid, True), (invalid, False)):
        for instance in instances:
            assert jsonschema_rs.is_valid(schema, instance) == expected, instance
            text = compact(lowered, instance)
            assert accepts(json_matcher(lowered, BYTES), text) == expected, text
            assert accepts(GuardedMatcher(lowered.grammar().text(), BYTES, lowered.guards), text) == expected, text


# --- random schemas against random instances --------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 4), st.sampled_from([0.5, 2.5]), st.sampled_from(["", "a", "ab", "b"])
)
INSTANCES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)
SMALL = st.integers(0, 3)
BOOLEANS = st.booleans()


def keywords(draft: str, inner: st.SearchStrategy[Any]) -> dict[str, st.SearchStrategy[Any]]:
    """What the keywords of a draft may hold."""
    some = st.lists(inner, min_size=1, max_size=3)
    by_name = st.dictionaries(NAMES, inner, min_size=1, max_size=2)
    names = st.lists(NAMES, min_size=1, max_size=2, unique=True)
    types = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
    found: dict[str, st.SearchStrategy[Any]] = {
        "type": st.one_of(types, st.lists(types, min_size=1, max_size=3, unique=True)),
        "enum": st.lists(INSTANCES, min_size=1, max_size=3),
        "minimum": SMALL,
        "maximum": SMALL,
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        "minLength": SMALL,
        "maxLength": SMALL,
        "pattern": st.sampled_from(["^a", "b$", "^[ab]*$"]),
        "minItems": SMALL,
        "maxItems": SMALL,
        "uniqueItems": BOOLEANS,
        "minProperties": SMALL,
        "maxProperties": SMALL,
        "required": names,
        "properties": by_name,
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b|c", ".*"]), inner, min_size=1, max_size=2),
        "additionalProperties": inner,
        "items": inner,
        "allOf": some,
        "anyOf": some,
        "oneOf": some,
        "not": inner,
    }
    if draft == "4":
        found["exclusive"] = BOOLEANS
    else:
        found |= {"exclusiveMinimum": SMALL, "exclusiveMaximum": SMALL, "const": INSTANCES}
        found |= {"contains": inner, "propertyNames": inner}
    if draft in ("4", "6", "7"):
        found["dependencies"] = st.dictionaries(NAMES, st.one_of(inner, names), min_size=1, max_size=2)
    else:
        found |= {"dependentRequired": st.dictionaries(NAMES, names, max_size=2), "dependentSchemas": by_name}
        found |= {"minContains": SMALL, "maxContains": SMALL}
        found |= {"unevaluatedProperties": inner, "unevaluatedItems": inner}
    if draft not in ("4", "6"):
        found |= {"if": inner, "then": inner, "else": inner}
    if draft == "2020-12":
        found["prefixItems"] = some
    else:
        found |= {"items": st.one_of(inner, some), "additionalItems": inner}
    return found


def schemas(draft: str) -> st.SearchStrategy[dict[str, Any]]:
    leaves = st.just({}) if draft == "4" else st.one_of(st.just({}), st.just(False), st.just(True))

    def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        known = keywords(draft, inner)
        return st.lists(st.sampled_from(sorted(known)), max_size=3, unique=True).flatmap(
            lambda chosen: st.fixed_dictionaries({name: known[name] for name in chosen}).map(spelled)
        )

    return st.recursive(leaves, larger, max_leaves=6).filter(lambda schema: isinstance(schema, dict))


def spelled(schema: dict[str, Any]) -> dict[str, Any]:
    """``exclusive`` as draft 4 has it, beside the bound that it speaks of."""
    if "exclusive" in schema:
        exclusive = schema.pop("exclusive")
        schema |= {"minimum": 1, "exclusiveMinimum": exclusive}
    return schema


@pytest.mark.parametrize("draft", DRAFTS)
def test_a_matcher_agrees_with_the_validator(draft: str) -> None:
    @settings(max_examples=60, deadline=None)
    @given(schemas(draft), st.lists(INSTANCES, min_size=1, max_size=8))
    def check(schema: dict[str, Any], instances: list[Any]) -> None:
        document = {"$schema": DRAFTS[draft], **schema}
        validator = jsonschema_rs.validator_for(document)
        try:
            lowered = lower(document)
        except UnsatisfiableSchemaError:
            assert not any(map(validator.is_valid, instances))
            return
        except SchemaTooComplexError:
            return
        for instance in instances:
            text = compact(lowered, instance)
            assert accepts(json_matcher(lowered, BYTES), text) == validator.is_valid(instance), text

    check()
