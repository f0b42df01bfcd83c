"""Raw text to a typed value, by the schema."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.schema.coercion import coerce, streams_as_string
from isogloss.schema.values import DEEPEST, same_value
from isogloss.schema.view import JSON_TYPES, SchemaView

VECTORS = Path(__file__).parents[2] / "shared" / "vectors" / "engines.json"

TAG_STYLE = ("qwen3_coder", "glm", "minimax_m2", "seed_oss", "deepseek_v32_dsml", "deepseek_v4_dsml")

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
BOOLEAN = {"type": "boolean"}
NULLABLE = {"type": ["string", "null"]}
STRING_OR_INTEGER = {"anyOf": [STRING, INTEGER]}
RECURSIVE = {"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}, INTEGER]}}}


@pytest.mark.parametrize(
    ("schema", "raw", "expected"),
    [
        # Only a string: the text, whatever it looks like.
        (STRING, "007", "007"),
        (STRING, "null", "null"),
        (STRING, "true", "true"),
        (STRING, '"quoted"', '"quoted"'),
        (STRING, "\n two\n", "\n two\n"),
        (STRING, "", ""),
        (STRING, '{"a": 1}', '{"a": 1}'),
        # Numbers.
        (INTEGER, "5", 5),
        (INTEGER, " 5\n", 5),
        (INTEGER, "-14", -14),
        (INTEGER, "5.0", 5),
        (INTEGER, "1e3", 1000),
        (INTEGER, "1e23", 10**23),
        (INTEGER, "018956", 18956),
        (INTEGER, "+7", 7),
        (INTEGER, '"5"', 5),
        (INTEGER, "12345678901234567890123", 12345678901234567890123),
        (INTEGER, "3.7", 3.7),
        (INTEGER, "abc", "abc"),
        (INTEGER, "", ""),
        (INTEGER, "true", True),
        (NUMBER, "3.14", 3.14),
        (NUMBER, "3.0", 3.0),
        (NUMBER, "5", 5),
        (NUMBER, ".5", 0.5),
        (NUMBER, "5.", 5.0),
        (NUMBER, "1e999", "1e999"),
        (NUMBER, "NaN", "NaN"),
        ({"type": "float"}, "3.14", 3.14),
        # Booleans and null, in every spelling.
        (BOOLEAN, "true", True),
        (BOOLEAN, "True", True),
        (BOOLEAN, "TRUE", True),
        (BOOLEAN, "False", False),
        (BOOLEAN, " false ", False),
        (BOOLEAN, "1", 1),
        (BOOLEAN, "yes", "yes"),
        ({"type": "null"}, "None", None),
        ({"type": "null"}, "NULL", None),
        ({"type": ["integer", "null"]}, "null", None),
        ({"type": ["integer", "null"]}, "None", None),
        ({"type": ["integer", "null"]}, "10", 10),
        # Beside a string.
        (NULLABLE, "null", None),
        (NULLABLE, "\nnull\n", None),
        (NULLABLE, "None", None),
        (NULLABLE, "NULL", "NULL"),
        (NULLABLE, '"null"', "null"),
        (NULLABLE, " hello\n", " hello\n"),
        (NULLABLE, "5", "5"),
        ({"type": "string", "nullable": True}, "null", None),
        ({"anyOf": [STRING, {"type": "null"}]}, "Smith", "Smith"),
        (STRING_OR_INTEGER, "5", 5),
        (STRING_OR_INTEGER, '"5"', "5"),
        (STRING_OR_INTEGER, "007", "007"),
        (STRING_OR_INTEGER, "2 dollars", "2 dollars"),
        (STRING_OR_INTEGER, "5.5", "5.5"),
        ({"anyOf": [STRING, {"type": "integer", "maximum": 10}]}, "50", "50"),
        ({"anyOf": [STRING, {"type": "integer", "exclusiveMinimum": 3}]}, "3", "3"),
        ({"anyOf": [{"const": 1}, STRING]}, "5", "5"),
        ({"anyOf": [{"const": 1}, STRING]}, "1", 1),
        # Objects and arrays.
        ({"type": "object"}, ' {"a": [1]} ', {"a": [1]}),
        ({"type": "object"}, '"{\\"a\\": 1}"', {"a": 1}),
        ({"type": "object"}, "{not json", "{not json"),
        ({"type": "array"}, '["a", "b"]', ["a", "b"]),
        ({"type": "array"}, "a, b", "a, b"),
        ({"type": ["string", "object"]}, '{"a": 1}', {"a": 1}),
        ({"type": ["string", "object"]}, "{not json", "{not json"),
        ({"anyOf": [{"type": "object"}, {"type": "null"}]}, '{"a": 1}', {"a": 1}),
        # Enum and const decide.
        ({"enum": ["1", "2"]}, "1", "1"),
        ({"enum": [1, 2]}, "1", 1),
        ({"enum": [1.5]}, "1.5", 1.5),
        ({"enum": ["celsius"]}, "\ncelsius\n", "celsius"),
        ({"enum": ["celsius"]}, '"celsius"', "celsius"),
        ({"enum": [" a"]}, " a", " a"),
        ({"enum": ["a"]}, "b ", "b "),
        ({"enum": ["1", None]}, "1", "1"),
        ({"enum": ["1", None]}, " 1 ", "1"),
        ({"enum": ["1", None]}, "null", None),
        ({"enum": ["null", None]}, '"null"', "null"),
        ({"const": True}, "True", True),
        ({"enum": [{"a": 1}, [1]]}, '{"a": 1.0}', {"a": 1}),
        # References and recursion.
        (RECURSIVE, "5", 5),
        ({"$ref": "#/$defs/A/properties/n", "$defs": {"A": {"properties": {"n": INTEGER}}}}, "42", 42),
        ({"allOf": [{"type": "array"}]}, "[1]", [1]),
        # Nothing is known, or nothing is permitted.
        ({}, "5", 5),
        ({}, "hello", "hello"),
        ({}, '"hello"', "hello"),
        ({}, "True", "True"),
        ({"type": "unheard of"}, "[1]", [1]),
        (False, "5", 5),
        ({"$ref": "#/nowhere"}, "x", "x"),
    ],
)
def test_typing(schema: object, raw: str, expected: object) -> None:
    value = coerce(SchemaView(schema), raw)
    assert same_value(value, expected), value
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    "raw",
    ["NaN", "-Infinity", "1e999", "[1e999]", "9" * 5000, "[" * 300 + "]" * 300, '"\ud800"', '"\\ud800"', "[1,]", "01"],
)
def test_what_is_not_strict_json_stays_text(raw: str) -> None:
    assert coerce(None, raw) == raw
    assert coerce(SchemaView({}), raw) == raw


def test_nesting_is_read_up_to_the_cap() -> None:
    within = "[" * DEEPEST + "]" * DEEPEST
    assert json.dumps(coerce(None, within)).replace(" ", "") == within
    assert coerce(None, f"[{within}]") == f"[{within}]"
    brackets = json.dumps(["[{" * 1000])
    assert coerce(None, brackets) == ["[{" * 1000]


@pytest.mark.parametrize(
    "raw", ['"' + '\\"' * 200_000, "[" * 300_000, '["' * 150_000, "1" * 300_000, " " * 300_000 + "x"]
)
@pytest.mark.parametrize("schema", [{}, INTEGER, NULLABLE, {"type": "object"}])
def test_long_nonsense_is_text(schema: object, raw: str) -> None:
    assert coerce(SchemaView(schema), raw) == raw


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (STRING, True),
        ({"type": "string", "pattern": "^a"}, True),
        ({"allOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": STRING}}, True),
        ({"anyOf": [STRING, {"type": "string", "format": "date"}]}, True),
        (NULLABLE, False),
        ({"enum": ["a", "b"]}, False),  # white space around a member is not part of it
        ({}, False),
        (INTEGER, False),
    ],
)
def test_what_streams_as_a_string(schema: object, expected: bool) -> None:
    assert streams_as_string(SchemaView(schema)) is expected


def test_nothing_known_does_not_stream() -> None:
    assert streams_as_string(None) is False


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
SCHEMAS = st.sampled_from(
    [
        STRING,
        INTEGER,
        NUMBER,
        BOOLEAN,
        NULLABLE,
        STRING_OR_INTEGER,
        RECURSIVE,
        {},
        {"type": "object"},
        {"enum": ["a", 1]},
    ]
)


@settings(deadline=None)
@given(SCHEMAS, st.text() | SCALARS.map(repr) | SCALARS.map(json.dumps))
def test_total_and_always_a_json_value(schema: dict[str, Any], raw: str) -> None:
    value = coerce(SchemaView(schema), raw)
    assert same_value(json.loads(json.dumps(value, allow_nan=False)), value)
    if streams_as_string(SchemaView(schema)):
        assert value == raw


@settings(deadline=None)
@given(st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10))
def test_json_text_of_a_permitted_value_is_that_value(value: object) -> None:
    text = json.dumps(value)
    for schema in (
        {},
        {"type": list(JSON_TYPES)},
        {"enum": [value, "other"]},
    ):
        assert same_value(coerce(SchemaView(schema), text), value)


@settings(deadline=None)
@given(st.text())
def test_a_quoted_string_is_that_string_wherever_a_string_may_stand(text: str) -> None:
    for schema in (NULLABLE, STRING_OR_INTEGER, {"type": ["string", "object", "boolean"]}):
        assert coerce(SchemaView(schema), json.dumps(text)) == text


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_integers_are_exact(number: float) -> None:
    value = coerce(SchemaView(INTEGER), repr(number))
    assert value == number or (isinstance(value, int) and math.isclose(value, number))
    assert isinstance(value, int) == number.is_integer()


def test_engine_vectors_agree() -> None:
    """What serving engines make of bare parameters in tag-style dialects."""
    if not VECTORS.exists():
        pytest.skip("the engines' vectors are not here")
    checked = 0
    for vector in json.loads(VECTORS.read_text()):
        if vector["format"] not in TAG_STYLE:
            continue
        functions = [tool.get("function", tool) for tool in vector["tools"] or ()]
        views = {function["name"]: SchemaView(function.get("parameters") or {}) for function in functions}
        for call in vector["expect"].get("calls") or ():
            for name, value in (call.get("arguments") or {}).items():
                view = views[call["name"]].member(name) if call["name"] in views else None
                raw = _raw_parameter(vector["text"], name)
                if view is None or raw is None:
                    continue
                assert same_value(coerce(view, raw), value), (vector["text"], name)
                checked += 1
    assert checked > 100


def _raw_parameter(text: str, name: str) -> str | None:
    """The bare text of a parameter that is written once, with the newlines that Qwen3-Coder puts around it cut off."""
    for opener, closer in (
        (f"<parameter={name}>", "</parameter>"),
        (f'<parameter name="{name}">', "</parameter>"),
        (f'<｜DSML｜parameter name="{name}" string="false">', "</｜DSML｜parameter>"),
        (f"<arg_key>{name}</arg_key>\n<arg_value>", "</arg_value>"),
    ):
        if text.count(opener) == 1 and closer in text:
            raw = text.split(opener)[1].split(closer)[0]
            if "<parameter=" in raw:  # the closing tag was left out
                return None
            return raw[1:].removesuffix("\n") if raw.startswith("\n") else raw
    return None
