"""A model of random weights under a constraint: whatever the schema, in every dialect, its turns scan and validate.

Each dialect is driven through 80 made-up schemas, 2,000 in all, as a tool's parameters and as the answer's format.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from isogloss.dialects import dialect_names, get_dialect
from isogloss.errors import UnrepresentableError, UnsatisfiableSchemaError
from isogloss.messages import ResponseFormat, Tool
from isogloss.testing import check_generated

NAMES = st.sampled_from(["a", "b", "city", "Max", "x_1"])
TEXTS = st.sampled_from(["", "a", "b c", "1", "null", "true", 'say "x"', "é", "<b>", "two\nlines"])
SCALARS: st.SearchStrategy[Any] = st.one_of(st.none(), st.booleans(), st.integers(-99, 99), TEXTS)

STRINGS = st.one_of(
    st.just({"type": "string"}),
    st.integers(0, 8).map(lambda n: {"type": "string", "maxLength": n}),
    st.sampled_from([r"^[a-z]{1,3}$", r"^\d{2}-\d{2}$", r"^(yes|no)$", "[A-Z]"]).map(
        lambda pattern: {"type": "string", "pattern": pattern}
    ),
    st.sampled_from(["date", "time", "ipv4", "uuid", "hostname", "uri"]).map(
        lambda name: {"type": "string", "format": name}
    ),
    st.just({"type": "string", "pattern": "^(?!no)[a-z]+$", "maxLength": 6}),
)
NUMBERS = st.one_of(
    st.just({"type": "integer"}),
    st.tuples(st.integers(-50, 0), st.integers(1, 50)).map(
        lambda pair: {"type": "integer", "minimum": pair[0], "maximum": pair[1]}
    ),
    st.integers(2, 9).map(lambda n: {"type": "integer", "multipleOf": n, "minimum": 0, "maximum": 500}),
    st.just({"type": "number", "exclusiveMinimum": 0, "maximum": 10}),
)
LEAVES = st.one_of(
    STRINGS,
    NUMBERS,
    st.just({"type": "boolean"}),
    st.lists(SCALARS, min_size=1, max_size=4).map(lambda values: {"enum": values}),
    SCALARS.map(lambda value: {"const": value}),
    st.sampled_from(["string", "integer", "boolean"]).map(lambda name: {"type": [name, "null"]}),
    st.just({"type": ["string", "integer"], "pattern": "^[a-z0-9]$", "multipleOf": 3}),
    STRINGS.map(lambda schema: {"anyOf": [schema, {"type": "null"}]}),
)


def objects(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    def closed(properties: dict[str, Any], required: set[str], exotic: dict[str, Any]) -> dict[str, Any]:
        names = [name for name in properties if name in required]
        schema = {"type": "object", "properties": properties, "required": names, "additionalProperties": False}
        return {**schema, **exotic}

    exotic = st.sampled_from(
        [
            {},
            {},
            {},
            {"dependentRequired": {"a": ["b"]}},
            {"minProperties": 1},
            {"maxProperties": 1},
            {"not": {"required": ["city"]}},
            {"anyOf": [{"required": ["a"]}, {"required": ["b"]}, {"required": ["city"]}]},
            {"if": {"properties": {"a": {"type": "string"}}}, "then": {"required": ["b"]}},
        ]
    )
    return st.builds(closed, st.dictionaries(NAMES, values, max_size=3), st.sets(NAMES), exotic)


def compound(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        objects(values),
        st.tuples(values, st.booleans()).map(
            lambda pair: {"type": "array", "items": pair[0], "maxItems": 3, "uniqueItems": pair[1]}
        ),
        st.lists(values, min_size=2, max_size=2).map(lambda branches: {"anyOf": branches}),
        st.lists(values, min_size=2, max_size=2).map(lambda branches: {"oneOf": branches}),
        values.map(lambda value: {"allOf": [value, {"not": {"const": 1}}]}),
    )


SCHEMAS = objects(st.recursive(LEAVES, compound, max_leaves=5))


@pytest.mark.parametrize("name", dialect_names())
def test_turns_of_random_weights_scan_and_validate(name: str) -> None:
    dialect = get_dialect(name)
    whole = 0

    @settings(
        max_examples=80,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(SCHEMAS, st.integers(0, 99))
    def check(schema: dict[str, Any], seed: int) -> None:
        nonlocal whole
        try:
            is_whole = check_generated(
                dialect, [Tool("t", "", schema)], seed, tool_choice="required", parallel=False, reasoning=False
            )
            answer = ResponseFormat.json_schema(schema)
            check_generated(dialect, [], seed, response_format=answer, reasoning=False)
        except (UnsatisfiableSchemaError, UnrepresentableError):
            return
        whole += is_whole

    check()
    assert whole > 40
