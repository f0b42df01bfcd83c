"""What a value is held to when it is made, so that a mistake shows where it is made and not where it is used.

The wrong type is Python's `TypeError`; a value that is none of those allowed is a `ConversationError`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from isogloss.errors import ConversationError

T = TypeVar("T")
Kind = type | tuple[type, ...]

_TOKENIZER_PARTS = ("vocabulary_size", "special_tokens", "end_tokens", "encode", "decode", "token_bytes", "llguidance")

_TOOL_NAME = re.compile(r"[\w.:/@+-]+")
"""What every dialect can write as a name: no white space, no quotes, no brackets, nothing that is markup somewhere."""


def expect(value: object, kind: Kind, what: str, hint: str = "") -> None:
    """Raise `TypeError` unless ``value`` is of that kind; ``hint`` says what to do."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        names = " or ".join("`None`" if one is type(None) else f"`{one.__name__}`" for one in kinds)
        raise TypeError(f"Expected {names} for {what}, got `{type(value).__name__}`{hint and f'; {hint}'}")


def expect_texts(value: msgspec.Struct, *names: str) -> None:
    """Raise `TypeError` unless these fields are strings."""
    for name in names:
        expect(getattr(value, name), str, f"`{name}` of {type(value).__name__}")


def expect_all(items: Iterable[T], kind: Kind, what: str, hint: str = "") -> tuple[T, ...]:
    """The items as a tuple. Raises `TypeError` unless it is a sequence of values of that kind alone."""
    if isinstance(items, str | bytes | dict) or not isinstance(items, Iterable):
        raise TypeError(f"Expected a sequence for {what}, got `{type(items).__name__}`{hint and f'; {hint}'}")
    found = tuple(items)
    for position, item in enumerate(found):
        if not isinstance(item, kind):
            expect(item, kind, f"entry {position} of {what}", hint)
    return found


def freeze(value: msgspec.Struct, name: str, kind: Kind, hint: str = "") -> None:
    """Make a tuple of a field. Raises `TypeError` as `expect_all` does."""
    items = getattr(value, name)
    frozen = expect_all(items, kind, f"`{name}` of {type(value).__name__}", hint)
    if frozen is not items:
        msgspec.structs.force_setattr(value, name, frozen)


def expect_tokenizer(value: object) -> None:
    """Raise `TypeError` for what has none of a tokenizer's parts, such as another library's tokenizer."""
    missing = [f"`{name}`" for name in _TOKENIZER_PARTS if not hasattr(value, name)]
    if missing:
        raise TypeError(
            f"Expected an `isogloss.tokenizers.Tokenizer`, got `{type(value).__name__}`, which has no "
            f"{', '.join(missing)}; `isogloss.tokenizers.from_tokenizer_json` reads those of other libraries"
        )


def expect_one_of(value: object, allowed: tuple[str, ...], what: str) -> None:
    """Raise `ConversationError` unless ``value`` is one of those."""
    if value not in allowed:
        raise ConversationError(f"Expected {' or '.join(f'`{one}`' for one in allowed)} for {what}, got {value!r}")


def expect_tool_name(name: object) -> None:
    """Raise `TypeError` for what is no string, `ConversationError` for one that no tool can have."""
    expect(name, str, "the name of a tool")
    if _TOOL_NAME.fullmatch(str(name)) is None:
        raise ConversationError(
            f"Expected a tool's name of letters, digits and any of `_ . - : / @ +`, got {name!r}", pointer="/name"
        )
