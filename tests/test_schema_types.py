"""Schemas of Python types, tools of Python functions."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import typing
import uuid
from typing import Annotated, Any, Literal

import pytest
import typing_extensions
from pydantic import BaseModel, Field

from isogloss.errors import SchemaError
from isogloss.messages import Tool
from isogloss.schema import check_strict, from_function, from_type

TYPED_DICTS = pytest.mark.parametrize("module", [typing, typing_extensions])


class Colour(enum.Enum):
    """What it looks like."""

    RED = "red"
    BLUE = "blue"


class Part(BaseModel):
    """One part."""

    name: str = Field(description="what it is called", min_length=1)
    colour: Colour = Colour.RED
    inner: list[Part] = []


@dataclasses.dataclass
class Point:
    """Where."""

    x: float
    y: float = 0.0
    label: str | None = None


class Place(typing.TypedDict):
    """A place."""

    street: str
    number: typing_extensions.NotRequired[int]


class Places(typing.TypedDict, total=False):
    """Places."""

    home: Place
    others: list[Place]
    maybe: Place | None
    noted: Annotated[Place, "note"]


def test_a_model() -> None:
    schema = from_type(Part)
    assert check_strict(schema) == []
    assert schema["description"] == "One part."
    assert list(schema["properties"]) == ["name", "colour", "inner"]
    assert schema["properties"]["name"] == {"description": "what it is called", "type": "string"}
    assert "inner" in schema["required"]


def test_a_dataclass() -> None:
    schema = from_type(Point)
    assert check_strict(schema) == []
    assert schema["description"] == "Where."
    assert schema["properties"] == {
        "x": {"type": "number"},
        "y": {"type": ["number", "null"]},
        "label": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    }


@TYPED_DICTS
def test_a_typed_dict(module: Any) -> None:
    made = module.TypedDict("Made", {"a": int, "b": typing_extensions.NotRequired[Literal["x", "y"]]})
    schema = from_type(made)
    assert check_strict(schema) == []
    assert schema["properties"] == {
        "a": {"type": "integer"},
        "b": {"type": ["string", "null"], "enum": ["x", "y", None]},
    }


def test_typed_dicts_inside_typed_dicts() -> None:
    schema = from_type(Places)
    assert check_strict(schema) == []
    assert schema["description"] == "Places."
    assert schema["$defs"]["Place"]["description"] == "A place."
    assert schema["$defs"]["Place"]["properties"]["number"] == {"type": ["integer", "null"]}
    assert schema["properties"]["others"]["items"] == {"$ref": "#/$defs/Place"}


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (Colour, {"title": "Colour", "description": "What it looks like.", "type": "string", "enum": ["red", "blue"]}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (tuple[float, float], {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}),
        (datetime.date, {"type": "string", "format": "date"}),
        (uuid.UUID, {"type": "string", "format": "uuid"}),
    ],
)
def test_what_is_no_object_stands_under_a_property(type_: Any, expected: object) -> None:
    schema = from_type(type_)
    assert check_strict(schema) == []
    assert schema["properties"] == {"value": expected}


def test_a_type_that_the_subset_cannot_write_is_refused() -> None:
    class Open(BaseModel):
        counts: dict[str, int]

    for type_ in (dict[str, int], Open, dict, tuple[int, str]):
        with pytest.raises(SchemaError, match="strict=False"):
            from_type(type_)
        assert from_type(type_, strict=False)


def test_a_type_without_a_schema_is_refused() -> None:
    class Opaque:
        pass

    for type_ in (Opaque, typing.Callable[[int], int]):
        with pytest.raises(SchemaError, match="has no JSON Schema"):
            from_type(type_)


def google(city: str, unit: Literal["c", "f"] = "c", *, days: int | None = None, where: Place = None) -> str:  # type: ignore[assignment]
    """Get the weather.

    For a city.

    Args:
        city: The city: its name, and
            its country.
        unit (str): c or f
        *days: how many

    Returns:
        city: not a parameter
    """
    return f"{city}{unit}{days}{where}"


def numpy(city: str, days: int = 1) -> None:
    """Get the weather.

    Parameters
    ----------
    city : str
        The city,
        and its country.
    days
        How many.

    Returns
    -------
    None
    """


def sphinx(city: str, days: int = 1) -> None:
    """Get the weather.

    :param str city: The city,
        and its country.
    :param days: How many.
    :returns: nothing
    """


async def bare(city, days: int = 1) -> None:  # type: ignore[no-untyped-def]
    pass


@pytest.mark.parametrize(
    ("function", "description", "described"),
    [
        (
            google,
            "Get the weather.\n\nFor a city.",
            {"city": "The city: its name, and its country.", "unit": "c or f", "days": "how many"},
        ),
        (numpy, "Get the weather.", {"city": "The city, and its country.", "days": "How many."}),
        (sphinx, "Get the weather.", {"city": "The city, and its country.", "days": "How many."}),
        (bare, "", {}),
    ],
)
def test_docstrings_describe(function: Any, description: str, described: dict[str, str]) -> None:
    tool = from_function(function)
    assert (tool.name, tool.description, tool.strict) == (function.__name__, description, True)
    assert check_strict(tool.parameters) == []
    properties = tool.parameters["properties"]
    assert {name: schema["description"] for name, schema in properties.items() if "description" in schema} == described
    assert "title" not in tool.parameters


def test_parameters_of_a_function() -> None:
    assert Tool.from_function(google).parameters["properties"] == {
        "city": {"description": "The city: its name, and its country.", "type": "string"},
        "unit": {"description": "c or f", "type": ["string", "null"], "enum": ["c", "f", None]},
        "days": {"description": "how many", "anyOf": [{"type": "integer"}, {"type": "null"}]},
        "where": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]},
    }


def test_methods_have_no_self() -> None:
    class Box:
        def put(self, thing: str) -> None:
            """Put it in."""

    assert list(from_function(Box().put).parameters["properties"]) == ["thing"]
    assert list(from_type(functools.partial(google, city="x"))["properties"]) == ["city", "unit", "days", "where"]


def test_a_tool_that_the_subset_cannot_write_is_not_strict() -> None:
    def store(entries: dict[str, int]) -> None:
        """Store them."""

    tool = from_function(store)
    assert not tool.strict
    assert tool.parameters["properties"] == {"entries": {"type": "object", "additionalProperties": {"type": "integer"}}}


def test_functions_that_cannot_be_called_by_keywords() -> None:
    def rest(*args: int) -> None:
        pass

    def positional(a: int, /) -> None:
        pass

    def unreadable(a: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821
        pass

    for function in (rest, positional, unreadable, lambda a: a, functools.partial(google)):
        with pytest.raises(SchemaError):
            from_function(function)


def test_a_typed_dict_that_contains_itself() -> None:
    class Tree(typing_extensions.TypedDict):
        children: list[Tree]

    globals()["Tree"] = Tree
    try:
        schema = from_type(Tree)
    finally:
        del globals()["Tree"]
    assert check_strict(schema) == []
