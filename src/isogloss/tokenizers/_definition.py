"""A vocabulary from the definition of a byte-pair encoding, in the form of Hugging Face's ``tokenizer.json``.

The encoding itself is done by the reader of such definitions that llguidance has built in. It is handed the definition
without its control tokens, so that no text can ever become one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from isogloss.errors import TokenizerError
from isogloss.tokenizers._vocabulary import Vocabulary

LARGEST_VOCABULARY = 1 << 22

BLANK_MARK = "▁"
"""How vocabularies made with SentencePiece write a blank."""

_BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")


def byte_alphabet() -> dict[str, int]:
    """The character by which byte-level vocabularies write each byte: printable ones by themselves, the others by
    characters from U+0100 upwards."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in printable]
    return {
        **{chr(byte): byte for byte in printable},
        **{chr(0x100 + position): byte for position, byte in enumerate(others)},
    }


def is_marker(text: str) -> bool:
    """Whether an added token that its vocabulary does not call special looks like markup: ``<tool_call>``, ``[INST]``.

    Others (runs of blanks, words) are ordinary text that the vocabulary writes as one token.
    """
    return len(text) > 2 and text[0] in "<[]" and text[-1] in ">[]"


def define_vocabulary(
    name: str,
    definition: Mapping[str, Any],
    special_tokens: Mapping[str, int],
    *,
    is_byte_level: bool,
    prefix: str = "",
    end_tokens: Iterable[int] | None = None,
    vocabulary_size: int | None = None,
) -> Vocabulary:
    """The vocabulary of ``definition`` (the parsed JSON), of which ``special_tokens`` are control tokens.

    Tokens are written in the `byte_alphabet` or else as SentencePiece writes them; ``prefix`` is put before every text
    that is encoded. Raises `TokenizerError` for a definition that is no byte-pair encoding or that does not load.
    """
    model = definition["model"]
    if model.get("type", "BPE") != "BPE":
        raise TokenizerError(f"Expected a byte-pair encoding (`BPE`), got `{model['type']}` (vocabulary `{name}`)")
    ordinary = {text: token for text, token in model["vocab"].items() if text not in special_tokens}
    added = {
        entry["content"]: entry["id"]
        for entry in definition.get("added_tokens", ())
        if entry["content"] not in special_tokens
    }
    width = 1 + max([*ordinary.values(), *added.values(), *special_tokens.values()], default=-1)
    if width > LARGEST_VOCABULARY:
        raise TokenizerError(f"Expected token ids below {LARGEST_VOCABULARY}, got {width - 1} (vocabulary `{name}`)")
    merges = [
        (left, right)
        for left, right in (merge.split(" ", 1) if isinstance(merge, str) else merge for merge in model["merges"])
        if left + right in ordinary and left in ordinary and right in ordinary
    ]
    encode = _encoder(name, definition, _without_gaps(ordinary, added, width), merges, added)
    decode_token = _byte_level_bytes if is_byte_level else _sentencepiece_bytes
    by_id = {token: text.encode() for text, token in (*added.items(), *special_tokens.items())}
    by_id.update({token: decode_token(text) for text, token in ordinary.items()})
    return Vocabulary(
        name,
        [by_id.get(token, b"") for token in range(width)],
        special_tokens,
        (lambda text: encode(prefix + text) if text else []) if prefix else encode,
        end_tokens=end_tokens,
        vocabulary_size=max(width, vocabulary_size or 0),
    )


def _encoder(
    name: str,
    definition: Mapping[str, Any],
    vocabulary: dict[str, int],
    merges: list[tuple[str, str]],
    added: dict[str, int],
) -> Any:
    from llguidance import LLTokenizer

    model = definition["model"]
    unknown = model.get("unk_token")
    kept = {
        **definition,
        "normalizer": _without_unicode_forms(definition.get("normalizer")),
        "model": {
            **model,
            "vocab": vocabulary,
            "merges": merges,
            "unk_token": unknown if unknown in vocabulary else None,
        },
        "added_tokens": [entry for entry in definition.get("added_tokens", ()) if entry["content"] in added],
        "post_processor": None,
        "truncation": None,
        "padding": None,
    }
    # The end token is asked for because a grammar needs one; no grammar runs on this object.
    try:
        return LLTokenizer(msgspec.json.encode(kept).decode(), eos_token=0, slices=[]).tokenize_str
    except ValueError as error:
        raise TokenizerError(f"The definition of vocabulary `{name}` does not load: {error}") from error


def _without_unicode_forms(normalizer: Any) -> Any:
    """What is encoded must be what was said, in whichever of Unicode's forms it was written."""
    if not isinstance(normalizer, dict) or normalizer["type"] in {"NFC", "NFD", "NFKC", "NFKD"}:
        return None
    if normalizer["type"] == "Sequence":
        parts = [_without_unicode_forms(part) for part in normalizer["normalizers"]]
        return {**normalizer, "normalizers": [part for part in parts if part is not None]}
    return normalizer


def _without_gaps(ordinary: dict[str, int], added: dict[str, int], width: int) -> dict[str, int]:
    """The reader takes the number of tokens for the largest id. An entry that begins with a blank is never met: both
    ways to write tokens have another character for it."""
    taken = {*ordinary.values(), *added.values()}
    return {**ordinary, **{f" {token}": token for token in range(width) if token not in taken}}


_BYTES_BY_CHARACTER = byte_alphabet()


def _byte_level_bytes(text: str) -> bytes:
    try:
        return bytes([_BYTES_BY_CHARACTER[character] for character in text])
    except KeyError:
        return text.encode()


def _sentencepiece_bytes(text: str) -> bytes:
    match = _BYTE_TOKEN.fullmatch(text)
    return bytes.fromhex(match[1]) if match else text.replace(BLANK_MARK, " ").encode()
