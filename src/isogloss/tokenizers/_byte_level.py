"""The smallest real vocabulary: one token a byte."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from isogloss.tokenizers._vocabulary import Vocabulary

END = "<|endoftext|>"


def byte_level(special_tokens: Iterable[str] = (), *, ends_by_name: bool = True) -> Vocabulary:
    """256 tokens for the bytes, then ``special_tokens`` in the order given, then ``<|endoftext|>`` unless given.

    A grammar over it sees every byte by itself, which tells exactly where a text leaves the grammar; and its masks
    are tiny. It ends a turn with ``<|endoftext|>`` and, where ``ends_by_name``, with those of the given
    tokens that end turns elsewhere.
    """
    return _build(tuple(dict.fromkeys([*special_tokens, END])), ends_by_name)


@lru_cache(maxsize=64)
def _build(special_tokens: tuple[str, ...], ends_by_name: bool) -> Vocabulary:
    return Vocabulary(
        "bytes",
        [bytes([byte]) for byte in range(256)] + [text.encode() for text in special_tokens],
        {text: 256 + position for position, text in enumerate(special_tokens)},
        lambda text: list(text.encode()),
        end_tokens=None if ends_by_name else (256 + special_tokens.index(END),),
    )
