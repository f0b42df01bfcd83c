"""The typed JSON value of raw text, as the schema reads it.

Tag-style dialects write an argument as bare text between tags. What that text is, ``007`` the string or ``5`` the
number, only the parameter's schema says:

* a parameter that can only be a string is the text, every character of it;
* for any other, JSON comes first, without the white space around it: the value of the text if the schema permits one of
  its type. Then Python's spellings (``True``, ``False``, ``None``), which some chat templates write. Then, where a
  string is permitted, the text as it is; where it is not, numbers written loosely and values wrapped in quotes;
* text in quotes is how a string is told from a number where both are permitted;
* enum and const decide between readings: ``1`` is a string in ``["1", "2"]`` and a number in ``[1, 2]``;
* what nothing permits stays what the model wrote: its JSON value, else its text. Nothing is altered to fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from math import isfinite
from typing import Any

from isogloss.schema.membership import permits
from isogloss.schema.values import read_json
from isogloss.schema.view import ANY_TYPE, SchemaView

_WHITE_SPACE = " \t\r\n"

_PYTHON: dict[str, Any] = {"True": True, "False": False, "None": None}
_LOOSE_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "none": None}
_LOOSE_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z", re.ASCII)

_LONGEST_NUMBER = 4300
"""Characters; Python reads no longer integers, for the time it takes."""

_NOTHING = object()


def streams_as_string(view: SchemaView | None) -> bool:
    """Whether the value is the raw text whatever follows, so that its characters may be passed on as they come."""
    return view is not None and view.only_string and view.const_values is None


def coerce(view: SchemaView | None, raw: str) -> Any:
    """The JSON value that ``raw`` stands for under the schema; ``None`` for a view is "nothing is known". Total."""
    if view is None:
        return _untyped(raw)
    types = view.types
    if types == ANY_TYPE or not types:
        return _untyped(raw)
    text = raw.strip(_WHITE_SPACE)
    if view.only_string:
        return raw if view.const_values is None else _listed_string(view.const_values, raw, text)
    json_value = _json(text)
    for value in _readings(types, raw, text, json_value):
        if permits(view, value):
            return value if view.const_values is not None else _fitted(types, value)
    if "string" in types:
        return json_value if isinstance(json_value, str) else raw
    return raw if json_value is _NOTHING else json_value


def _untyped(raw: str) -> Any:
    value = _json(raw.strip(_WHITE_SPACE))
    return raw if value is _NOTHING else value


def _json(text: str) -> Any:
    try:
        return read_json(text)
    except ValueError:
        return _NOTHING


def _listed_string(values: tuple[Any, ...], raw: str, text: str) -> str:
    """The member of an enum of strings that the text is, white space and quotes aside; else the text."""
    if raw in values:
        return raw
    if text in values:
        return text
    quoted = _json(text)
    return quoted if isinstance(quoted, str) and quoted in values else raw


def _readings(types: frozenset[str], raw: str, text: str, json_value: Any) -> Iterator[Any]:
    """What the text may stand for, the likeliest first."""
    if json_value is not _NOTHING:
        yield json_value
    elif text in _PYTHON:
        yield _PYTHON[text]
    if "string" in types:
        yield raw
        yield text  # a member of an enum, with white space around it
        return
    yield from _loose(types, text)
    if isinstance(json_value, str):
        inner = json_value.strip(_WHITE_SPACE)
        value = _json(inner)
        if value is not _NOTHING:
            yield value
        yield from _loose(types, inner)


def _loose(types: frozenset[str], text: str) -> Iterator[Any]:
    """Readings that would be wrong where a string is permitted."""
    word = _LOOSE_WORDS.get(text.lower(), _NOTHING) if len(text) <= 5 else _NOTHING
    if word is not _NOTHING:
        yield word
    elif types & _NUMBERS and len(text) <= _LONGEST_NUMBER and _LOOSE_NUMBER.match(text):
        value = _number(text)
        if value is not _NOTHING:
            yield value


_NUMBERS = frozenset({"integer", "number"})


def _number(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        value = float(text)
        return value if isfinite(value) else _NOTHING


def _fitted(types: frozenset[str], value: Any) -> Any:
    """A whole number as an integer where the schema asks for integers: ``5.0`` is 5, ``1e23`` a 1 and 23 zeros."""
    if isinstance(value, float) and "number" not in types and value.is_integer():
        return int(Decimal(repr(value)))
    return value
