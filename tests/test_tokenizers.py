"""Tokenizers: ordinary text never becomes a control token, ids and text agree, and no text makes them slow."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss import tokenizers
from isogloss.errors import TokenizerError
from isogloss.tokenizers import Tokenizer
from isogloss.tokenizers._definition import byte_alphabet
from isogloss.tokenizers._o200k import LONG_RUN_OF_BLANKS, ordinary_tokens
from isogloss.tokenizers._pre_tokenizers import PRE_TOKENIZERS

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


# tokenizer.json

ALPHABET = {byte: character for character, byte in byte_alphabet().items()}


def in_alphabet(text: str) -> str:
    return "".join(ALPHABET[byte] for byte in text.encode())


def byte_level_model(*words: str) -> dict[str, Any]:
    """A byte-pair encoding that builds each word from the left, one byte at a time."""
    vocabulary = {ALPHABET[byte]: byte for byte in range(256)}
    merges = []
    for word in map(in_alphabet, words):
        for cut in range(1, len(word)):
            if word[: cut + 1] not in vocabulary:
                vocabulary[word[: cut + 1]] = len(vocabulary)
                merges.append([word[:cut], word[cut]])
    return {"type": "BPE", "vocab": vocabulary, "merges": merges}


def added(token: int, content: str, *, special: bool) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": token, "content": content, "special": special, **flags}


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}


@pytest.fixture
def tokenizer_json(tmp_path: Path) -> Path:
    model = byte_level_model("</s>", " hello", "hello")
    token = len(model["vocab"])
    definition = {
        "version": "1.0",
        "added_tokens": [
            added(model["vocab"]["</s>"], "</s>", special=True),
            added(token, "<|im_end|>", special=True),
            added(token + 1, "<tool_call>", special=False),
            added(token + 2, "\t\t\t", special=False),
        ],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": BYTE_LEVEL,
        "decoder": BYTE_LEVEL,
        "model": model,
    }
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(definition))
    return path


def test_tokenizer_json(tokenizer_json: Path) -> None:
    tokenizer = tokenizers.from_tokenizer_json(tokenizer_json)
    assert set(tokenizer.special_tokens) == {"</s>", "<|im_end|>", "<tool_call>"}
    assert tokenizer.end_tokens == {tokenizer.special_tokens["</s>"], tokenizer.special_tokens["<|im_end|>"]}
    assert [tokenizer.token_bytes(token) for token in tokenizer.encode("hello hello")] == [b"hello", b" hello"]
    assert tokenizer.token_bytes(tokenizer.special_tokens["<tool_call>"]) == b"<tool_call>"


@pytest.mark.parametrize("text", ["</s>", "a<tool_call>b", "<|im_end|>", "hello </s><|im_end|>"])
def test_tokenizer_json_makes_no_control_token_of_text(text: str, tokenizer_json: Path) -> None:
    tokenizer = tokenizers.from_tokenizer_json(tokenizer_json)
    ids = tokenizer.encode(text)
    assert not set(ids) & set(tokenizer.special_tokens.values())
    assert tokenizer.decode(ids) == text


def test_tokenizer_json_keeps_added_tokens_that_are_ordinary_text(tokenizer_json: Path) -> None:
    tokenizer = tokenizers.from_tokenizer_json(tokenizer_json)
    assert [tokenizer.token_bytes(token) for token in tokenizer.encode("a\t\t\tb")] == [b"a", b"\t\t\t", b"b"]


def test_tokenizer_json_does_not_normalise(tokenizer_json: Path) -> None:
    tokenizer = tokenizers.from_tokenizer_json(tokenizer_json)
    assert tokenizer.decode(tokenizer.encode("e\u0301")) == "e\u0301"
    assert tokenizer.decode(tokenizer.encode("a\ud800")) == "a\ufffd"


def test_tokenizer_json_reads_the_files_beside_it(tokenizer_json: Path) -> None:
    folder = tokenizer_json.parent
    folder.joinpath("config.json").write_text('{"text_config": {"vocab_size": 512}}')
    folder.joinpath("generation_config.json").write_text('{"eos_token_id": [65, 66]}')
    folder.joinpath("tokenizer_config.json").write_text('{"eos_token": {"content": "<tool_call>"}}')
    tokenizer = tokenizers.from_tokenizer_json(folder)
    assert tokenizer.vocabulary_size == 512
    assert tokenizer.token_bytes(511) == b""
    assert tokenizer.end_tokens == {65, 66, *tokenizer.special_tokens.values()}
    assert tokenizer.llguidance().vocab_size == 512


def test_tokenizer_json_takes_the_callers_word(tokenizer_json: Path) -> None:
    tokenizer = tokenizers.from_tokenizer_json(tokenizer_json, end_tokens=[3], vocabulary_size=400)
    assert tokenizer.end_tokens == {3}
    assert tokenizer.vocabulary_size == 400
    with pytest.raises(TokenizerError, match="pass `end_tokens`"):
        tokenizers.from_tokenizer_json(tokenizer_json, end_tokens=[]).llguidance()


def test_tokenizer_json_is_loaded_once_a_version(tokenizer_json: Path) -> None:
    first = tokenizers.from_tokenizer_json(tokenizer_json)
    assert tokenizers.from_tokenizer_json(str(tokenizer_json)) is first
    tokenizer_json.write_text(tokenizer_json.read_text().replace("<tool_call>", "<tool_calls>"))
    assert "<tool_calls>" in tokenizers.from_tokenizer_json(tokenizer_json).special_tokens


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "Expected `object`"),
        ("{", "Expected a JSON object in .*truncated"),
        ("{}", "is no `tokenizer.json`: .*`model`"),
        ('{"model": {"type": "Unigram", "vocab": []}}', "got `Unigram`"),
        ('{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [], "x": 1}, "decoder": 3}', "does not load"),
    ],
)
def test_files_that_are_no_tokenizer_json(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    with pytest.raises(TokenizerError, match=message):
        tokenizers.from_tokenizer_json(path)
    with pytest.raises(TokenizerError, match="No such file"):
        tokenizers.from_tokenizer_json(tmp_path / "absent.json")


# GGUF


def gguf_string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def gguf_value(value: Any) -> bytes:
    match value:
        case bool():
            return struct.pack("<I?", 7, value)
        case int():
            return struct.pack("<II", 4, value)
        case str():
            return struct.pack("<I", 8) + gguf_string(value)
        case [str(), *_]:
            return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(gguf_string, value))
        case [float(), *_]:
            return struct.pack(f"<IIQ{len(value)}f", 9, 6, len(value), *value)
    return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)


def write_gguf(path: Path, **metadata: Any) -> Path:
    entries = {f"tokenizer.ggml.{key}": value for key, value in metadata.items()} | {"general.name": "tiny"}
    data = struct.pack("<4sIQQ", b"GGUF", 3, 0, len(entries))
    path.write_bytes(data + b"".join(gguf_string(key) + gguf_value(value) for key, value in entries.items()))
    return path


def byte_level_gguf(path: Path, pre: str) -> Path:
    model = byte_level_model("</s>", " hello", "hello", "12")
    tokens = [*model["vocab"], "<|im_end|>", "<tool_call>", "\t\t\t"]
    kinds = [1] * len(model["vocab"]) + [3, 4, 4]
    return write_gguf(
        path,
        model="gpt2",
        pre=pre,
        tokens=tokens,
        token_type=kinds,
        merges=[" ".join(merge) for merge in model["merges"]],
        eos_token_id=tokens.index("<|im_end|>"),
    )


def pieces(tokenizer: Tokenizer, text: str) -> list[bytes]:
    return [tokenizer.token_bytes(token) for token in tokenizer.encode(text)]


def test_gguf(tmp_path: Path) -> None:
    tokenizer = tokenizers.from_gguf(byte_level_gguf(tmp_path / "model.gguf", "qwen2"))
    assert tokenizer.name == "tiny"
    assert list(tokenizer.special_tokens) == ["<|im_end|>", "<tool_call>"]
    assert tokenizer.end_tokens == {tokenizer.special_tokens["<|im_end|>"]}
    assert pieces(tokenizer, "hello hello\t\t\t") == [b"hello", b" hello", b"\t\t\t"]
    assert b"<tool_call>" not in pieces(tokenizer, "<tool_call>")
    assert tokenizer.llguidance().vocab_size == tokenizer.vocabulary_size


@pytest.mark.parametrize(("pre", "expected"), [("llama-bpe", [b"12"]), ("smollm", [b"1", b"2"]), ("default", [b"12"])])
def test_gguf_names_how_words_are_cut(pre: str, expected: list[bytes], tmp_path: Path) -> None:
    assert pieces(tokenizers.from_gguf(byte_level_gguf(tmp_path / "model.gguf", pre)), "12") == expected


@pytest.mark.parametrize("pre", PRE_TOKENIZERS)
def test_every_way_to_cut_words_loads_and_loses_nothing(pre: str, tmp_path: Path) -> None:
    tokenizer = tokenizers.from_gguf(byte_level_gguf(tmp_path / "model.gguf", pre))
    text = "It's HTML\u00c9lan,  12345\r\n\n\u4f60\u597d \u65e5\u672c \u0928\u092e\u0938 <tool_call>\U0001f600 "
    assert tokenizer.decode(tokenizer.encode(text)) == text


def sentencepiece_gguf(path: Path, **more: Any) -> Path:
    pieces_and_kinds = [("<unk>", 2), ("<s>", 3), ("</s>", 3)]
    pieces_and_kinds += [(f"<0x{byte:02X}>", 6) for byte in range(256)]
    words = ("ab", "abc", "bc", "\u2581a", "\u2581", "a", "b", "c", "<", "/s", "/", "s", ">")
    pieces_and_kinds += [(text, 1) for text in words]
    tokens = [text for text, _ in pieces_and_kinds]
    scores = [0.0] * 259 + [-float(rank) for rank in range(len(tokens) - 259)]
    kinds = [kind for _, kind in pieces_and_kinds]
    return write_gguf(path, model="llama", tokens=tokens, token_type=kinds, scores=scores, eos_token_id=2, **more)


def test_sentencepiece_gguf(tmp_path: Path) -> None:
    tokenizer = tokenizers.from_gguf(sentencepiece_gguf(tmp_path / "model.gguf", add_space_prefix=False))
    assert pieces(tokenizer, "abc a") == [b"abc", b" a"]
    assert pieces(tokenizer, "\u00e9") == [b"\xc3", b"\xa9"]
    assert pieces(tokenizer, "</s>") == [b"<", b"/s", b">"]
    assert tokenizer.end_tokens == {2}


def test_sentencepiece_gguf_puts_a_blank_before_a_text(tmp_path: Path) -> None:
    tokenizer = tokenizers.from_gguf(sentencepiece_gguf(tmp_path / "model.gguf"))
    assert pieces(tokenizer, "a") == [b" a"]
    assert tokenizer.encode("") == []


def test_gguf_with_merges_over_characters(tmp_path: Path) -> None:
    tokens = ["<eos>", "<0xC3>", "<0xA9>", "a", "b", "\u2581", "\u2581a", "ab", "\n", "\n\n", "</s>"]
    path = write_gguf(
        tmp_path / "model.gguf",
        model="gemma4",
        tokens=tokens,
        token_type=[3, 6, 6, 1, 1, 1, 1, 1, 1, 1, 4],
        merges=["\u2581 a", "a b"],
        eos_token_id=0,
    )
    tokenizer = tokenizers.from_gguf(path)
    assert pieces(tokenizer, "ab ab\n\n\u00e9") == [b"ab", b" a", b"b", b"\n\n", b"\xc3", b"\xa9"]
    assert tokenizer.end_tokens == {0}  # to this vocabulary `</s>` is a tag like any other
    assert dict(tokenizer.special_tokens) == {"<eos>": 0, "</s>": 10}


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({}, "says nothing of `tokenizer.ggml.tokens`"),
        ({"tokens": ["a"], "model": "bert"}, "`gemma4` or `llama`, got `bert`"),
        ({"tokens": ["a"], "model": "gpt2", "pre": "unheard-of", "merges": ["a b"]}, "by `unheard-of`.*`smollm`"),
        ({"tokens": ["a"], "model": "llama"}, "says nothing of `tokenizer.ggml.scores`"),
        ({"tokens": ["a"], "token_type": [1, 1], "model": "gpt2"}, "holds no whole vocabulary"),
    ],
)
def test_gguf_vocabularies_that_cannot_be_taken(metadata: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match=message):
        tokenizers.from_gguf(write_gguf(tmp_path / "model.gguf", **metadata))


def test_broken_gguf_files(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    whole = byte_level_gguf(path, "qwen2").read_bytes()
    one_key = struct.pack("<4sIQQ", b"GGUF", 3, 0, 1) + gguf_string("k")
    for broken, message in [
        (b"", "Cannot read"),
        (b"GGML" + whole[4:], "four letters"),
        (whole[:4] + struct.pack(">I", 3) + whole[8:], "little-endian"),
        (whole[:100], "ends within|requires a buffer"),
        (one_key + struct.pack("<I", 99), "unknown type of value 99"),
        (one_key + struct.pack("<IIQ", 9, 8, 1 << 60), "a list claims"),
    ]:
        path.write_bytes(broken)
        with pytest.raises(TokenizerError, match=message):
            tokenizers.from_gguf(path)
    with pytest.raises(TokenizerError, match="No such file"):
        tokenizers.from_gguf(tmp_path / "absent.gguf")


def test_the_demo_models_vocabulary(demo_model_path: Path) -> None:
    """The ids are those that llama.cpp's own server gives for the same texts."""
    tokenizer = tokenizers.from_gguf(demo_model_path)
    special = tokenizer.special_tokens
    assert tokenizer.vocabulary_size == 49_152
    assert tokenizer.end_tokens == {special["<|im_end|>"], special["<|endoftext|>"]} == {2, 0}
    assert tokenizer.encode("What is the capital of France?") == [1780, 314, 260, 3575, 282, 4649, 47]
    assert tokenizer.encode("<|im_end|> d\u00e9j\u00e0 1234  \n") == [
        *(44, 108, 306, 79, 486, 108, 46, 32564, 90, 16739, 216, 33, 34, 35, 36, 32057)
    ]
    assert len(tokenizer.encode("a" * 1_000_000)) == 250_000
