"""Where the canonical form of a schema admits too much: guards hold the rest, and no valid instance is lost."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from isogloss.constraints.guarded_matcher import json_matcher
from isogloss.schema.argument_cases import argument_cases
from isogloss.schema.lowering import lower
from isogloss.schema.text_values import text_values
from isogloss.tokenizers import byte_level

UNSETTLED = {
    "oneOf": [
        {
            "anyOf": [
                {"additionalProperties": False, "patternProperties": {"^x": {"required": ["a"]}}},
                {
                    "properties": {"xy": {"type": "integer"}},
                    "additionalProperties": False,
                    "patternProperties": {"^[ab]+$": {"required": ["a"]}},
                },
                {
                    "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
                    "additionalProperties": False,
                    "patternProperties": {".*": {"maxLength": 2}},
                },
            ]
        },
        {"type": "object", "additionalProperties": False, "patternProperties": {"a": {}}},
    ]
}
"""What one branch leaves of the other is a conjunction with a negation that the canonical form keeps as one."""
UNEVEN = {"oneOf": [{"multipleOf": 2}, {}]}
UNHELD = {"if": {"enum": [{"a": 1}]}, "then": {}, "else": {"uniqueItems": True}}

CASES: list[tuple[str, Any, list[Any], list[Any]]] = [
    (
        "exclusive choice that no merge settles",
        UNSETTLED,
        [1, [], {"xy": 1}, {"ca": "long"}],
        [{}, {"a": 1}, {"ca": 1}],
    ),
    (
        "guarded key of two patterns",
        {"patternProperties": {"^a": {"uniqueItems": True}, "a": UNEVEN}},
        [{"ab": 11}, {"b": 1}, {"ba": 3}],
        [{"ab": 10}, {"ba": 10}, {"b": 1, "ab": 10}],
    ),
    (
        "key of a pattern beside guarded ones",
        {
            "additionalProperties": {"oneOf": [{"patternProperties": {"^(?!a)": {"multipleOf": 0.5}}}, {}]},
            "patternProperties": {"^x": {}},
        },
        [{"xy": {}}, {"z": {"z": 1.2}}],
        [{"z": {}}, {"x": 1, "z": {"z": 1.5}}],
    ),
    (
        "order of keys below two patterns",
        {"patternProperties": {"^(?!a)": {"uniqueItems": True}, "^[ab]+$": {"required": ["a"]}}},
        [{"b": {"x": 1, "a": 2}}],
        [{"b": {"x": 1}}, {"x": [1, 1]}],
    ),
    (
        "guarded item counted elsewhere than where it is listed",
        {"type": "array", "prefixItems": [UNEVEN, {}], "contains": UNEVEN, "minContains": 2, "maxItems": 2},
        [[3, 5]],
        [[3, 10], [3, "x"], [10, 3]],
    ),
    (
        "reference that narrows to what no canonical form holds",
        {"oneOf": [{"$ref": "#/$defs/q"}, {}], "$defs": {"q": {"oneOf": [UNHELD]}}},
        [[1, 1]],
        [[1], {}, {"a": 1}, 5],
    ),
    (
        "reference that excludes what no canonical form holds",
        {"properties": {"a": {"not": {"$ref": "#/$defs/q"}}}, "$defs": {"q": {"oneOf": [UNHELD]}}},
        [{"a": [1, 1]}, {}],
        [{"a": [1]}, {"a": 5}],
    ),
    (
        "exclusion of what no canonical form holds, beside items that only a contains evaluates",
        {
            "allOf": [{"oneOf": [{"contains": True, "unevaluatedItems": False}]}],
            "not": {"contains": {"uniqueItems": True}, "maxContains": 2},
        },
        [[0, "a", ["xyz"]]],
        [[0], [0, 1], {}, 1],
    ),
]


@pytest.mark.parametrize(("schema", "valid", "invalid"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_guards_hold_what_is_inexact(schema: Any, valid: list[Any], invalid: list[Any]) -> None:
    lowered = lower(schema)
    validator = jsonschema_rs.validator_for(schema)
    for instances, expected in ((valid, True), (invalid, False)):
        for instance in instances:
            assert validator.is_valid(instance) == expected, instance
            text = json.dumps(lowered.in_schema_order(instance), separators=(",", ":")).encode()
            matcher = json_matcher(lowered, byte_level())
            assert (matcher.accept_all(list(text)) == len(text) and matcher.is_complete) == expected, text


@pytest.mark.parametrize(
    ("schema", "given"),
    [
        ({"allOf": [{"required": ["a"]}]}, {"x": -1, "a": "ab"}),
        ({"allOf": [{"allOf": [{"properties": {"a": {}, "x": {}}}]}]}, {"x": -1, "a": "ab"}),
        ({"prefixItems": [{"required": ["a"]}]}, [{"x": -1, "a": "ab"}]),
        ({"prefixItems": [{}], "items": {"required": ["a"]}}, [{"x": 1}, {"x": -1, "a": "ab"}]),
    ],
)
def test_keys_come_in_the_order_that_the_compiler_takes(schema: Any, given: Any) -> None:
    lowered = lower(schema)
    assert lowered.plain is not None
    text = json.dumps(lowered.in_schema_order(given), separators=(",", ":")).encode()
    matcher = json_matcher(lowered, byte_level())
    assert matcher.accept_all(list(text)) == len(text)
    assert matcher.is_complete


def test_arguments_of_an_unsettled_choice_are_not_exact() -> None:
    assert not any(case.is_exact for case in argument_cases(UNSETTLED))


def test_strings_of_an_unsettled_choice_are_not_sure() -> None:
    many = {"anyOf": [{"pattern": f"^{number}a"} for number in range(20)]}
    found = text_values({"type": "string", "oneOf": [many, {"pattern": "b$"}]})
    assert found.strings is not None
    assert found.sure is None
    assert not found.is_exact
