"""Schemas of Python types, and tools of Python functions.

A type is a pydantic model, a dataclass, a `TypedDict`, an `Enum`, anything else that pydantic has a schema for, or a
function, whose arguments are the object. Docstrings become descriptions, those of a function's parameters included.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping
from operator import getitem
from typing import TYPE_CHECKING, Annotated, Any, Union, cast, get_args, get_origin

from isogloss.errors import SchemaError
from isogloss.messages import Tool
from isogloss.schema.strict import check_name
from isogloss.schema.strict_form import Loss, to_strict

if TYPE_CHECKING:
    from pydantic import TypeAdapter

# Losses that leave no room for values that the type is for, as `dict[str, int]` is for entries of any name.
_SHAPE = frozenset({"additionalProperties", "patternProperties", "properties", "prefixItems"})


def from_type(type_: Any, *, strict: bool = True) -> dict[str, Any]:
    """The JSON Schema of a type; in the strict subset, so that `check_strict` has nothing to say of it.

    A type whose values are no JSON objects (an `Enum`, a list) stands under the property ``value``. Limits that the
    subset cannot state, of a string's length say, are left out; `parse_as` holds the answer to them all the same.
    With ``strict=False`` the schema says all that pydantic says. Raises `SchemaError` when the type has no JSON Schema,
    or when the subset cannot write its values, as those of ``dict[str, int]``.
    """
    schema = plain_schema(type_)
    if not strict:
        return schema
    result, losses = to_strict(schema)
    for loss in losses:
        if _is_of_shape(loss):
            raise SchemaError(
                f"{_name(type_)} has values that the strict subset cannot write: {loss.message}. "
                "Give the property a type with named fields, or pass `strict=False`",
                pointer=loss.pointer,
            )
    return result


def from_function(function: Callable[..., Any]) -> Tool:
    """A tool that calls an annotated function: its name, what its docstring says, and the schema of its parameters.

    The tool is strict, unless a parameter is of a kind that the strict subset cannot write (``dict[str, int]``).
    Raises `SchemaError` for a function that cannot be called by name and keywords alone.
    """
    name = getattr(function, "__name__", "")
    faults = check_name(name, parameter="name")
    if faults:
        raise SchemaError(f"{_name(function)} is no name for a tool: {faults[0].message}")
    schema = plain_schema(function)
    strict, losses = to_strict(schema)
    is_strict = not any(_is_of_shape(loss) for loss in losses)
    description, _ = _docstring(function)
    return Tool(name, description, strict if is_strict else schema, is_strict)


def _is_of_shape(loss: Loss) -> bool:
    return loss.keyword in _SHAPE


def plain_schema(type_: Any) -> dict[str, Any]:
    """The schema as pydantic has it, without the titles that only repeat names. Raises `SchemaError`."""
    from pydantic.errors import PydanticInvalidForJsonSchema

    try:
        schema: dict[str, Any] = adapter_of(type_).json_schema(schema_generator=_generator())
    except PydanticInvalidForJsonSchema as error:
        raise SchemaError(f"{_name(type_)} has no JSON Schema: {error.message}") from error
    if is_function(type_):
        schema.pop("title", None)
    return schema


def adapter_of(type_: Any) -> TypeAdapter[Any]:
    """What pydantic validates the type with; a function's arguments become a dict. Raises `SchemaError`."""
    try:
        return _cached_adapter(type_)
    except TypeError:  # not hashable, as some annotations are
        return _adapter(type_)


def is_function(type_: Any) -> bool:
    """Whether it is to be called, rather than a type of values."""
    return callable(type_) and not isinstance(type_, type) and get_origin(type_) is None and _is_routine(type_)


def _is_routine(value: Any) -> bool:
    return inspect.isroutine(value) or isinstance(value, functools.partial)


