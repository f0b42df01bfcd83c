"""ECMA-262 regular expressions as terminals over JSON text.

A ``pattern`` of JSON Schema speaks of a decoded string and may match anywhere in it; a grammar speaks of the bytes of a
JSON string. `terminal` turns the one into the other: a Lark expression that matches the whole quoted string.

Look-ahead becomes intersection or complement of what follows. Look-behind, back-references and word boundaries are not
regular in a useful way: `UnsupportedPatternError` is raised and the caller falls back on a guard.
"""

from __future__ import annotations

import functools
import re

from isogloss.schema.characters import mask_of
from isogloss.schema.pattern_placements import anchored, placements, unfolded
from isogloss.schema.pattern_spelling import IN_JSON, Spelling, plainly
from isogloss.schema.pattern_tree import (
    Choice,
    Class,
    LookAhead,
    Node,
    Repeat,
    Sequence,
    UnsupportedPatternError,
    has_assertion,
    is_nullable,
)

_QUANTIFIER = re.compile(r"\{\d+(?:,\d*)?\}")


@functools.lru_cache(maxsize=1024)
def terminal(pattern: str, spelling: Spelling = IN_JSON) -> str:
    """A Lark expression for the strings that ``pattern`` matches somewhere, as they are spelled in JSON or as text.

    Raises `UnsupportedPatternError` when the pattern is no regular language that can be told, or is over the bounds.
    """
    options = []
    for items, start, end in placements(pattern):
        lead = f"{spelling.quote}{'' if start else f'(?:{spelling.any_character})*'}"
        tail = _tail(items, end, spelling)
        if tail.startswith("/"):
            options.append(f"/{lead}{tail[1:]}")
        else:
            options.append(f"{_regex(lead)} {tail}" if lead else tail)
    return " | ".join(options) or _NEVER


_NEVER = r"/[^\x00-\x{10FFFF}]/"


def _tail(items: tuple[Node, ...], end: bool, spelling: Spelling) -> str:
    """A Lark expression for the rest of the string, its closing quote included."""
    anything, quote = f"(?:{spelling.any_character})*", spelling.quote
    for index, item in enumerate(items):
        if not has_assertion(item):
            continue
        head = "".join(map(spelling.node, items[:index]))
        rest = _tail(items[index + 1 :], end, spelling)
        if isinstance(item, LookAhead):
            ahead = _ahead(item.item, spelling)
            clause = f"({rest} & {'~' if item.negative else ''}({ahead}))"
        elif isinstance(item, Repeat) and isinstance(item.item, Sequence) and index == len(items) - 1 and end:
            look, unit = item.item.items
            assert isinstance(look, LookAhead)
            assert isinstance(unit, Class)
            sign = "*" if item.minimum == 0 else "+"
            run = f"/(?:{spelling.character(unit.characters)}){sign}{quote}/"
            if is_nullable(look.item):
                raise UnsupportedPatternError("empty look-ahead")
            clause = f"({run} & ~(/{anything}/ ({_ahead(look.item, spelling)})))"
        else:
            raise UnsupportedPatternError("repeated look-ahead")
        return f"{_regex(head)} {clause}" if head else clause
    body = "".join(map(spelling.node, items))
    return _regex(f"{body}{'' if end else anything}{quote}")


def _regex(text: str) -> str:
    """A regular expression as a terminal, where there may be none of it."""
    return f"/{text}/" if text else '""'


def _ahead(node: Node, spelling: Spelling) -> str:
    options = []
    for sequence in unfolded(node):
        placed = anchored(sequence)
        if placed is None:
            continue
        items, start, end = placed
        if start:
            raise UnsupportedPatternError("anchor in a look-ahead")
        options.append(f"({_tail(items, end, spelling)})")
    return " | ".join(options) or _NEVER


@functools.lru_cache(maxsize=1024)
def engine_pattern(pattern: str) -> str | None:
    """The pattern as the engine's own JSON Schema compiler takes it, in the syntax of Rust's ``regex``; None where it
    cannot be told so.

    That compiler takes no numeric escape of some characters where a pattern is, and DEL by its escape only, so that a
    string has fewer spellings than in `terminal`.
    """
    try:
        placed = placements(pattern)
    except UnsupportedPatternError:
        return None
    if not placed or any(has_assertion(item) or _is_loose(item) for items, _, _ in placed for item in items):
        return None
    options = [
        f"{'' if start else _ANYTHING}{''.join(map(plainly, items))}{'' if end else _ANYTHING}"
        for items, start, end in placed
    ]
    return f"^{options[0]}$" if len(options) == 1 else f"^(?:{'|'.join(options)})$"


_ANYTHING = r"[\s\S]*"
_ESCAPED = mask_of('"\\')


def _is_loose(node: Node) -> bool:
    """Whether the compiler would take ``\\"`` or ``\\\\`` for a character that is none of the node's: it does where all
    control characters are allowed (llguidance 1.9)."""
    if isinstance(node, Class):
        return bool(node.characters.ascii & 1) and node.characters.ascii & _ESCAPED != _ESCAPED
    if isinstance(node, Sequence):
        return any(map(_is_loose, node.items))
    if isinstance(node, Choice):
        return any(map(_is_loose, node.options))
    return isinstance(node, Repeat) and _is_loose(node.item)


def strict_spelling(pattern: str) -> str:
    """The pattern with lone brackets and braces escaped, which browsers take as they are and strict engines do not."""
    parts = []
    in_class = False
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            parts.append(pattern[at : at + 2])
            at += 2
            continue
        quantifier = _QUANTIFIER.match(pattern, at) if char == "{" and not in_class else None
        if quantifier is not None:
            parts.append(quantifier.group())
            at = quantifier.end()
            continue
        if in_class:
            in_class = char != "]"
            parts.append("\\[" if char == "[" else char)
        else:
            in_class = char == "["
            parts.append(f"\\{char}" if char in "]{}" else char)
        at += 1
    return "".join(parts)
