"""Reading JSON that a client sent: every fault is a `ConversationError` that names the place.

``null`` and an absent member mean the same to the OpenAI APIs, so they do here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

from isogloss.errors import ConversationError

_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "bool"),
    (int, "int"),
    (float, "float"),
    (str, "str"),
    ((list, tuple), "array"),
    (Mapping, "object"),
    (type(None), "null"),
)

LONGEST_SHOWN = 100
MOST_LISTED = 20

_Choice = TypeVar("_Choice", bound=str)


class Fields:
    """The members of one JSON object, read by name. ``pointer`` is the JSON pointer of the object."""

    __slots__ = ("members", "pointer")

    def __init__(self, value: object, pointer: str) -> None:
        if not isinstance(value, Mapping):
            raise wrong_type("object", value, pointer)
        self.members: Mapping[str, object] = value
        self.pointer = pointer

    def at(self, name: str) -> str:
        """The JSON pointer of a member."""
        return f"{self.pointer}/{name.replace('~', '~0').replace('/', '~1')}"

    def has(self, name: str) -> bool:
        return self.members.get(name) is not None

    def get(self, name: str) -> object:
        """The member, ``None`` when it is absent."""
        return self.members.get(name)

    def required(self, name: str) -> object:
        value = self.members.get(name)
        if value is None:
            raise missing(name, self.pointer)
        return value

    def string(self, name: str) -> str:
        return as_string(self.required(name), self.at(name))

    def optional_string(self, name: str) -> str | None:
        value = self.members.get(name)
        return None if value is None else as_string(value, self.at(name))

    def boolean(self, name: str, default: bool) -> bool:
        value = self.members.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise wrong_type("bool", value, self.at(name))
        return value

    def integer(self, name: str, minimum: int, maximum: int | None = None) -> int | None:
        value = self.members.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise wrong_type("int", value, self.at(name))
        _check_range(value, "int", minimum, maximum, self.at(name))
        return value

    def number(self, name: str, minimum: float, maximum: float) -> float | None:
        value = self.members.get(name)
        return None if value is None else as_number(value, minimum, maximum, self.at(name))

    def choice(self, name: str, options: Sequence[_Choice]) -> _Choice:
        return as_choice(self.required(name), options, self.at(name))

    def array(self, name: str) -> Iterator[tuple[object, str]]:
        """The items of a member that is an array, each with its JSON pointer; nothing when it is absent."""
        value = self.members.get(name)
        return iter(()) if value is None else items(value, self.at(name))

    def object(self, name: str) -> Fields:
        return Fields(self.required(name), self.at(name))

    def nested(self, name: str) -> Fields:
        """The member, or this object where the members were written flat (Responses) instead of nested (Chat)."""
        return self.object(name) if self.has(name) else self


def as_string(value: object, pointer: str) -> str:
    """Text that has a UTF-8 form: a lone surrogate would fail in the tokenizer, far from where it came from."""
    if not isinstance(value, str):
        raise wrong_type("str", value, pointer)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise invalid(f"Invalid Unicode: a lone surrogate at character {error.start}", pointer) from None
    return value


def as_number(value: object, minimum: float, maximum: float, pointer: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise wrong_type("float", value, pointer)
    _check_range(value, "float", minimum, maximum, pointer)
    return float(value)


def as_choice(value: object, options: Sequence[_Choice], pointer: str) -> _Choice:
    if not isinstance(value, str):
        raise wrong_type("str", value, pointer)
    for option in options:
        if option == value:
            return option
    raise invalid(f"Invalid value: {shown(value)}. Supported values are: {_enumerated(options)}.", pointer)


def items(value: object, pointer: str) -> Iterator[tuple[object, str]]:
    """The items of an array, each with its JSON pointer."""
    if not isinstance(value, (list, tuple)):
        raise wrong_type("array", value, pointer)
    return ((item, f"{pointer}/{position}") for position, item in enumerate(value))


def kind_of(value: object) -> str:
    """The JSON kind of a value, as error messages name it."""
    return next((name for kind, name in _KINDS if isinstance(value, kind)), type(value).__name__)


def shown(text: str) -> str:
    """A string in quotes, as error messages show it: shortened when it is long."""
    return repr(text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}...")


def listed(names: Iterable[str]) -> str:
    """Names as error messages list them: the first few of many."""
    first = [shown(name) for name in islice(names, MOST_LISTED + 1)]
    return ", ".join(first[:MOST_LISTED]) + (", ..." if len(first) > MOST_LISTED else "")


def wrong_type(expected: str, value: object, pointer: str) -> ConversationError:
    return ConversationError(f"Expected `{expected}`, got `{kind_of(value)}`", pointer=pointer, code="invalid_type")


def missing(name: str, pointer: str) -> ConversationError:
    """``name`` is not in the object at ``pointer``."""
    return ConversationError(
        f"Object missing required field `{name}`", pointer=pointer, code="missing_required_parameter"
    )


def invalid(message: str, pointer: str, code: str = "invalid_value") -> ConversationError:
    return ConversationError(message, pointer=pointer, code=code)


def parameter(pointer: str) -> str | None:
    """A JSON pointer as the OpenAI APIs name a parameter: ``/messages/0/content`` is ``messages[0].content``."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    path = "".join(f"[{step}]" if step.isdecimal() else f".{step}" for step in steps)
    return path.removeprefix(".") or None


def _check_range(value: float, kind: str, minimum: float, maximum: float | None, pointer: str) -> None:
    if not value >= minimum:
        raise invalid(f"Expected `{kind}` >= {minimum}, got {value}", pointer)
    if maximum is not None and not value <= maximum:
        raise invalid(f"Expected `{kind}` <= {maximum}, got {value}", pointer)


def _enumerated(options: Sequence[str]) -> str:
    quoted = [repr(option) for option in options]
    if len(quoted) < 3:
        return " and ".join(quoted)
    return f"{', '.join(quoted[:-1])}, and {quoted[-1]}"
