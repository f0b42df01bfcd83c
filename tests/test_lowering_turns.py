"""Guards of JSON values within a turn: they wake up where a value begins and sleep where it ends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from isogloss.constraints import Constraint, JsonValue, Literal, Matcher, Regex, Repeat, choice, sequence
from isogloss.constraints.guarded_turn_matcher import GuardedTurnMatcher
from isogloss.tokenizers import byte_level, o200k_harmony

BYTES = byte_level()
UNIQUE = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
OPEN = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
TURN = Constraint(
    sequence(
        Regex("[a-z {]*"),
        Repeat(sequence(Literal("<"), choice(JsonValue(UNIQUE), JsonValue(OPEN)), Literal(">")), 1, None),
        Literal("."),
    )
)


def guarded(constraint: Constraint = TURN) -> GuardedTurnMatcher:
    matcher = constraint.matcher(BYTES)
    assert isinstance(matcher, GuardedTurnMatcher)
    return matcher


def taken(text: str) -> int:
    return guarded().accept_all(list(text.encode()))


@pytest.mark.parametrize(
    "text", ["say {<[1,2]>.", '<{"n":1,"x":{"n":2}}>.', '<[1,2]><[1,2]><{"n":1}>.', "<[]>.", "<[ 1 ]>."]
)
def test_what_the_guards_allow_passes(text: str) -> None:
    assert taken(text) == len(text)


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("say {<[1,1]>.", 10),
        ('<{"n":1,"x":2,"x":3}>.', 16),
        ("<[1,2]><[3,3]>.", 12),
        ('<[1]><{"n":1,"x":[],"x":2}>.', 22),
    ],
)
def test_what_a_guard_forbids_does_not(text: str, offset: int) -> None:
    matcher = guarded()
    assert matcher.accept_all(list(text.encode())) == offset
    assert not int(matcher.mask()[ord(text[offset]) >> 5]) >> (ord(text[offset]) & 31) & 1
    assert matcher.violation is not None


def test_going_back_over_the_end_and_the_beginning_of_a_value() -> None:
    text = list(b"<[1,2]><[3,")
    for count in range(len(text) + 1):
        matcher = guarded()
        assert matcher.accept_all(text) == len(text)
        matcher.rollback(count)
        assert matcher.accept_all(text[len(text) - count :]) == count
        assert matcher.accept_all(list(b"3]>.")) == 1
        matcher.rollback(1)
        assert matcher.accept_all(list(b"4]>.")) == 4


def test_a_copy_goes_its_own_way() -> None:
    matcher = guarded()
    assert matcher.accept_all(list(b"<[1,")) == 4
    twin = matcher.copy()
    assert twin.accept_all(list(b"2,")) == 2
    assert matcher.accept_all(list(b"2]>.")) == 4
    assert twin.accept_all(list(b"1]")) == 1
    assert matcher.validate(list(b"<")) == 0


def test_a_real_vocabulary_cuts_as_it_likes() -> None:
    tokenizer = o200k_harmony()
    matcher = TURN.matcher(tokenizer)
    good = tokenizer.encode('hi <{"n":1,"other":{"n":2,"m":[1,1]}}><[10,20]>.')
    assert matcher.accept_all(good) == len(good)
    assert matcher.is_complete
    bad = tokenizer.encode('hi <{"n":1,"other":{"n":2,"n":3}}>.')
    assert TURN.matcher(tokenizer).accept_all(bad) < len(bad)


def test_values_without_guards_need_no_guarding() -> None:
    closed: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
    constraint = Constraint(sequence(Literal("<"), JsonValue(closed), Literal(">")))
    matcher = constraint.matcher(BYTES)
    assert type(matcher) is Matcher
    text = f"<{json.dumps({'a': 'b'})}>"
    assert matcher.accept_all(list(text.encode())) == len(text)
