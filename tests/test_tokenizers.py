"""Tokenizers: ordinary text never becomes a control token, ids and text agree, and no text makes them slow."""

from __future__ import annotations

import base64
import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss import tokenizers
from isogloss.errors import TokenizerError
from isogloss.tokenizers import Tokenizer
from isogloss.tokenizers._o200k import LONG_RUN_OF_BLANKS, ordinary_tokens

CONTROL_SPELLINGS = [
    "<|call|>",
    "<|start|>",
    "<|endoftext|>",
    "<|reserved_200018|>",
    "<|im_end|>",
    "<tool_call>",
    "</s>",
]


@pytest.fixture(scope="module")
def o200k() -> Tokenizer:
    return tokenizers.o200k_harmony()


def test_the_packed_vocabulary_is_the_published_one() -> None:
    lines = b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(ordinary_tokens()))
    assert hashlib.sha256(lines).hexdigest() == "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"


def test_harmony_names_every_control_token(o200k: Tokenizer) -> None:
    special = o200k.special_tokens
    assert len(special) == 1091
    assert sorted(special.values()) == list(range(199_998, 201_089))
    assert special["<|startoftext|>"] == 199_998
    assert special["<|return|>"] == 200_002
    assert special["<|constrain|>"] == 200_003
    assert special["<|reserved_200004|>"] == 200_004
    assert special["<|channel|>"] == 200_005
    assert special["<|message|>"] == 200_008
    assert special["<|call|>"] == 200_012
    assert special["<|reserved_200018|>"] == 200_018
    assert special["<|reserved_201088|>"] == 201_088
    assert "<|endofprompt|>" not in special
    assert o200k.end_tokens == {special["<|return|>"], special["<|call|>"], special["<|endoftext|>"]}
    assert o200k.vocabulary_size == 201_088


def test_o200k_encodes_as_published(o200k: Tokenizer) -> None:
    assert o200k.encode("assistant") == [173_781]
    assert o200k.encode("commentary") == [12_606, 815]
    assert o200k.decode([200_006, 173_781, 200_005]) == "<|start|>assistant<|channel|>"
    assert o200k.token_bytes(200_012) == b"<|call|>"


def test_o200k_is_loaded_once(o200k: Tokenizer) -> None:
    assert tokenizers.o200k_harmony() is o200k
    assert o200k.llguidance() is o200k.llguidance()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(CONTROL_SPELLINGS) | st.text(max_size=8)).map("".join))
def test_ordinary_text_never_becomes_a_control_token(text: str) -> None:
    for tokenizer in (tokenizers.o200k_harmony(), tokenizers.byte_level(CONTROL_SPELLINGS)):
        ids = tokenizer.encode(text)
        assert not set(ids) & set(tokenizer.special_tokens.values())
        assert tokenizer.decode(ids) == text
        assert b"".join(map(tokenizer.token_bytes, ids)) == text.encode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\ud800", "\ufffd"),
        ("a\udfffb\ud800", "a\ufffdb\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
    ],
)
def test_lone_surrogates_become_the_replacement_character(text: str, expected: str, o200k: Tokenizer) -> None:
    for tokenizer in (o200k, tokenizers.byte_level()):
        assert tokenizer.decode(tokenizer.encode(text)) == expected


@pytest.mark.parametrize("character", ["a", " ", "\n", "!", "\u00e9", "\u3000"])
def test_a_megabyte_of_one_character(character: str, o200k: Tokenizer) -> None:
    text = character * 1_000_000
    assert o200k.decode(o200k.encode(text)) == text


@pytest.mark.parametrize("length", [LONG_RUN_OF_BLANKS - 1, LONG_RUN_OF_BLANKS, 5 * LONG_RUN_OF_BLANKS + 7])
def test_long_runs_of_blanks_keep_their_neighbours(length: int, o200k: Tokenizer) -> None:
    text = "before\n" + " " * length + "after" + "\t" * length
    ids = o200k.encode(text)
    assert o200k.decode(ids) == text
    assert ids[:2] == o200k.encode("before\n")


@pytest.mark.parametrize("token", [-1, 201_089])
def test_ids_outside_the_vocabulary(token: int, o200k: Tokenizer) -> None:
    with pytest.raises(TokenizerError, match=f"got {token}"):
        o200k.token_bytes(token)
    with pytest.raises(TokenizerError, match=f"got {token}"):
        o200k.decode([token])


def test_decoding_bytes_that_are_no_text(o200k: Tokenizer) -> None:
    assert o200k.decode([]) == ""
    assert o200k.decode(o200k.encode("\U0001f985")[:1]).endswith("\ufffd")


def test_byte_level_vocabulary() -> None:
    tokenizer = tokenizers.byte_level(["<|im_start|>", "<|im_end|>"])
    assert tokenizer.encode("<|im_end|>é") == list("<|im_end|>é".encode())
    assert dict(tokenizer.special_tokens) == {"<|im_start|>": 256, "<|im_end|>": 257, "<|endoftext|>": 258}
    assert tokenizer.end_tokens == {257, 258}
    assert tokenizer.vocabulary_size == 259
    assert tokenizer.decode([104, 105, 257]) == "hi<|im_end|>"


def test_llguidance_sees_the_same_vocabulary(o200k: Tokenizer) -> None:
    for tokenizer in (o200k, tokenizers.byte_level(["<|im_end|>"])):
        engine = tokenizer.llguidance()
        assert engine.vocab_size == tokenizer.vocabulary_size
        assert set(engine.eos_tokens) == tokenizer.end_tokens
        text = 'hi <|im_end|> <|call|> {"a": "é"}'
        assert engine.tokenize_str(text) == tokenizer.encode(text)
        assert all(engine.is_special_token(token) for token in tokenizer.end_tokens)
