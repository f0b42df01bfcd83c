"""How long the strings of a pattern are, read off its shape: whether bounds on their length leave any."""

from __future__ import annotations

import functools
from typing import NamedTuple

from isogloss.schema.pattern_placements import placements
from isogloss.schema.pattern_tree import Choice, Class, Node, Repeat, Sequence, UnsupportedPatternError, has_assertion


class Lengths(NamedTuple):
    """The lengths of some strings, in characters."""

    shortest: int
    longest: int | None
    """None for no end."""
    is_gapless: bool
    """Whether each length between the two is one of some string: it may be where this is not said."""


_ANY = Lengths(0, None, True)


@functools.lru_cache(maxsize=1024)
def lengths(pattern: str) -> Lengths | None:
    """The lengths of the strings in which a pattern matches somewhere; None where its shape does not tell."""
    try:
        placed = placements(pattern)
        if not placed or any(has_assertion(item) for items, _, _ in placed for item in items):
            return None
        return _of_either(
            [
                _together([*map(_of, items), *(_ANY for is_tied in (at_start, at_end) if not is_tied)])
                for items, at_start, at_end in placed
            ]
        )
    except UnsupportedPatternError:
        return None


def leaves_some(pattern: str, low: int, high: int | None) -> bool | None:
    """Whether a pattern matches some string whose length is within bounds; None where its shape does not tell."""
    known = lengths(pattern)
    if known is None:
        return None
    shortest, longest, is_gapless = known
    if (high is not None and shortest > high) or (longest is not None and longest < low):
        return False
    is_end_within = low <= shortest or (longest is not None and (high is None or longest <= high))
    return True if is_end_within or is_gapless else None


def _of(node: Node) -> Lengths:
    if isinstance(node, Class):
        characters = node.characters
        if not characters.ascii and (not characters.beyond or "&&" in characters.beyond):
            raise UnsupportedPatternError("a class that may be empty")
        return Lengths(1, 1, True)
    if isinstance(node, Sequence):
        return _together(list(map(_of, node.items)))
    if isinstance(node, Choice):
        return _of_either(list(map(_of, node.options)))
    if isinstance(node, Repeat):
        return _repeated(_of(node.item), node.minimum, node.maximum)
    raise AssertionError(node)


def _together(parts: list[Lengths]) -> Lengths:
    ends = [part.longest for part in parts]
    return Lengths(
        sum(part.shortest for part in parts),
        None if None in ends else sum(end for end in ends if end is not None),
        all(part.is_gapless for part in parts),
    )


def _of_either(options: list[Lengths]) -> Lengths:
    options = sorted(options, key=lambda option: option.shortest)
    whole = options[0]
    for option in options[1:]:
        is_next = whole.longest is None or option.shortest <= whole.longest + 1
        longest = None if whole.longest is None or option.longest is None else max(whole.longest, option.longest)
        whole = Lengths(whole.shortest, longest, whole.is_gapless and option.is_gapless and is_next)
    return whole


def _repeated(item: Lengths, least: int, most: int | None) -> Lengths:
    if most == 0 or item.longest == 0:
        return Lengths(0, 0, True)
    longest = None if item.longest is None or most is None else item.longest * most
    # What one more of the item adds leaves a gap soonest after the fewest of them.
    end = None if least and item.longest is None else least * (item.longest or 0)
    is_next = most == least or end is None or (least + 1) * item.shortest <= end + 1
    return Lengths(least * item.shortest, longest, item.is_gapless and is_next)
