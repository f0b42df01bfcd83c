"""Follows an engine's output through the grammar that it was given.

An engine that cannot compile a grammar may drop it without a word and answer unconstrained. So every grammar is
compiled in process before it is sent, and every token that comes back is checked.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from llguidance import LLMatcher

from isogloss.errors import EngineError, GrammarError

if TYPE_CHECKING:
    from isogloss.tokenizers import Tokenizer


class GrammarGuard:
    """One generation's way through a grammar. Raises `GrammarError` when it does not compile."""

    def __init__(self, grammar: str, tokenizer: Tokenizer) -> None:
        vocabulary = tokenizer.llguidance()
        self._matcher = _compile(grammar, vocabulary).deep_copy()
        self._tokenizer = tokenizer
        self._end_tokens = frozenset(vocabulary.eos_tokens)
        self._control = frozenset(tokenizer.special_tokens.values())

    @property
    def is_complete(self) -> bool:
        """Whether the output may end here."""
        return bool(self._matcher.is_accepting())

    def take(self, token: int) -> bool:
        """Follow one token; false when it only closes a turn that was already complete.

        Raises `EngineError` when the grammar does not allow it.
        """
        was_complete = self.is_complete
        if self._matcher.consume_token(token):
            return not (was_complete and token in self._end_tokens)
        if was_complete and token in self._control:
            return False
        text = self._tokenizer.token_bytes(token).decode("utf-8", "replace")
        raise EngineError(
            f"The engine broke the grammar that it was given: it wrote {text!r}, which is not allowed there"
        )


@lru_cache(maxsize=64)
def _compile(grammar: str, vocabulary: Any) -> LLMatcher:
    matcher = LLMatcher(vocabulary, grammar, log_level=0)
    if matcher.is_error():
        raise GrammarError(f"The grammar does not compile: {matcher.get_error()}")
    return matcher
