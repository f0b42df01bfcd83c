"""What may come next, as characters."""

from __future__ import annotations

import random

import pytest

from isogloss import Tool, get_dialect
from isogloss.constraints import Constraint
from isogloss.constraints.continuation import continuation

TOOL = Tool("f", "", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})


def characters(schema: dict[str, object], text: str) -> str:
    place = continuation(Constraint.from_json_schema(schema), text)
    assert place.is_exact
    return "".join(chr(code) for low, high in place.characters for code in range(low, high + 1))


def test_characters_of_any_length_are_told_exactly() -> None:
    assert characters({"enum": ["日本", "é", "a", "🌦"]}, '"') == "aé日🌦"
    assert characters({"type": "string", "pattern": "^[а-я]+$"}, '"') == "".join(map(chr, range(0x430, 0x450)))


def test_free_text_is_told_by_a_range() -> None:
    place = continuation(Constraint.from_json_schema({"type": "string"}), '"x')
    assert place.characters == ((0x20, 0x7E), (0x80, 0x10FFFF))
    assert not place.is_exact


def test_a_large_set_is_told_by_what_holds_it() -> None:
    schema = {"type": "string", "pattern": "^[一-龥]+$"}
    (low, high), *_ = continuation(Constraint.from_json_schema(schema), '"').characters
    assert low <= ord("一") <= high


def test_what_has_to_come_is_forced() -> None:
    constraint = get_dialect("hermes").constraint([TOOL], "required")
    assert continuation(constraint, "<tool_").forced == "call>"


@pytest.mark.parametrize(("text", "offset"), [('{"a":true}', 5), ('{"é":1}', 2), ("x", 0)])
def test_a_refused_text_stops_where_it_is_refused(text: str, offset: int) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
    place = continuation(Constraint.from_json_schema(schema), text)
    assert place.offset == offset
    assert not place.is_complete


def test_the_end_is_told() -> None:
    place = continuation(Constraint.from_json_schema({"const": 1}), "1")
    assert (place.is_complete, place.characters) == (True, ())


@pytest.mark.parametrize("seed", range(8))
def test_every_character_told_is_accepted_and_no_other_is(seed: int) -> None:
    """A walk through a turn: at each place the told characters are those that the constraint takes."""
    chance = random.Random(seed)
    constraint = get_dialect("qwen3_coder").constraint([TOOL], "required", reasoning=False)
    text = ""
    for _ in range(60):
        place = continuation(constraint, text)
        assert place.offset == len(text)
        told = {chr(code) for low, high in place.characters for code in range(low, min(high, 0x7F) + 1)}
        for character in '<>a1\n {"':
            is_taken = continuation(constraint, text + character).offset == len(text) + 1
            assert is_taken == (character in told), (text, character)
        if not told:
            break
        text += place.forced or chance.choice(sorted(told))
