"""The vocabulary of gpt-oss as tables by id, filled as they are asked."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from functools import cache
from operator import index
from typing import SupportsIndex

from isogloss.errors import TokenizerError
from isogloss.tokenizers import Tokenizer, o200k_harmony

END_OF_TEXT = 199999
RETURN, CONSTRAIN, CHANNEL, START, END, MESSAGE, CALL = 200002, 200003, 200005, 200006, 200007, 200008, 200012
STOPS = frozenset({RETURN, END, CALL})
FRAME = STOPS | {CONSTRAIN, CHANNEL, START, MESSAGE, END_OF_TEXT}
"""All that frames messages: what a message's text holds only where something is missing."""

LARGEST_ID = 2**32 - 1


class TokenBytes(dict[int, bytes]):
    """The bytes of each token. Raises `KeyError` for an id that no token has, `TypeError` and `OverflowError` for what
    cannot be an id."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__()
        self._token_bytes = tokenizer.token_bytes

    def __missing__(self, token: int) -> bytes:
        try:
            data = self._token_bytes(checked_id(token))
        except TokenizerError:
            raise KeyError(token) from None
        self[token] = data
        return data


class TokenTexts(dict[int, str | None]):
    """What each token says inside a message; ``None`` for one of ``ends``, one that is no whole text by itself and one
    outside the vocabulary. Raises `TypeError` and `OverflowError` for what cannot be an id."""

    def __init__(self, token_bytes: TokenBytes, ends: frozenset[int]) -> None:
        super().__init__()
        self._token_bytes = token_bytes
        self.ends = ends

    def __missing__(self, token: int) -> str | None:
        token = checked_id(token, "token")
        text = None
        try:
            data = self._token_bytes[token]
        except KeyError:
            return None
        if token not in self.ends:
            try:
                text = data.decode()
            except UnicodeDecodeError:
                text = None
        self[token] = text
        return text


class Vocabulary:
    """The tables of one vocabulary."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.bytes = TokenBytes(tokenizer)
        self.texts = TokenTexts(self.bytes, STOPS)
        self.unframed_texts = TokenTexts(self.bytes, FRAME)
        self.special_ids = frozenset(tokenizer.special_tokens.values())


@cache
def harmony_vocabulary() -> Vocabulary:
    """The one vocabulary there is, loaded at the first call."""
    return Vocabulary(o200k_harmony())


def checked_id(token: SupportsIndex, argument: str = "tokens") -> int:
    """An id as an unsigned 32-bit number. Raises `TypeError` and `OverflowError` in the words of the package."""
    try:
        number = index(token)
    except TypeError:
        name = type(token).__name__
        raise TypeError(f"argument '{argument}': '{name}' object cannot be interpreted as an integer") from None
    if not 0 <= number <= LARGEST_ID:
        raise OverflowError("out of range integral type conversion attempted")
    return number


def checked_ids(tokens: Iterable[int]) -> list[int]:
    """Many ids, likewise."""
    ids = list(tokens)
    try:
        return array("I", ids).tolist()
    except (TypeError, OverflowError):
        return [checked_id(token) for token in ids]
