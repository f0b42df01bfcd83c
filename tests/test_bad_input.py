"""Output that no model should write: every dialect answers with events, and its work grows with the length alone."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from enum import Enum
from types import FrameType
from typing import Any

import pytest

from isogloss.dialects import Dialect, dialect_names, get_dialect
from isogloss.dialects._scanner import LONGEST_HELD, LONGEST_PIECE
from isogloss.messages import Tool, ToolCall
from isogloss.testing import check_conservation, scan

EVERY_DIALECT = pytest.mark.parametrize("name", dialect_names())
TOOL = Tool("f", "", {"type": "object", "properties": {"text": {"type": "string"}, "tree": {"type": "array"}}})


def opener(dialect: Dialect, argument: str) -> str:
    """A call up to the beginning of the value of one argument."""
    value: Any = "@" if argument == "text" else ["@"]
    written = dialect.render_calls([ToolCall("", "f", {argument: value})], [TOOL])
    return written[: written.index("@")]


@EVERY_DIALECT
@pytest.mark.parametrize("bracket", ["[", "{", '{"a":', "("])
def test_nesting_without_end(name: str, bracket: str) -> None:
    dialect = get_dialect(name)
    output = opener(dialect, "tree") + bracket * 100_000
    for step in (len(output), 1000):
        events = scan(dialect, [output[at : at + step] for at in range(0, len(output), step)], [TOOL])
        check_conservation(output, events)


@EVERY_DIALECT
def test_one_marker_over_and_over(name: str) -> None:
    dialect = get_dialect(name)
    for marker in dialect.markers.all:
        output = marker * (1_000_000 // len(dialect.markers.all) // len(marker))
        check_conservation(output, scan(dialect, [output], [TOOL]))


@EVERY_DIALECT
def test_random_bytes(name: str) -> None:
    dialect = get_dialect(name)
    chance = random.Random(0)
    markers = dialect.markers.all
    for _ in range(20):
        parts = [chance.randbytes(20).decode("utf-8", "replace") for _ in range(50)]
        output = "".join([part + chance.choice(["", *markers]) for part in parts])
        pieces = [output[at : at + 7] for at in range(0, len(output), 7)]
        check_conservation(output, scan(dialect, pieces, [TOOL]))


@EVERY_DIALECT
def test_work_grows_with_the_length_alone(name: str) -> None:
    """Counted in calls of functions, which a loop or a second look at the same text cannot hide from."""
    dialect = get_dialect(name)
    floods = ["<", "a", '"', "\n", "{", "\\", "`", *dialect.markers.all]
    heads = ["", opener(dialect, "text"), opener(dialect, "tree"), opener(dialect, "text")[:-3]]
    for head in heads:
        for flood in floods:
            small, large = (calls_made(dialect, head + flood * (size // len(flood))) for size in (2_000, 8_000))
            assert large < 4.6 * small + 200, f"{small} calls, then {large}, for {head!r} and {flood!r} over and over"


@EVERY_DIALECT
def test_a_long_piece_is_taken_in_short_ones(name: str) -> None:
    """Or each call in it would copy all that follows."""
    dialect = get_dialect(name)
    call = dialect.render_calls([ToolCall("", "f", {"text": "x"})], [TOOL])
    scanner = dialect.scanner([TOOL])
    scanner.feed(call * (100_000 // len(call)))
    assert len(scanner._text) <= LONGEST_PIECE + LONGEST_HELD


def calls_made(dialect: Dialect, output: str) -> int:
    """Calls of Python and C functions while the output is scanned in 4-character pieces."""
    count = 0

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    scanner = dialect.scanner([TOOL])
    feed: Callable[[str], object] = scanner.feed
    pieces = [output[at : at + 4] for at in range(0, len(output), 4)]
    sys.setprofile(profile)
    try:
        for piece in pieces:
            feed(piece)
        scanner.finish()
    finally:
        sys.setprofile(None)
    return count


class Word(str, Enum):
    HELLO = "Hello"


@EVERY_DIALECT
def test_pieces_are_text(name: str) -> None:
    dialect = get_dialect(name)
    assert scan(dialect, [Word.HELLO]) == scan(dialect, ["Hello"])
    for control in ((), dialect.markers.special):
        for piece in (b"Hello", None, 5, ["Hello"]):
            with pytest.raises(TypeError, match=r"Expected a piece of output as `str` or `Piece`, got `\w+`"):
                dialect.scanner(control=control).feed(piece)  # type: ignore[arg-type]
