"""Guards: what a grammar cannot say never completes, masks say so beforehand, and there is a way back."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema_rs
import pytest

from isogloss.constraints import Constraint, Matcher
from isogloss.constraints.guarded_matcher import GuardedMatcher
from isogloss.schema.guards import Guards
from isogloss.schema.json_watch import JsonWatch
from isogloss.schema.lowering import lower
from isogloss.tokenizers import Tokenizer, byte_level, o200k_harmony

BYTES = byte_level()

UNIQUE = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
BACK_REFERENCE = {"type": "object", "properties": {"p": {"type": "string", "pattern": r"^(.)\1$"}}, "required": ["p"]}
OPEN = {"type": "object", "properties": {"count": {"type": "integer"}}}


def guarded(schema: Any, tokenizer: Tokenizer = BYTES) -> GuardedMatcher:
    matcher = Constraint.from_json_schema(schema).matcher(tokenizer)
    assert isinstance(matcher, GuardedMatcher)
    return matcher


def allows(matcher: Matcher, token: int) -> bool:
    return bool(int(matcher.mask()[token >> 5]) >> (token & 31) & 1)


@pytest.mark.parametrize(
    ("schema", "text", "pointer"),
    [
        (UNIQUE, "[7,8,7]", "/2"),
        ({"type": "object", "properties": {"xs": UNIQUE}}, '{"xs":[7,7]', "/xs/1"),
        (BACK_REFERENCE, '{"p":"ab"', "/p"),
        (OPEN, '{"a":1,"a"', "/a"),
        (OPEN, '{"x":{"k":1,"\\u006b"', None),
        ({"type": "array", "uniqueItems": True}, '[{"a":1,"b":2},{"b":2,"a":1}', "/1"),
        ({"type": "array", "uniqueItems": True}, "[1,1.0]", "/1"),
    ],
)
def test_a_value_never_closes_wrongly(schema: Any, text: str, pointer: str | None) -> None:
    matcher = guarded(schema)
    data = text.encode()
    accepted = matcher.accept_all(list(data))
    assert accepted < len(data)
    assert not allows(matcher, data[accepted])
    if pointer is not None:
        assert matcher.violation is not None
        assert matcher.violation.pointer == pointer


def test_a_listed_key_is_not_spelled_as_if_it_were_another() -> None:
    for text in (b'{"\\u0063ount":"x"}', b'{"count":1,"\\u0063ount":"x"}'):
        assert guarded(OPEN).accept_all(list(text)) < len(text)


def test_a_guard_below_a_choice_is_one_for_the_whole_value() -> None:
    schema = {
        "anyOf": [
            {"type": "object", "properties": {"k": {"const": 1}, "xs": UNIQUE}, "required": ["k", "xs"]},
            {"type": "object", "properties": {"k": {"const": 2}, "xs": {"type": "array"}}, "required": ["k", "xs"]},
        ]
    }
    assert guarded(schema).accept_all(list(b'{"k":2,"xs":[1,1]}')) == 18
    assert guarded(schema).accept_all(list(b'{"k":1,"xs":[1,1]}')) < 18
    assert guarded(schema).accept_all(list(b'{"k":1,"xs":[1,2]}')) == 18


def test_a_number_at_the_root_may_not_end_wrongly() -> None:
    schema = {"type": "integer", "not": {"multipleOf": 3}}
    matcher = guarded(schema)
    (end,) = BYTES.end_tokens
    assert matcher.accept_all(list(b"12")) == 2
    assert not matcher.is_complete
    assert not allows(matcher, end)
    assert not matcher.accept(end)
    assert matcher.accept(ord("1"))
    assert matcher.is_complete
    assert allows(matcher, end)
    assert matcher.accept(end)


def test_going_back_forgets_what_was_there() -> None:
    matcher = guarded(UNIQUE)
    assert matcher.accept_all(list(b"[1,2,")) == 5
    matcher.rollback(3)
    assert matcher.accept_all(list(b",2]")) == 3
    assert matcher.is_complete
    matcher.rollback(4)
    assert matcher.accept_all(list(b"2,1]")) == 4


def test_a_copy_goes_its_own_way() -> None:
    matcher = guarded(UNIQUE)
    assert matcher.accept_all(list(b"[1,2")) == 4
    twin = matcher.copy()
    assert twin.accept_all(list(b",3]")) == 3
    assert matcher.accept_all(list(b",4,3,2]")) == 6
    assert twin.is_complete
    assert not matcher.is_complete


def test_validating_changes_nothing() -> None:
    matcher = guarded(UNIQUE)
    matcher.accept_all(list(b"[1,"))
    assert matcher.validate(list(b"1]")) == 1
    assert matcher.validate(list(b"2]")) == 2
    assert matcher.accept_all(list(b"2]")) == 2


def test_where_nothing_is_left_it_is_stuck_and_there_is_a_way_back() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "null"}, "propertyNames": {"pattern": "^(ab|cd)$"}}
    matcher = guarded(schema)
    assert matcher.accept_all(list(b'{"ab":null,"ab')) == 14
    assert matcher.is_stuck
    assert matcher.violation is not None
    assert matcher.violation.pointer == "/ab"
    matcher.rollback(2)
    assert not matcher.is_stuck
    assert matcher.accept_all(list(b'cd":null}')) == 9


def test_forced_tokens_stop_before_what_a_guard_forbids() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "null"}, "propertyNames": {"pattern": "^(ab|cd)$"}}
    matcher = guarded(schema)
    matcher.accept_all(list(b'{"ab":null,"a'))
    assert bytes(matcher.forced_tokens()) in (b"", b"b")


@pytest.mark.parametrize("schema", [UNIQUE, OPEN, BACK_REFERENCE, {"type": "string", "format": "regex"}])
def test_masks_of_a_real_vocabulary_are_what_is_accepted(schema: Any) -> None:
    tokenizer = o200k_harmony()
    values: list[Any] = [[10, 1], {"count": 1, "ab": 2}, {"p": "xx"}, "a(b)"]
    validator = jsonschema_rs.validator_for(schema, validate_formats=True)
    value = next(value for value in values if validator.is_valid(value))
    tokens = tokenizer.encode(json.dumps(value, separators=(",", ":")))
    matcher = Constraint.from_json_schema(schema).matcher(tokenizer)
    chance = random.Random(7)
    for token in tokens:
        mask = matcher.mask()
        assert int(mask[token >> 5]) >> (token & 31) & 1
        for other in chance.sample(range(tokenizer.vocabulary_size), 300):
            assert matcher.validate([other]) == int(mask[other >> 5]) >> (other & 31) & 1
        assert matcher.accept(token)
    assert matcher.is_complete


def test_repeated_keys_are_refused_whatever_the_tokens() -> None:
    tokenizer = o200k_harmony()
    matcher = guarded(OPEN, tokenizer)
    matcher.accept_all(tokenizer.encode('{"id":1,"name":2,"'))
    mask = matcher.mask()
    for token in range(tokenizer.vocabulary_size):
        if int(mask[token >> 5]) >> (token & 31) & 1:
            assert not tokenizer.token_bytes(token).startswith((b'id"', b'name"'))


def test_random_walks_end_valid() -> None:
    schemas: list[Any] = [
        UNIQUE,
        BACK_REFERENCE,
        {"type": "array", "items": {"type": "string", "maxLength": 2}, "uniqueItems": True, "minItems": 2},
        {"type": "integer", "not": {"multipleOf": 3}, "minimum": 0, "maximum": 99},
        {"oneOf": [{"type": "array", "uniqueItems": True}, {"type": "array", "maxItems": 1}]},
    ]
    chance = random.Random(3)
    for schema in schemas:
        validator = jsonschema_rs.validator_for(schema)
        for _ in range(6):
            text = walk(Constraint.from_json_schema(schema).matcher(BYTES), chance)
            if text is not None:
                assert validator.is_valid(json.loads(text)), text


def walk(matcher: Matcher, chance: random.Random) -> bytes | None:
    """What a model without preferences writes; None when it goes on and on, or is stuck."""
    written = bytearray()
    while len(written) < 400:
        mask = matcher.mask()
        allowed = [byte for byte in range(256) if int(mask[byte >> 5]) >> (byte & 31) & 1]
        if matcher.is_complete and (not allowed or chance.random() < 0.3):
            return bytes(written)
        if not allowed:
            return None
        (byte,) = chance.choices(allowed, [5 if chr(byte) in '"]},0123' else 0.2 for byte in allowed])
        assert matcher.accept(byte)
        written.append(byte)
    return None


def test_plans_reach_only_what_is_guarded() -> None:
    lowered = lower(
        {
            "type": "object",
            "properties": {"a": {"type": "string"}, "xs": UNIQUE},
            "additionalProperties": False,
            "minProperties": 1,
        }
    )
    plan = lowered.guards.plan
    assert plan is not None
    root = plan.guard(plan.root(), "object")
    assert root is not None
    assert plan.guard(root.member("a"), "string") is None
    xs = plan.guard(root.member("xs"), "array")
    assert xs is not None
    assert xs.unique
    assert lower({"type": "string"}).guards == Guards()


def test_a_watch_is_linear_in_keys() -> None:
    watch = JsonWatch(Guards(open_keys=True))
    assert watch.take(b"{")
    for number in range(5_000):
        assert watch.take(b'"key%d":0,' % number)
    assert watch.place.container is not None
    assert len(watch.place.container.names) == 5_000
    assert not watch.allows(b'"key17"')
    assert watch.allows(b'"key5001"')


def test_a_mask_has_no_token_that_ends_a_repeated_number_and_opens_a_string() -> None:
    tokenizer = o200k_harmony()
    matcher = guarded({"type": "array", "uniqueItems": True}, tokenizer)
    assert matcher.accept_all(tokenizer.encode("[1,1")) == len(tokenizer.encode("[1,1"))
    (token,) = tokenizer.encode(',"')
    assert not allows(matcher, token)
    assert allows(matcher, tokenizer.encode("0")[0])


@pytest.mark.parametrize("unique", [["ab", "ac"], ["\\", 'a"b'], ["", "é"]])
def test_a_mask_has_no_token_that_ends_a_repeated_string(unique: list[str]) -> None:
    tokenizer = o200k_harmony()
    for text in unique:
        matcher = guarded({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, tokenizer)
        before = json.dumps([*unique, text], ensure_ascii=False, separators=(",", ":"))[:-2]
        tokens = tokenizer.encode(before)
        assert matcher.accept_all(tokens) == len(tokens)
        for ending in ('"', '"]', '",', '","'):
            (token,) = tokenizer.encode(ending)
            assert not allows(matcher, token)
            assert not matcher.validate([token])
