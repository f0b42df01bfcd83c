"""A vocabulary: a table of tokens, and a function from text to ids. Every tokenizer that Isogloss makes is one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from types import MappingProxyType
from typing import Any

from isogloss.errors import TokenizerError

END_TOKEN_NAMES = frozenset(
    {
        "</s>",
        "<EOT>",
        "<end_of_turn>",
        "<end_of_utterance>",
        "<eos>",
        "<turn|>",
        "<|END_OF_TURN_TOKEN|>",
        "<|call|>",
        "<|calls|>",
        "<|end_of_text|>",
        "<|end|>",
        "<|endoftext|>",
        "<|eom_id|>",
        "<|eos|>",
        "<|eot_id|>",
        "<|flush|>",
        "<|im_end|>",
        "<|return|>",
        "<｜end▁of▁sentence｜>",
        "[EOS]",
        "[EOT]",
        "[e~[",
        "_<EOT>",
    }
)
"""Control tokens that end a turn by their name. Names that mean something else in some vocabularies (``<|user|>``)
must come from the model's own files or from the caller."""


def end_tokens_by_name(special_tokens: Mapping[str, int]) -> list[int]:
    """The control tokens that end a turn. ``<|end|>`` ends but a message where ``<|call|>`` or ``<|calls|>`` exists."""
    names = END_TOKEN_NAMES
    if not special_tokens.keys().isdisjoint({"<|call|>", "<|calls|>"}):
        names = names - {"<|end|>"}
    return [token for text, token in special_tokens.items() if text in names]


class Vocabulary:
    """A `Tokenizer` over ``tokens`` (bytes by id), where ``encode_text`` yields the ids of ordinary text.

    ``encode_text`` never yields an id of ``special_tokens``, and may raise `UnicodeEncodeError` on a lone surrogate.
    """

    def __init__(
        self,
        name: str,
        tokens: Sequence[bytes],
        special_tokens: Mapping[str, int],
        encode_text: Callable[[str], list[int]],
        *,
        end_tokens: Iterable[int] | None = None,
        vocabulary_size: int | None = None,
    ) -> None:
        """``end_tokens`` defaults to `end_tokens_by_name`, ``vocabulary_size`` to the number of tokens."""
        self.name = name
        self.vocabulary_size = len(tokens) if vocabulary_size is None else vocabulary_size
        self.special_tokens: Mapping[str, int] = MappingProxyType(dict(special_tokens))
        if end_tokens is None:
            end_tokens = end_tokens_by_name(special_tokens)
        self.end_tokens = frozenset(end_tokens)
        self._tokens = [*tokens, *[b""] * (self.vocabulary_size - len(tokens))]
        self._encode_text = encode_text
        self._llguidance: Any = None
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"<Tokenizer {self.name!r}, {self.vocabulary_size} tokens, {len(self.special_tokens)} of them special>"

    def encode(self, text: str) -> list[int]:
        """Ids of ``text`` as ordinary text: never a control token, whatever it spells. A lone surrogate is U+FFFD."""
        try:
            return self._encode_text(text)
        except UnicodeEncodeError:
            return self._encode_text(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ``ids``; bytes that are no UTF-8 become U+FFFD. Raises `TokenizerError` for an unknown id."""
        tokens = self._tokens
        try:
            if len(ids) and min(ids) >= 0:
                return b"".join([tokens[token] for token in ids]).decode("utf-8", "replace")
        except IndexError:
            pass
        return b"".join([self.token_bytes(token) for token in ids]).decode("utf-8", "replace")

    def token_bytes(self, token: int) -> bytes:
        """The bytes of one token; of a control token, its spelling; of an id that no token has, nothing.
        Raises `TokenizerError` outside the vocabulary."""
        if not 0 <= token < len(self._tokens):
            raise TokenizerError(
                f"Expected a token id from 0 to {len(self._tokens) - 1}, got {token} (vocabulary `{self.name}`)"
            )
        return self._tokens[token]

    def llguidance(self) -> Any:
        """The ``llguidance.LLTokenizer`` of this vocabulary, built once. Raises `TokenizerError` where no end token is
        known, because then no grammar could ever end."""
        with self._lock:
            if self._llguidance is None:
                self._llguidance = self._build_llguidance()
        return self._llguidance

    def _build_llguidance(self) -> Any:
        from llguidance import LLTokenizer, TokenizerWrapper

        size = self.vocabulary_size
        end_tokens = sorted(token for token in self.end_tokens if token < size)
        if not end_tokens:
            raise TokenizerError(f"Vocabulary `{self.name}` has no known end token: pass `end_tokens`")
        table = _Table(
            self._tokens[:size],
            [token for token in self.special_tokens.values() if token < size],
            end_tokens[0],
            self.encode,
        )
        return LLTokenizer(TokenizerWrapper(table), n_vocab=size, eos_token=end_tokens)


class _Table:
    """The attributes that ``TokenizerWrapper`` reads off a vocabulary; it calls it on text that a grammar forces."""

    bos_token_id: int | None = None

    def __init__(
        self,
        tokens: list[bytes],
        special_token_ids: list[int],
        eos_token_id: int,
        encode: Callable[[str], list[int]],
    ) -> None:
        self.tokens = tokens
        self.special_token_ids = special_token_ids
        self.eos_token_id = eos_token_id
        self._encode = encode

    def __call__(self, text: str) -> list[int]:
        return self._encode(text)
