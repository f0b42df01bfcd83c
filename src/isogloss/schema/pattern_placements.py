"""The alternatives of a pattern: what each says, and which ends of the string it is tied to."""

from __future__ import annotations

import functools
from typing import NamedTuple

from isogloss.schema.pattern_parser import PatternParser
from isogloss.schema.pattern_tree import (
    Anchor,
    Choice,
    Class,
    LookAhead,
    Node,
    Repeat,
    Sequence,
    UnsupportedPatternError,
    has_assertion,
    is_nullable,
    size_of,
)

MAXIMUM_SEQUENCES = 128
"""Alternatives that anchors and look-aheads may unfold into."""
MAXIMUM_SIZE = 5_000
"""Repeated characters of one pattern, counted after unfolding."""


class Placement(NamedTuple):
    """One alternative of a pattern: its parts, and whether it is tied to the start and to the end of the string."""

    items: tuple[Node, ...]
    at_start: bool
    at_end: bool


@functools.lru_cache(maxsize=1024)
def placements(pattern: str) -> tuple[Placement, ...]:
    """The alternatives of a pattern, anchors and look-aheads at the top of each; none where it cannot match.

    Raises `UnsupportedPatternError` when the pattern is no regular language that can be told, or is over the bounds.
    """
    node = PatternParser(pattern).parse()
    if size_of(node) > MAXIMUM_SIZE:
        raise UnsupportedPatternError("size")
    return tuple([Placement(*found) for sequence in unfolded(node) if (found := anchored(sequence)) is not None])


def matches_all(pattern: str) -> bool:
    """Whether it is seen at once that a pattern matches every string: nothing at an end that it is not tied to."""
    try:
        return any(
            not (at_start and at_end) and not any(map(has_assertion, items)) and all(map(is_nullable, items))
            for items, at_start, at_end in placements(pattern)
        )
    except UnsupportedPatternError:
        return False


def _tempered(node: Node) -> bool:
    """``((?!x).)*``: a run of characters at none of which ``x`` matches."""
    return (
        isinstance(node, Repeat)
        and (node.minimum, node.maximum) in ((0, None), (1, None))
        and isinstance(node.item, Sequence)
        and len(node.item.items) == 2
        and isinstance(node.item.items[0], LookAhead)
        and node.item.items[0].negative
        and isinstance(node.item.items[1], Class)
    )


def unfolded(node: Node) -> list[tuple[Node, ...]]:
    """Alternatives without groups, so that anchors and look-aheads stand at the top."""
    if not has_assertion(node) or isinstance(node, (Anchor, LookAhead)) or _tempered(node):
        return [(node,)]
    if isinstance(node, Choice):
        found = [sequence for option in node.options for sequence in unfolded(option)]
    elif isinstance(node, Sequence):
        found = [()]
        for item in node.items:
            tails = unfolded(item)
            if len(found) * len(tails) > MAXIMUM_SEQUENCES:
                raise UnsupportedPatternError("alternatives with anchors")
            found = [head + tail for head in found for tail in tails]
    elif isinstance(node, Repeat):
        if node.maximum is None or node.maximum > 2:
            raise UnsupportedPatternError("repeated look-ahead")
        found = []
        for count in range(node.minimum, node.maximum + 1):
            found.extend(unfolded(Sequence((node.item,) * count)))
    else:
        raise AssertionError(node)
    if len(found) > MAXIMUM_SEQUENCES:
        raise UnsupportedPatternError("alternatives with anchors")
    return found


def anchored(sequence: tuple[Node, ...]) -> tuple[tuple[Node, ...], bool, bool] | None:
    """The sequence without its anchors and whether it is tied to the start and the end; None if it cannot match."""
    items = list(sequence)
    start = end = False
    starts = [i for i, item in enumerate(items) if isinstance(item, Anchor) and item.side == "start"]
    if starts:
        head = items[: starts[-1]]
        if not all(map(is_nullable, head)):
            return None
        items = [item for item in head if isinstance(item, LookAhead)] + items[starts[-1] + 1 :]
        start = True
    ends = [i for i, item in enumerate(items) if isinstance(item, Anchor)]
    if ends:
        tail = items[ends[0] + 1 :]
        if not all(map(is_nullable, tail)) or any(isinstance(item, LookAhead) for item in tail):
            return None
        items = items[: ends[0]]
        end = True
    return tuple(items), start, end
