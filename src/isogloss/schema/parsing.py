"""Structured answers back into Python values: whole ones typed, unfinished ones as far as they go."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, TypeVar, cast, overload

import jsonschema_rs
from jsonschema_rs import canonical as forms

from isogloss.errors import OutputError, SchemaTooComplexError
from isogloss.schema.strict_form import ROOT_PROPERTY, is_wrapped
from isogloss.schema.types import adapter_of, plain_schema
from isogloss.schema.values import contains, read_json
from isogloss.schema.view import SchemaView

T = TypeVar("T")


@overload
def parse_as(type_: type[T], text: str) -> T: ...
@overload
def parse_as(type_: Any, text: str) -> Any: ...
def parse_as(type_: Any, text: str) -> Any:
    """The value of an answer as a type that `from_type` made the schema of; of a function, its arguments as a dict.

    What the strict form changed is undone: null where an optional property is absent, and the property ``value``
    around what is no object. Raises `OutputError` with the JSON pointer of what is wrong.
    """
    from pydantic import ValidationError

    value = _read(text)
    view = _view_of(type_)
    value = without_placeholders(view, _unwrapped(view, value))
    try:
        return adapter_of(type_).validate_json(json.dumps(value))
    except ValidationError as error:
        raise _output_error(error, value) from None


def parse_partial(type_or_schema: Any, text: str) -> Any:
    """The value of an answer that is still being written, as plain JSON; ``None`` before it has begun.

    Strings are there as far as they go, except those of an enum, which are there once they are whole; so are words.
    A number may still grow. Raises `OutputError` for what is not how JSON begins. Takes time linear in ``text``.
    """
    import jiter

    view = SchemaView(type_or_schema) if isinstance(type_or_schema, (dict, bool)) else _view_of(type_or_schema)
    try:
        value = jiter.from_json(text.encode(), partial_mode="trailing-strings", allow_inf_nan=False)
    except ValueError as error:
        if text.strip() and not _may_go_on(str(error)):
            raise OutputError(f"Expected JSON: {error}", pointer="") from None
        return None
    if not isinstance(type_or_schema, (dict, bool)):
        value = _unwrapped(view, value)
    if not _is_whole(text):
        value = _without_unfinished(view, value)
    return without_placeholders(view, value)


def without_placeholders(view: SchemaView | None, value: Any) -> Any:
    """The value without the nulls that a strict form asks for where a property is absent."""
    if view is None:
        return value
    if isinstance(value, list):
        return [without_placeholders(view.item(position), member) for position, member in enumerate(value)]
    if isinstance(value, dict):
        return {
            name: without_placeholders(view.member(name), member)
            for name, member in value.items()
            if member is not None or not _is_placeholder(view, name)
        }
    return value


def _is_placeholder(view: SchemaView, name: str) -> bool:
    member = view.member(name)
    if name in view.required or member is None:
        return False
    return not member.allows_null or not _may_be_null(view, name)


@lru_cache(maxsize=256)
def _may_be_null(view: SchemaView, name: str) -> bool:
    """Whether some value has null under that name: the branch of a union that says so may be one that none is of."""
    own = view.properties.get(name)
    if own is not None and own.allows_null and not view.unions:
        return True
    of_null = {"type": "object", "properties": {name: {"type": "null"}}, "required": [name]}
    try:
        both = jsonschema_rs.canonicalize(view.standalone()).intersect(jsonschema_rs.canonicalize(of_null))
    except (SchemaTooComplexError, ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError):
        return True
    return both.kind != forms.CanonicalKind.FALSE


def _read(text: str) -> Any:
    try:
        return read_json(text)
    except ValueError as error:
        raise OutputError(f"Expected JSON: {error}", pointer="") from None


@lru_cache(maxsize=256)
def _cached_view(type_: Any) -> SchemaView:
    return SchemaView(plain_schema(type_))


def _view_of(type_: Any) -> SchemaView:
    try:
        return _cached_view(type_)
    except TypeError:  # not hashable
        return SchemaView(plain_schema(type_))


def _unwrapped(view: SchemaView, value: Any) -> Any:
    if is_wrapped(view) and isinstance(value, dict) and value.keys() == {ROOT_PROPERTY}:
        return value[ROOT_PROPERTY]
    return value


def _may_go_on(message: str) -> bool:
    return message.startswith("EOF")


def _is_whole(text: str) -> bool:
    try:
        read_json(text)
    except ValueError:
        return False
    return True


_ABSENT = object()


def _without_unfinished(view: SchemaView | None, value: Any) -> Any:
    """The value without the string at its very end when that is the beginning of a member of an enum."""
    kept = _trimmed(view, value)
    return None if kept is _ABSENT else kept


def _trimmed(view: SchemaView | None, value: Any) -> Any:
    if isinstance(value, dict) and value:
        last = next(reversed(value))
        inner = _trimmed(None if view is None else view.member(last), value[last])
        rest = {name: member for name, member in value.items() if name != last}
        return rest if inner is _ABSENT else {**rest, last: inner}
    if isinstance(value, list) and value:
        inner = _trimmed(None if view is None else view.item(len(value) - 1), value[-1])
        return value[:-1] if inner is _ABSENT else [*value[:-1], inner]
    if isinstance(value, str) and view is not None:
        values = view.const_values
        return value if values is None or contains(values, value) else _ABSENT
    return value


def _output_error(error: Any, value: Any) -> OutputError:
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    message = cast("str", faults[0]["msg"])
    if len(faults) > 1:
        message += f" (and {len(faults) - 1} more)"
    return OutputError(message, pointer=_pointer(faults[0]["loc"], value, is_missing=faults[0]["type"] == "missing"))


def _pointer(location: tuple[int | str, ...], value: Any, *, is_missing: bool) -> str:
    """pydantic's location as a JSON pointer: names of union members in it are no steps."""
    pointer = ""
    for position, step in enumerate(location):
        is_last = position == len(location) - 1
        if isinstance(value, dict) and isinstance(step, str) and (step in value or (is_missing and is_last)):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            continue
        pointer += "/" + str(step).replace("~", "~0").replace("/", "~1")
    return pointer
