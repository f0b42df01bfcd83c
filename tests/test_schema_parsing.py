"""Answers back into Python values."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from isogloss.errors import OutputError
from isogloss.schema import SchemaView, parse_as, parse_partial, without_placeholders


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Part(BaseModel):
    name: str = Field(min_length=2)
    count: int = 1
    colour: Colour | None = None
    made: datetime.date | None = None
    inner: list[Part] = []


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.5


def call(city: str, unit: Literal["celsius", "kelvin"] = "celsius") -> None:
    """A function."""


def test_values_are_typed() -> None:
    part = parse_as(
        Part, '{"name": "ab", "count": 3, "colour": "red", "made": "2024-02-29", "inner": [{"name": "in"}]}'
    )
    assert part == Part(name="ab", count=3, colour=Colour.RED, made=datetime.date(2024, 2, 29), inner=[Part(name="in")])
    assert parse_as(Point, '{"x": 1, "y": 2}') == Point(1, 2)
    assert parse_as(call, '{"city": "Paris", "unit": "kelvin"}') == {"city": "Paris", "unit": "kelvin"}


def test_null_stands_for_what_is_absent() -> None:
    text = '{"name": "ab", "count": null, "colour": null, "made": null, "inner": [{"name": "in", "count": null}]}'
    assert parse_as(Part, text) == Part(name="ab", inner=[Part(name="in")])
    assert parse_as(Point, '{"x": 1, "y": null}') == Point(1)
    assert parse_as(call, '{"city": "Paris", "unit": null}') == {"city": "Paris"}


@pytest.mark.parametrize("text", ['{"value": "red"}', '"red"'])
def test_what_is_no_object_is_taken_out_of_its_property(text: str) -> None:
    assert parse_as(Colour, text) is Colour.RED


def test_a_property_that_happens_to_be_called_value_stays() -> None:
    class Holder(BaseModel):
        value: int

    assert parse_as(Holder, '{"value": 3}') == Holder(value=3)


@pytest.mark.parametrize(
    ("type_", "text", "pointer", "message"),
    [
        (Part, '{"name": 5}', "/name", "valid string"),
        (Part, '{"name": "a"}', "/name", "at least 2 characters"),
        (Part, "{}", "/name", "Field required"),
        (Part, '{"name": "ab", "inner": [{"name": "in"}, {"name": "in", "made": "x"}]}', "/inner/1/made", "valid date"),
        (Part, '{"name": "ab", "inner": [{}]}', "/inner/0/name", "Field required"),
        (Part, '{"name": 1, "count": "x"}', "/name", "and 1 more"),
        (Part, "[]", "", "object"),
        (Part, '{"name": ', "", "Expected JSON"),
        (Part, "", "", "Expected JSON"),
        (Part, '{"name": NaN}', "", "Expected JSON"),
        (call, '{"city": "x", "unit": "k"}', "/unit", "'celsius' or 'kelvin'"),
        (dict[str, int], '{"a/b~": "x"}', "/a~1b~0", "valid integer"),
        (list[int | bool], '{"value": [1, "x"]}', "/1", "valid"),
    ],
)
def test_faults_have_a_pointer(type_: Any, text: str, pointer: str, message: str) -> None:
    with pytest.raises(OutputError) as raised:
        parse_as(type_, text)
    assert raised.value.pointer == pointer
    assert message in raised.value.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        (" ", None),
        ("{", {}),
        ('{"ci', {}),
        ('{"city"', {}),
        ('{"city":', {}),
        ('{"city": "', {"city": ""}),
        ('{"city": "Par', {"city": "Par"}),
        ('{"city": "Paris", "unit": "kel', {"city": "Paris"}),
        ('{"city": "Paris", "unit": "kelvin', {"city": "Paris", "unit": "kelvin"}),
        ('{"city": "Paris", "unit": "kelvin"}', {"city": "Paris", "unit": "kelvin"}),
        ('{"city": "Paris", "unit": nu', {"city": "Paris"}),
        ('{"city": "Paris", "unit": null', {"city": "Paris"}),
    ],
)
def test_the_value_so_far(text: str, expected: object) -> None:
    assert parse_partial(call, text) == expected


def test_the_value_so_far_of_a_schema() -> None:
    schema = {"type": "object", "properties": {"l": {"type": "array", "items": {"enum": ["one", "two"]}}}}
    assert parse_partial(schema, '{"l": ["one", "t') == {"l": ["one"]}
    assert parse_partial(schema, '{"l": ["one", "two"') == {"l": ["one", "two"]}
    assert parse_partial(schema, '{"l": ["three"]}') == {"l": ["three"]}
    assert parse_partial({"enum": ["one"]}, '"o') is None
    assert parse_partial(True, '{"a": [1, {"b": "c') == {"a": [1, {"b": "c"}]}
    assert parse_partial(list[str], '{"value": ["a", "b') == ["a", "b"]


@pytest.mark.parametrize("text", ["x", '{"a" 1', '{"a": NaN', "[" * 1000, '{"a": "\ud800'])
def test_what_no_more_text_makes_json(text: str) -> None:
    with pytest.raises(OutputError) as raised:
        parse_partial(True, text)
    assert raised.value.pointer == ""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None)
@given(JSON, st.data())
def test_every_beginning_of_an_answer_has_a_value(value: object, data: st.DataObject) -> None:
    text = json.dumps(value)
    assert parse_partial(True, text) == value
    parse_partial(True, text[: data.draw(st.integers(0, len(text)))])


@settings(deadline=None)
@given(JSON)
def test_only_nulls_are_taken_out(value: object) -> None:
    assert without_placeholders(None, value) == value
    assert without_placeholders(SchemaView({}), value) == value


def test_a_null_that_is_asked_for_stays() -> None:
    view = SchemaView(
        {
            "properties": {"a": {"type": "string"}, "b": {"type": ["string", "null"]}, "c": {"type": "string"}},
            "required": ["c"],
        }
    )
    value = {"a": None, "b": None, "c": None, "d": None}
    assert without_placeholders(view, value) == {"b": None, "c": None, "d": None}
