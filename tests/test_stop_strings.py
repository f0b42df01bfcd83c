from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from isogloss.events import (
    Event,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    collect,
    merge,
)
from isogloss.stop_strings import StopStrings


def said(pieces: list[str]) -> list[Event]:
    events: list[Event] = []
    place = 0
    for piece in pieces:
        events.append(TextDelta(piece, place, place + len(piece)))
        place += len(piece)
    return [*events, Finish("stop", place, place)]


def passed(events: list[Event], *stops: str) -> list[Event]:
    filter_ = StopStrings(stops)
    return [kept for event in events for kept in filter_.pass_on([event])]


def tiles(events: list[Event]) -> bool:
    return all(one.end == other.start for one, other in itertools.pairwise(events))


def test_text_ends_before_the_first_stop_string() -> None:
    events = passed(said(["one, tw", "o, three, two"]), "two", "three")
    assert merge(events) == [TextDelta("one, ", 0, 5), Finish("stop", 5, 20)]


def test_what_only_looked_like_a_stop_string_is_kept() -> None:
    assert merge(passed(said(["abab", "abac"]), "ababx")) == [TextDelta("abababac", 0, 8), Finish("stop", 8, 8)]


def test_the_start_of_a_stop_string_is_held_back() -> None:
    filter_ = StopStrings(["END"])
    assert list(filter_.pass_on([TextDelta("so EN", 0, 5)])) == [TextDelta("so ", 0, 3)]
    assert list(filter_.pass_on([Finish("stop", 5, 5)])) == [TextDelta("EN", 3, 5), Finish("stop", 5, 5)]
    assert not filter_.hit


def test_reasoning_and_calls_do_not_stop() -> None:
    events = [
        ReasoningDelta("a\nb", 0, 3),
        ToolCallStart(0, "c", "f", 3, 4),
        ToolCallDelta(0, '{"x":"\\n"}', 4, 14),
        ToolCallEnd(0, {"x": "\n"}, 14, 14),
        TextDelta("x\ny", 20, 23),
        Finish("stop", 23, 23),
    ]
    kept = passed(events, "\n")
    assert kept[:4] == events[:4]
    assert kept[4:] == [TextDelta("x", 20, 21), Finish("tool_calls", 21, 23)]


def test_a_stop_string_does_not_reach_across_a_call() -> None:
    call: list[Event] = [ToolCallStart(0, "c", "f", 5, 9), ToolCallEnd(0, {}, 9, 9)]
    events = [TextDelta("EN", 2, 4), *call, TextDelta("D", 9, 10), Finish("tool_calls", 10, 10)]
    assert passed(events, "END") == events


def test_without_stop_strings_nothing_changes() -> None:
    events = said(["a", "b"])
    assert passed(events) == events
    assert passed(events, "") == events


@given(
    st.lists(st.text("ab", max_size=4), max_size=8),
    st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3),
)
def test_it_is_what_a_search_of_the_whole_would_find(pieces: list[str], stops: list[str]) -> None:
    text = "".join(pieces)
    events = passed(said([piece for piece in pieces if piece]), *stops)
    # The earliest end counts: a stream cannot wait for a longer string that may never come.
    ends = [text.index(stop) + len(stop) for stop in stops if stop in text]
    expected = text
    if ends:
        end = min(ends)
        expected = text[: end - max(len(stop) for stop in stops if text[:end].endswith(stop))]
    assert collect(events).text == expected
    assert tiles(events)
    assert events[-1].end == len(text)
