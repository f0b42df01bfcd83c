"""What a grammar is made of: values that say what a model may write next, without saying in which grammar language.

`isogloss.constraints` turns them into llguidance's. Its lexer is greedy and never takes back what it has read, so
free text has to say itself where it ends: text up to a marker is `FreeText` with ``until``, never a `Regex` followed
by a `Literal`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import msgspec


class Literal(msgspec.Struct, frozen=True):
    """This text."""

    text: str


class Marker(msgspec.Struct, frozen=True):
    """A delimiter: one control token where the vocabulary has it as such, else its text. ``token`` is the part of it
    that is a control token in vocabularies that have not the whole."""

    text: str
    token: str = ""


class Regex(msgspec.Struct, frozen=True):
    """Text that a regular expression matches as a whole. Its syntax is that of Rust's ``regex``: no look-around and no
    back-references. ``max_length`` counts characters. The text is none of ``excluding``."""

    pattern: str
    max_length: int | None = None
    excluding: tuple[str, ...] = ()


class FreeText(msgspec.Struct, frozen=True):
    """Any text up to the first of ``until``, and that one too; without ``until`` up to a control token or the end.

    ``pattern`` (as in `Regex`) is what the text before the marker has to match as a whole; ``language`` says the same
    as an expression of terminals in llguidance's Lark (``/regex/`` and ``"text"`` under ``|``, ``&`` and ``~``). The
    text holds none of ``excluding`` (a control token is in no text anyway).
    """

    until: tuple[Marker | Literal, ...] = ()
    pattern: str | None = None
    language: str | None = None
    excluding: tuple[Marker | Literal, ...] = ()


class Loose(msgspec.Struct, frozen=True):
    """A term that admits more than what it is for: whoever runs the grammar has to look at the whole."""

    term: Term


class JsonValue(msgspec.Struct, frozen=True):
    """A JSON value that satisfies a JSON Schema, its keys in the schema's order."""

    schema: Mapping[str, Any] | bool


class Sequence(msgspec.Struct, frozen=True):
    """One after the other."""

    terms: tuple[Term, ...]


class Choice(msgspec.Struct, frozen=True):
    """One of these."""

    terms: tuple[Term, ...]


class Repeat(msgspec.Struct, frozen=True):
    """The same again and again: at least ``minimum`` times, at most ``maximum`` (``None``: any number of times)."""

    term: Term
    minimum: int = 0
    maximum: int | None = None


class Rule(msgspec.Struct, frozen=True):
    """A term with a name (lower-case letters, digits and ``_``), by which a `Reference` within it can mean it again."""

    name: str
    term: Term


class Reference(msgspec.Struct, frozen=True):
    """The term that the `Rule` of this name holds."""

    name: str


class Grammar(msgspec.Struct, frozen=True):
    """A whole grammar in llguidance's Lark, taken as it is. It cannot be a part of another term."""

    lark: str


class Nested(msgspec.Struct, frozen=True):
    """Text of a grammar of its own, in llguidance's Lark, whose rules have nothing to do with those around it."""

    lark: str


Term: TypeAlias = (
    Literal
    | Marker
    | Regex
    | FreeText
    | Loose
    | JsonValue
    | Sequence
    | Choice
    | Repeat
    | Rule
    | Reference
    | Grammar
    | Nested
)


def sequence(*terms: Term) -> Term:
    """The terms one after the other."""
    return terms[0] if len(terms) == 1 else Sequence(terms)


def choice(*terms: Term) -> Term:
    """One of the terms."""
    return terms[0] if len(terms) == 1 else Choice(terms)


def optional(term: Term) -> Term:
    """The term, or nothing."""
    return Repeat(term, 0, 1)


def parts_of(term: Term) -> Iterator[Term]:
    """A term and all that it is made of, in no order."""
    pending = [term]
    while pending:
        part = pending.pop()
        yield part
        match part:
            case Sequence(terms) | Choice(terms):
                pending.extend(terms)
            case Repeat(inner) | Rule(_, inner) | Loose(inner):
                pending.append(inner)
            case FreeText(until, _, _, excluding):
                pending.extend(until)
                pending.extend(excluding)


def markers_of(term: Term) -> Iterator[str]:
    """The texts of all markers in a term."""
    for part in parts_of(term):
        if isinstance(part, Marker):
            yield part.text
            if part.token:
                yield part.token


def is_loose(term: Term) -> bool:
    """Whether some part of the term admits more than what it is for."""
    return any(isinstance(part, Loose) for part in parts_of(term))
