"""What Isogloss needs of a vocabulary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Tokenizer(Protocol):
    """What Isogloss needs of a vocabulary."""

    name: str
    vocabulary_size: int
    """The width of the model's logits, which may be more than there are tokens. Masks have this many bits."""
    special_tokens: Mapping[str, int]
    """Control tokens by their spelling."""
    end_tokens: frozenset[int]
    """Ids that end a turn."""

    def encode(self, text: str) -> list[int]:
        """Ids of ``text`` as ordinary text: never a control token, whatever it spells. A lone surrogate is U+FFFD."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ``ids``; bytes that are no UTF-8 become U+FFFD. Raises `TokenizerError` for an unknown id."""
        ...

    def token_bytes(self, token: int) -> bytes:
        """The bytes of one token; of a control token, its spelling; of an id that no token has, nothing.
        Raises `TokenizerError` outside the vocabulary."""
        ...

    def llguidance(self) -> Any:
        """The ``llguidance.LLTokenizer`` of this vocabulary, built once."""
        ...
