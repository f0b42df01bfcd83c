"""The characters of a pattern as they are spelled: over the text of a JSON string, or decoded.

Each character has a fixed set of spellings in JSON, the same in every terminal, so that intersection (``&``) and
complement (``~``) of terminals are intersection and complement of sets of strings:

- itself, unless it is a control character, ``"`` or a backslash;
- its short escape (``\\n``, ``\\"``, ``\\/``);
- ``\\u00XX`` if it is a control character or one of ``" & ' < > \\ DEL``, which encoders are known to escape.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

from isogloss.schema.characters import ANY, ASCII, Characters, bracketed, mask_of, single
from isogloss.schema.pattern_tree import Choice, Class, Node, Repeat, Sequence

SHORT_ESCAPES = {0x08: "b", 0x09: "t", 0x0A: "n", 0x0C: "f", 0x0D: "r", 0x22: '"', 0x2F: "/", 0x5C: "\\"}
NUMERIC_ESCAPES = frozenset(range(0x20)) | {0x22, 0x26, 0x27, 0x3C, 0x3E, 0x5C, 0x7F}


_RAW = ASCII & ~((1 << 32) - 1) & ~mask_of('"\\')
_ESCAPABLE = functools.reduce(lambda mask, code: mask | 1 << code, [*SHORT_ESCAPES, *NUMERIC_ESCAPES], 0)


def _escaped_spellings(mask: int) -> list[str]:
    """Alternatives that spell members of ``mask`` with a backslash."""
    options = []
    short = "".join(f"\\{e}" if e in '"/\\' else e for code, e in SHORT_ESCAPES.items() if mask >> code & 1)
    if short:
        options.append(f"[{short}]")
    digits: dict[int, list[str]] = {}
    for code in NUMERIC_ESCAPES:
        if mask >> code & 1:
            last = f"{code & 15:x}"
            digits.setdefault(code >> 4, []).append(last + (last.upper() if last.isalpha() else ""))
    by_tail: dict[str, str] = {}
    for high, tails in digits.items():
        tail = "".join(sorted(tails))
        by_tail[tail] = by_tail.get(tail, "") + f"{high:x}"
    options.extend(f"u00[{highs}][{tail}]" for tail, highs in by_tail.items())
    return options


@functools.lru_cache(maxsize=4096)
def quoted_class(characters: Characters) -> str:
    """A regular expression of the Rust syntax for one character of the set as it is spelled inside a JSON string."""
    raw = bracketed(characters.ascii & _RAW) + characters.beyond
    escaped = _escaped_spellings(characters.ascii & _ESCAPABLE) if characters.ascii & _ESCAPABLE else []
    options = [f"[{raw}]"] if raw else []
    if escaped:
        options.append(f"\\\\(?:{'|'.join(escaped)})")
    if not options:
        return r"[^\x00-\x{10FFFF}]"
    return options[0] if len(options) == 1 and not escaped else f"(?:{'|'.join(options)})"


ANY_CHARACTER = quoted_class(ANY)


def quoted_literal(text: str) -> str:
    """A regular expression for every spelling of ``text`` inside a JSON string."""
    return "".join(quoted_class(single(ord(char))) if ord(char) < 128 else char for char in text)


def _quoted(node: Node) -> str:
    """The node over the text of a JSON string."""
    if isinstance(node, Class):
        return quoted_class(node.characters)
    return _spelled(node, _quoted)


def plainly(node: Node) -> str:
    """The node over decoded text."""
    if isinstance(node, Class):
        return _plain_class(node.characters)
    return _spelled(node, plainly)


@functools.lru_cache(maxsize=4096)
def _plain_class(characters: Characters) -> str:
    members = bracketed(characters.ascii) + characters.beyond
    return f"[{members}]" if members else r"[^\x00-\x{10FFFF}]"


class Spelling(NamedTuple):
    """How a terminal writes the characters of a string."""

    node: Callable[[Node], str]
    character: Callable[[Characters], str]
    any_character: str
    quote: str
    """What stands before and behind the string."""


IN_JSON = Spelling(_quoted, quoted_class, ANY_CHARACTER, '"')
AS_TEXT = Spelling(plainly, _plain_class, "(?s:.)", "")


def _spelled(node: Node, spell: Callable[[Node], str]) -> str:
    """A compound node, its parts spelled by a function."""
    if isinstance(node, Sequence):
        return "".join(map(spell, node.items))
    if isinstance(node, Choice):
        return f"(?:{'|'.join(map(spell, node.options))})"
    if isinstance(node, Repeat):
        inner = f"(?:{spell(node.item)})"
        if (node.minimum, node.maximum) == (0, None):
            return inner + "*"
        if (node.minimum, node.maximum) == (1, None):
            return inner + "+"
        if (node.minimum, node.maximum) == (0, 1):
            return inner + "?"
        return f"{inner}{{{node.minimum},{'' if node.maximum is None else node.maximum}}}"
    raise AssertionError(node)
