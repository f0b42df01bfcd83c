"""Follows an engine's output through the grammar that it was given.

An engine that cannot compile a grammar may drop it without a word and answer unconstrained. So every grammar is
compiled in process before it is sent, and every token that comes back is checked.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from isogloss.constraints.compilation import COMPILED_GRAMMARS
from isogloss.errors import EngineError

if TYPE_CHECKING:
    from isogloss.tokenizers import Tokenizer


class Role(Enum):
    """What a token is to the grammar."""

    TEXT = "text"
    CONTROL = "control token"
    CLOSING = "closes a turn that was already complete, and is no part of it"


class GrammarGuard:
    """One generation's way through a grammar. Raises `GrammarError` when it does not compile."""

    def __init__(self, grammar: str, tokenizer: Tokenizer) -> None:
        self._matcher = COMPILED_GRAMMARS.get(grammar, tokenizer).deep_copy()
        self._tokenizer = tokenizer
        self._end_tokens = frozenset(tokenizer.llguidance().eos_tokens)
        self._special = {token: text for text, token in tokenizer.special_tokens.items()}

    @property
    def is_complete(self) -> bool:
        """Whether the output may end here."""
        return bool(self._matcher.is_accepting())

    def take(self, token: int) -> Role:
        """Follow one token. Raises `EngineError` when the grammar does not allow it.

        A special token counts as the text that it spells where the grammar allows only that.
        """
        spelling = self._special.get(token)
        if spelling is None:
            if self._matcher.try_consume_tokens([token]) == 1:
                return Role.TEXT
            raise self._broken(self._tokenizer.token_bytes(token).decode("utf-8", "replace"))
        was_complete = self.is_complete
        before = self._matcher.deep_copy()
        if self._matcher.consume_token(token):
            return Role.CLOSING if was_complete and token in self._end_tokens else Role.CONTROL
        self._matcher = before  # a token that is refused leaves the matcher broken
        if was_complete:
            return Role.CLOSING
        ids = self._tokenizer.encode(spelling)
        if self._matcher.try_consume_tokens(ids) == len(ids):
            return Role.TEXT
        raise self._broken(spelling)

    def _broken(self, text: str) -> EngineError:
        return EngineError(f"The engine broke the grammar that it was given: it wrote {text!r}, not allowed there")
