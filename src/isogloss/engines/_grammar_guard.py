"""Follows an engine's output through the grammar that it was given.

An engine that cannot compile a grammar may drop it without a word and answer unconstrained. So every grammar is
compiled in process before it is sent, and every token that comes back is checked.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from isogloss.constraints.matcher import Matcher
from isogloss.errors import EngineError

if TYPE_CHECKING:
    from isogloss.tokenizers import Tokenizer


class Role(Enum):
    """What a token is to the grammar."""

    TEXT = "text"
    CONTROL = "control token"
    CLOSING = "closes a turn that was already complete, and is no part of it"


class GrammarGuard:
    """One generation's way through a grammar. Raises `GrammarError` when it does not compile.

    ``special_may_be_text``: to the engine some special tokens are text like any other, and where the grammar does not
    await one it counts as the text that it spells. ``is_binding=False``: the engine was given the same in another
    grammar language, which may allow more; what this grammar does not know it follows no further.
    """

    def __init__(
        self,
        grammar: str,
        tokenizer: Tokenizer,
        *,
        special_may_be_text: bool = False,
        is_binding: bool = True,
    ) -> None:
        self._matcher = Matcher(grammar, tokenizer)
        self._tokenizer = tokenizer
        self._special_may_be_text = special_may_be_text
        self._is_binding = is_binding
        self._is_lost = False
        self._special = {token: text for text, token in tokenizer.special_tokens.items()}

    @property
    def is_complete(self) -> bool:
        """Whether the output may end here."""
        return self._matcher.is_complete

    def take(self, token: int) -> Role:
        """Follow one token. Raises `EngineError` when the grammar does not allow it."""
        if self._is_lost:
            return Role.CONTROL if token in self._special else Role.TEXT
        was_complete = self.is_complete
        if was_complete and token in self._tokenizer.end_tokens:
            return Role.CLOSING
        spelling = self._special.get(token)
        if self._matcher.accept(token):
            return Role.TEXT if spelling is None else Role.CONTROL
        if spelling is not None and self._special_may_be_text:
            text = self._tokenizer.encode(spelling)
            if self._matcher.accept_all(text) == len(text):
                return Role.TEXT
        if not self._is_binding:
            self._is_lost = True
            return self.take(token)
        wrote = self._tokenizer.token_bytes(token).decode("utf-8", "replace")
        raise EngineError(f"The engine broke the grammar that it was given: it wrote {wrote!r}, not allowed there")