def _adapter(type_: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    target = _arguments(type_) if is_function(type_) else _supported(type_)
    try:
        return TypeAdapter(target)
    except (PydanticUserError, NameError) as error:
        raise SchemaError(f"{_name(type_)} has no JSON Schema: {error}") from error


_cached_adapter = functools.lru_cache(maxsize=256)(_adapter)


@functools.cache
def _generator() -> Any:
    from pydantic.json_schema import GenerateJsonSchema

    class WithoutFieldTitles(GenerateJsonSchema):
        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    return WithoutFieldTitles


def _arguments(function: Callable[..., Any]) -> Any:
    """A typed dict with the arguments of a function, described as the docstring does."""
    from pydantic import Field
    from typing_extensions import NotRequired

    _, described = _docstring(function)
    hints = _hints(function)
    fields: dict[str, Any] = {}
    for parameter in _signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise SchemaError(f"{_name(function)} has a parameter that cannot be given by name: `{parameter}`")
        annotation = _supported(hints.get(parameter.name, Any))
        text = described.get(parameter.name)
        if text:
            annotation = Annotated[annotation, Field(description=text)]
        if parameter.default is not parameter.empty:
            annotation = NotRequired[annotation]
        fields[parameter.name] = annotation
    return _made_typed_dict("Arguments", fields)


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise SchemaError(f"{_name(function)} does not tell its parameters: {error}") from error


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    while isinstance(function, functools.partial):
        function = function.func
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise SchemaError(f"{_name(function)} has an annotation that cannot be read: {error}") from error


def _name(type_: Any) -> str:
    name = None if get_args(type_) else getattr(type_, "__qualname__", None)
    return f"`{name or type_}`"


# `typing.TypedDict` before Python 3.12 forgets what pydantic needs to know, `typing_extensions.TypedDict` does not.


def _supported(type_: Any) -> Any:
    """The type with every `typing.TypedDict` in it made anew, where this Python needs that."""
    return type_ if sys.version_info >= (3, 12) else _with_typed_dicts(type_, ())


def _with_typed_dicts(type_: Any, within: tuple[Any, ...]) -> Any:
    if type(type_).__module__ == "typing" and typing.is_typeddict(type_):
        return _typed_dict(type_, within)
    arguments = get_args(type_)
    if not arguments:
        return type_
    converted = tuple([_with_typed_dicts(argument, within) for argument in arguments])
    if all(new is old for new, old in zip(converted, arguments, strict=True)):
        return type_
    origin: Any = get_origin(type_)
    if origin is Annotated:
        return getitem(origin, (converted[0], *type_.__metadata__))
    return getitem(cast("Any", Union) if origin is types.UnionType else origin, converted)


def _typed_dict(type_: Any, within: tuple[Any, ...]) -> Any:
    from typing_extensions import NotRequired, get_type_hints

    if type_ in within:
        raise SchemaError(f"{_name(type_)} contains itself: derive it from `typing_extensions.TypedDict`")
    hints = get_type_hints(type_, include_extras=True)
    fields = {
        name: hint if name in type_.__required_keys__ else NotRequired[hint]
        for name, hint in ((name, _with_typed_dicts(hint, (*within, type_))) for name, hint in hints.items())
    }
    made = _made_typed_dict(type_.__name__, fields)
    made.__doc__ = type_.__doc__
    return made


def _made_typed_dict(name: str, fields: dict[str, Any]) -> Any:
    import typing_extensions

    make: Any = typing_extensions.TypedDict
    return make(name, fields)


# Docstrings, in the three styles that people write

_SECTION = re.compile(
    r"^(?P<name>args|arguments|parameters|params|returns?|yields?|raises|examples?|notes?|see also|warns|attributes)"
    r"(?::[ \t]*|[ \t]*\n[ \t]*-{3,}[ \t]*)$",
    re.IGNORECASE | re.MULTILINE,
)
_PARAMETER_SECTIONS = frozenset({"args", "arguments", "parameters", "params"})
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(?P<name>\w+)[ \t]*(?:\([^()\n]*\))?:[ \t]*(?P<text>.*)")
_NUMPY_ENTRY = re.compile(r"\*{0,2}(?P<name>\w+)(?:[ \t]*:.*)?$")
_FIELD = re.compile(
    r"^:param(?:[ \t]+[^:\n]*?)?[ \t]+(?P<name>\w+)[ \t]*:[ \t]*(?P<text>.*(?:\n[ \t]+.*)*)", re.MULTILINE
)
_ANY_FIELD = re.compile(r"^:\w+[^:\n]*:", re.MULTILINE)


def _docstring(function: Callable[..., Any]) -> tuple[str, Mapping[str, str]]:
    """What a docstring says of the function, and of each parameter: Google's, NumPy's or Sphinx's style."""
    while isinstance(function, functools.partial):
        function = function.func
    text = inspect.getdoc(function) or ""
    parameters = {found["name"]: " ".join(found["text"].split()) for found in _FIELD.finditer(text)}
    ends = [found.start() for pattern in (_SECTION, _ANY_FIELD) if (found := pattern.search(text)) is not None]
    sections = list(_SECTION.finditer(text))
    for position, section in enumerate(sections):
        if section["name"].lower() in _PARAMETER_SECTIONS:
            end = sections[position + 1].start() if position + 1 < len(sections) else len(text)
            parameters.update(_entries(text[section.end() : end].strip("\n"), is_numpy="-" in section.group()))
    return text[: min(ends, default=len(text))].strip(), parameters


def _entries(section: str, *, is_numpy: bool) -> dict[str, str]:
    lines = inspect.cleandoc("\n" + section).split("\n")
    entries: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        starts = not line.startswith((" ", "\t")) and line
        found = (_NUMPY_ENTRY if is_numpy else _GOOGLE_ENTRY).match(line) if starts else None
        if found is not None:
            current = entries.setdefault(found["name"], [] if is_numpy else [found["text"]])
        else:
            current.append(line)
    return {name: " ".join(" ".join(said).split()) for name, said in entries.items()}
