"""A vocabulary from a GGUF file: byte-pair encodings over bytes (``gpt2``), over characters with merges (``gemma4``)
or with scores (``llama``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any

from isogloss.errors import TokenizerError
from isogloss.tokenizers._definition import BLANK_MARK, define_vocabulary, is_marker
from isogloss.tokenizers._pre_tokenizers import PRE_TOKENIZERS
from isogloss.tokenizers._vocabulary import Vocabulary, end_tokens_by_name
from isogloss.tokenizers.gguf_metadata import read_metadata

UNKNOWN = 2
CONTROL = 3
USER_DEFINED = 4
BYTE = 6
"""Kinds of token, by their numbers in ``tokenizer.ggml.token_type``."""

_lock = Lock()


def from_gguf(path: str | PathLike[str]) -> Vocabulary:
    """The vocabulary of a GGUF file; it encodes as llama.cpp does with ``parse_special`` off. Loaded once a file.

    Special tokens are the control tokens and the user-defined ones that look like markup (see `is_marker`), which
    llama.cpp would make of any text that spells them. Raises `TokenizerError` for a file that cannot be read, and for
    a kind of vocabulary or a way to cut words that is not known.
    """
    path = Path(path)
    try:
        state = path.stat()
    except OSError as error:
        raise TokenizerError(f"Cannot read `{path}`: {error.strerror}") from error
    with _lock:
        return _load(path.resolve(), state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=8)
def _load(path: Path, modified: int, size: int) -> Vocabulary:
    metadata = read_metadata(path)
    try:
        return _vocabulary(metadata, path.stem)
    except KeyError as error:
        raise TokenizerError(f"`{path}` holds no whole vocabulary: it says nothing of `{error.args[0]}`") from error
    except (IndexError, TypeError, ValueError, AttributeError) as error:
        raise TokenizerError(f"`{path}` holds no whole vocabulary: {type(error).__name__} {error}") from error


def special_tokens_of(metadata: Mapping[str, Any]) -> dict[str, int]:
    """The ids of the special tokens by their spellings; see `from_gguf` for which they are."""
    ends = _ends(metadata)
    return {
        text: token
        for token, (text, kind) in enumerate(zip(metadata["tokenizer.ggml.tokens"], _kinds(metadata), strict=True))
        if kind in (UNKNOWN, CONTROL) or token in ends or (kind == USER_DEFINED and is_marker(text))
    }


def _kinds(metadata: Mapping[str, Any]) -> list[int]:
    """The kind of each token."""
    return metadata.get("tokenizer.ggml.token_type") or [1] * len(metadata["tokenizer.ggml.tokens"])


def _ends(metadata: Mapping[str, Any]) -> set[Any]:
    """The ids that the file names as ends of a turn or a text."""
    return {metadata.get(f"tokenizer.ggml.{role}_token_id") for role in ("eos", "eot", "eom")}


def _vocabulary(metadata: Mapping[str, Any], name: str) -> Vocabulary:
    tokens: list[str] = metadata["tokenizer.ggml.tokens"]
    kinds = _kinds(metadata)
    special_tokens = special_tokens_of(metadata)
    declared = {text: token for text, token in special_tokens.items() if kinds[token] != USER_DEFINED}
    end_tokens = {*end_tokens_by_name(declared), *_ends(metadata).intersection(special_tokens.values())}
    model = metadata["tokenizer.ggml.model"]
    prefix = ""
    if model == "gpt2":
        definition = _byte_level(metadata, tokens)
    elif model == "gemma4":
        definition = _sentencepiece(tokens, metadata["tokenizer.ggml.merges"])
        definition["pre_tokenizer"] = _cut_by("[^\\n]+|\\n+")
    elif model == "llama":
        definition = _sentencepiece(tokens, _merges_by_score(metadata, tokens, kinds, special_tokens))
        prefix = " " if metadata.get("tokenizer.ggml.add_space_prefix", True) else ""
    else:
        raise TokenizerError(f"Expected a vocabulary of the kind `gpt2`, `gemma4` or `llama`, got `{model}`")
    definition["added_tokens"] = [
        {"id": token, "content": tokens[token], "special": False, "normalized": False}
        | dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
        for token, kind in enumerate(kinds)
        if (kind == USER_DEFINED and tokens[token] not in special_tokens)
        or (model == "gemma4" and tokens[token].strip("\n") == "")  # no merges make them
    ]
    return define_vocabulary(
        str(metadata.get("general.name") or name),
        definition,
        special_tokens,
        is_byte_level=model == "gpt2",
        prefix=prefix,
        end_tokens=end_tokens,
        vocabulary_size=len(tokens),
    )


def _byte_level(metadata: Mapping[str, Any], tokens: list[str]) -> dict[str, Any]:
    name = metadata.get("tokenizer.ggml.pre") or "default"
    try:
        pre_tokenizer = PRE_TOKENIZERS[name]
    except KeyError:
        known = ", ".join(f"`{known}`" for known in sorted(PRE_TOKENIZERS))
        raise TokenizerError(f"The vocabulary cuts words by `{name}`, which is not known; known are {known}") from None
    cuts = map(_cut_by, pre_tokenizer.patterns)
    bytes_to_characters = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    return {
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*cuts, bytes_to_characters]},
        "decoder": bytes_to_characters,
        "model": {
            "type": "BPE",
            "vocab": {text: token for token, text in enumerate(tokens)},
            "merges": metadata["tokenizer.ggml.merges"],
            "ignore_merges": pre_tokenizer.takes_whole_words,
        },
    }


def _cut_by(pattern: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def _sentencepiece(tokens: list[str], merges: Iterable[str | tuple[str, str]]) -> dict[str, Any]:
    return {
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": BLANK_MARK},
        "pre_tokenizer": None,
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": BLANK_MARK}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
            ],
        },
        "model": {
            "type": "BPE",
            "vocab": {text: token for token, text in enumerate(tokens)},
            "merges": merges,
            "byte_fallback": True,
        },
    }


def _merges_by_score(
    metadata: Mapping[str, Any], tokens: list[str], kinds: list[int], special_tokens: Mapping[str, int]
) -> list[tuple[str, str]]:
    """The merges that SentencePiece has no list of: it joins any two pieces that make a token, the best score first."""
    ordinary = {
        text for text, kind in zip(tokens, kinds, strict=True) if kind != BYTE and text and text not in special_tokens
    }
    scores = metadata["tokenizer.ggml.scores"]
    by_score = sorted((-score, text) for score, text in zip(scores, tokens, strict=True) if text in ordinary)
    return [
        (text[:cut], text[cut:])
        for _, text in by_score
        for cut in range(1, len(text))
        if text[:cut] in ordinary and text[cut:] in ordinary
    ]
