"""Token ids as they come from an engine, turned into chunks whose text is exactly that of their ids."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import TYPE_CHECKING

from isogloss.engines._protocol import Chunk, TokenLogprob
from isogloss.errors import EngineError, TokenizerError
from isogloss.events import Piece

if TYPE_CHECKING:
    from isogloss.tokenizers import Tokenizer


class TokenText:
    """Decodes the tokens of one generation. A character that is split over tokens comes whole, with all their ids."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._control = {token: text for text, token in tokenizer.special_tokens.items()}
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text: list[str] = []
        self._ids: list[int] = []
        self._logprobs: list[TokenLogprob] = []

    def feed(self, token: int, logprob: TokenLogprob | None = None) -> Iterator[Chunk]:
        """The chunks that this token settles. Raises `EngineError` for an id outside the vocabulary."""
        spelling = self._control.get(token)
        if spelling is not None:
            yield from self.finish()
            yield Chunk((Piece(spelling, is_control=True),), (token,), () if logprob is None else (logprob,))
            return
        try:
            self._text.append(self._decoder.decode(self._tokenizer.token_bytes(token)))
        except TokenizerError as error:
            raise EngineError(f"The engine wrote a token that is not in its tokenizer: {error.message}") from error
        self._ids.append(token)
        if logprob is not None:
            self._logprobs.append(logprob)
        if not self._decoder.getstate()[0]:
            yield self._take()

    def finish(self) -> Iterator[Chunk]:
        """What is left of a character that was cut short."""
        if self._ids:
            self._text.append(self._decoder.decode(b"", True))
            self._decoder.reset()
            yield self._take()

    def _take(self) -> Chunk:
        text = "".join(self._text)
        chunk = Chunk((Piece(text),) if text else (), tuple(self._ids), tuple(self._logprobs))
        self._text.clear()
        self._ids.clear()
        self._logprobs.clear()
        return chunk
