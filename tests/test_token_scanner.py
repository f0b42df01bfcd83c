"""Scanning by ids: one id, many, bytes cut anywhere, ids that mean nothing, going back."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isogloss.dialects import Dialect, get_dialect
from isogloss.dialects._harmony_scanner import HarmonyScanner
from isogloss.events import Event, Finish, Piece, TextDelta, collect, merge
from isogloss.testing import check_conservation, read_corpus, scan
from isogloss.token_scanner import DamagedOutputError, TokenScanner
from isogloss.tokenizers import Tokenizer, byte_level, o200k_harmony

CORPUS = Path(__file__).parent / "corpus"
EVERY_CORPUS = pytest.mark.parametrize("name", [path.stem for path in sorted(CORPUS.glob("*.txt"))])
HARMONY = get_dialect("harmony")
O200K = o200k_harmony()
EXAMPLES = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)

CONTROL = dict(O200K.special_tokens)
FINAL = [CONTROL["<|channel|>"], *O200K.encode("final"), CONTROL["<|message|>"]]
RETURN = CONTROL["<|return|>"]


def cut(dialect: Dialect, output: str) -> list[Piece]:
    """The output with its markers as control tokens."""
    pieces, rest = [], output
    markers = sorted(dialect.markers.special, key=len, reverse=True)
    while rest:
        marker = next((marker for marker in markers if rest.startswith(marker)), None)
        text = marker or rest[0]
        pieces.append(Piece(text, marker is not None))
        rest = rest[len(text) :]
    return pieces


def ids_of(pieces: list[Piece], tokenizer: Tokenizer) -> list[int]:
    return [
        token
        for piece in pieces
        for token in ([tokenizer.special_tokens[piece.text]] if piece.is_control else tokenizer.encode(piece.text))
    ]


def with_plain_ids(events: list[Event]) -> list[Event]:
    merged = merge(events)
    return [type(event)(**{**_fields(event), "id": ""}) if hasattr(event, "id") else event for event in merged]


def _fields(event: Event) -> dict[str, object]:
    return {name: getattr(event, name) for name in event.__struct_fields__}


def fed(scanner: TokenScanner, batches: list[list[int]], finish: str = "stop") -> list[Event]:
    return with_plain_ids([event for ids in batches for event in scanner.feed(ids)] + scanner.finish(finish))


@EVERY_CORPUS
def test_ids_one_by_one_and_many_scan_as_pieces_do(name: str) -> None:
    dialect = get_dialect(name)
    tokenizer = byte_level(sorted(dialect.markers.special))
    chance = random.Random(1)
    for case in read_corpus(CORPUS / f"{name}.txt"):
        if case.output is None:
            continue
        pieces = cut(dialect, case.output)
        wanted = scan(
            dialect,
            pieces,
            case.tools,
            starts_in=case.starts_in,
            finish=case.finish,
            control=tokenizer.special_tokens,
        )
        wanted = with_plain_ids(wanted)
        ids = ids_of(pieces, tokenizer)
        places = sorted(chance.sample(range(len(ids)), min(4, len(ids))))
        batches = [ids[start:end] for start, end in zip([0, *places], [*places, len(ids)], strict=True)]
        for batched in ([[token] for token in ids], [ids], batches):
            scanner = TokenScanner(dialect, tokenizer, case.tools, starts_in=case.starts_in)
            assert fed(scanner, batched, case.finish) == wanted, case.title


@EVERY_CORPUS
def test_going_back_is_as_if_nothing_had_been_fed(name: str) -> None:
    dialect = get_dialect(name)
    tokenizer = byte_level(sorted(dialect.markers.special))
    chance = random.Random(2)
    other = ids_of(cut(dialect, "".join(dialect.markers.all) + 'é{"a": [1, "'), tokenizer)
    for case in read_corpus(CORPUS / f"{name}.txt"):
        if not case.output:
            continue
        ids = ids_of(cut(dialect, case.output), tokenizer)
        straight = TokenScanner(dialect, tokenizer, case.tools, starts_in=case.starts_in)
        wanted = fed(straight, [ids])
        for _ in range(4):
            place = chance.randrange(len(ids) + 1)
            scanner = TokenScanner(dialect, tokenizer, case.tools, starts_in=case.starts_in)
            events = scanner.feed(ids[:place])
            snapshot = scanner.snapshot()
            for _ in range(2):
                scanner.feed(other[: chance.randrange(len(other) + 1)])
                scanner.finish()
                scanner.restore(snapshot)
            events += scanner.feed(ids[place:]) + scanner.finish()
            assert with_plain_ids(events) == wanted, case.title
            assert scanner.repairs == straight.repairs


@EXAMPLES
@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=30), st.data())
def test_characters_cut_between_tokens_wait_for_their_rest(text: str, data: st.DataObject) -> None:
    tokenizer = byte_level(sorted(HARMONY.markers.special))
    special = tokenizer.special_tokens
    ids = [special["<|channel|>"], *b"final", special["<|message|>"], *text.encode(), special["<|return|>"]]
    places = sorted(data.draw(st.sets(st.integers(0, len(ids)))))
    batches = [ids[start:end] for start, end in zip([0, *places], [*places, len(ids)], strict=True)]
    scanner = TokenScanner(HARMONY, tokenizer)
    events = [event for batch in batches for event in scanner.feed(batch)] + scanner.finish()
    assert "".join([event.text for event in events if isinstance(event, TextDelta)]) == text
    assert scanner.repairs == []
    check_conservation(f"<|channel|>final<|message|>{text}<|return|>", events)


@EXAMPLES
@given(st.lists(st.one_of(st.sampled_from(sorted(CONTROL.values())[:12]), st.integers(0, 201_200)), max_size=40))
def test_no_ids_at_all_raise_or_lose_text(ids: list[int]) -> None:
    scanner = TokenScanner(HARMONY, O200K)
    events = [event for token in ids for event in scanner.feed(token)] + scanner.finish()
    batched = TokenScanner(HARMONY, O200K)
    assert merge(batched.feed(ids) + batched.finish())[-1] == events[-1]
    assert isinstance(events[-1], Finish)
    together = TokenScanner(HARMONY, O200K)
    assert fed(together, [ids]) == with_plain_ids(events)


def test_an_id_outside_the_vocabulary_is_replaced_and_noted() -> None:
    scanner = TokenScanner(HARMONY, O200K)
    ids = [*FINAL, *O200K.encode("Hello"), 999_999, *O200K.encode(" world"), RETURN]
    assert collect(scanner.feed(ids) + scanner.finish()).text == "Hello\ufffd world"
    assert [(repair.reason, repair.start) for repair in scanner.repairs] == [
        ("the id 999999 is outside the vocabulary", len("<|channel|>final<|message|>Hello"))
    ]


def test_damage_is_noted_where_it_is_however_ids_are_batched() -> None:
    tokenizer = byte_level()
    ids = [*b"ab", 0xFF, *"\ufffd".encode(), *b"c", 0xE2, *b"d"]
    expected = [("bytes that are no UTF-8 were replaced", "\ufffd", place) for place in (2, 5)]
    for size in (1, 2, 4, len(ids)):
        scanner = TokenScanner(get_dialect("hermes"), tokenizer)
        events = fed(scanner, [ids[at : at + size] for at in range(0, len(ids), size)])
        assert collect(events).text == "ab\ufffd\ufffdc\ufffdd"
        assert [(repair.reason, repair.raw, repair.start) for repair in scanner.repairs] == expected


def test_a_replacement_character_of_the_model_is_no_damage() -> None:
    scanner = TokenScanner(get_dialect("hermes"), byte_level(), strict=True)
    assert collect(fed(scanner, list("\ufffd".encode()))).text == "\ufffd"


def test_half_a_character_at_the_end_of_a_message_is_replaced_and_noted() -> None:
    tokenizer = byte_level(sorted(HARMONY.markers.special))
    special = tokenizer.special_tokens
    head = [special["<|channel|>"], *b"final", special["<|message|>"]]
    scanner = TokenScanner(HARMONY, tokenizer)
    found = collect(scanner.feed([*head, 0xC3]) + scanner.feed(special["<|return|>"]) + scanner.finish())
    assert found.text == "\ufffd"
    assert [repair.reason for repair in scanner.repairs] == ["a character that was cut short was replaced"]
    scanner = TokenScanner(HARMONY, tokenizer)
    assert collect(scanner.feed([*head, 0xC3, 0x41, 0xC3]) + scanner.finish()).text == "\ufffdA\ufffd"
    assert [repair.reason for repair in scanner.repairs] == [
        "bytes that are no UTF-8 were replaced",
        "a character that was cut short was replaced",
    ]


def test_the_token_that_ended_each_message_is_known() -> None:
    output = "<|channel|>analysis<|message|>R.<|end|><|start|>assistant<|channel|>final<|message|>A.<|endoftext|>"
    scanner = TokenScanner(HARMONY, O200K)
    scanner.feed(ids_of(cut(HARMONY, output), O200K))
    assert isinstance(scanner.scanner, HarmonyScanner)
    assert [message.stop for message in scanner.scanner.messages] == ["<|end|>", "<|endoftext|>"]


def test_strict_raises_where_something_had_to_be_put_right() -> None:
    output = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>commentary<|message|>x<|end|>"
    ids = ids_of(cut(HARMONY, output), O200K)
    scanner = TokenScanner(HARMONY, O200K, strict=True)
    with pytest.raises(DamagedOutputError, match=r"<\|start\|> is missing - at 75\.\.75") as raised:
        scanner.feed(ids)
    assert [call.name for call in collect(raised.value.events).tool_calls] == ["f"]
    assert raised.value.code == "damaged_output"


def test_strict_raises_for_what_is_no_call() -> None:
    scanner = TokenScanner(HARMONY, O200K, strict=True)
    ids = ids_of(cut(HARMONY, "<|channel|>commentary to=functions.f<|message|>no"), O200K)
    for token in ids[:-1]:
        scanner.feed(token)
    with pytest.raises(DamagedOutputError, match="the arguments are not a JSON object"):
        scanner.feed([ids[-1], CONTROL["<|call|>"]])
    other = TokenScanner(get_dialect("hermes"), byte_level(), strict=True)
    other.feed(list(b'<tool_call>{"name": "f"'))
    with pytest.raises(DamagedOutputError, match="cut short"):
        other.finish()


def test_strict_takes_what_is_right() -> None:
    output = "<|channel|>analysis<|message|>R.<|end|><|start|>assistant<|channel|>final<|message|>é🙂<|return|>"
    scanner = TokenScanner(HARMONY, O200K, strict=True)
    events = [event for token in ids_of(cut(HARMONY, output), O200K) for event in scanner.feed(token)]
    assert collect(events + scanner.finish()).text == "é🙂"
