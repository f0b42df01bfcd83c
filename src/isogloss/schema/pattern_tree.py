"""What an ECMA-262 regular expression says, as a tree."""

from __future__ import annotations

from typing import Literal

import msgspec

from isogloss.schema.characters import Characters


class UnsupportedPatternError(Exception):
    """The pattern needs more than a regular language; the message names the construct."""


class Class(msgspec.Struct, frozen=True):
    characters: Characters


class Sequence(msgspec.Struct, frozen=True):
    items: tuple[Node, ...]


class Choice(msgspec.Struct, frozen=True):
    options: tuple[Node, ...]


class Repeat(msgspec.Struct, frozen=True):
    item: Node
    minimum: int
    maximum: int | None


class Anchor(msgspec.Struct, frozen=True):
    side: Literal["start", "end"]


class LookAhead(msgspec.Struct, frozen=True):
    item: Node
    negative: bool


Node = Class | Sequence | Choice | Repeat | Anchor | LookAhead


def has_assertion(node: Node) -> bool:
    """Whether an anchor or a look-ahead is inside."""
    if isinstance(node, Class):
        return False
    if isinstance(node, Sequence):
        return any(map(has_assertion, node.items))
    if isinstance(node, Choice):
        return any(map(has_assertion, node.options))
    if isinstance(node, Repeat):
        return has_assertion(node.item)
    return True


def is_nullable(node: Node) -> bool:
    """Whether a node may match without taking a character."""
    if isinstance(node, Class):
        return False
    if isinstance(node, Sequence):
        return all(map(is_nullable, node.items))
    if isinstance(node, Choice):
        return any(map(is_nullable, node.options))
    if isinstance(node, Repeat):
        return node.minimum == 0 or is_nullable(node.item)
    return True


def size_of(node: Node) -> int:
    """Characters in a node, repeated ones counted as often as they have to be told."""
    if isinstance(node, Sequence):
        return sum(map(size_of, node.items))
    if isinstance(node, Choice):
        return sum(map(size_of, node.options))
    if isinstance(node, Repeat):
        return size_of(node.item) * max(node.minimum, node.maximum or 1, 1)
    if isinstance(node, LookAhead):
        return size_of(node.item)
    return 1
