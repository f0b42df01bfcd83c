"""A matcher of one JSON value with guards: what a grammar cannot say of it is checked while it is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from isogloss.constraints.guarded_mask import GuardedMask, token_index
from isogloss.constraints.matcher import Matcher
from isogloss.errors import GrammarError, SchemaTooComplexError
from isogloss.schema.json_watch import JsonWatch, Violation

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from isogloss.schema.guards import Guards
    from isogloss.schema.lowering import Lowered
    from isogloss.tokenizers import Tokenizer


class GuardedMatcher(Matcher):
    """A `Matcher` whose masks lack every token by which a guarded value would close wrongly, so that none completes.

    Where the guards leave no token it `is_stuck`, and `violation` says which value cannot be closed and why;
    `rollback` leads back to where another choice is left.
    """

    def __init__(self, grammar: str, tokenizer: Tokenizer, guards: Guards) -> None:
        super().__init__(grammar, tokenizer)
        self._watch = JsonWatch(guards)

    def copy(self) -> GuardedMatcher:
        twin = super().copy()
        assert isinstance(twin, GuardedMatcher)
        twin._watch = self._watch.copy()
        return twin

    @property
    def violation(self) -> Violation | None:
        """The value that the last refused token would have closed, and why it may not; None for no refusal yet."""
        return self._watch.violation

    @property
    def is_complete(self) -> bool:
        return super().is_complete and self._watch.may_end()

    def mask(self) -> NDArray[numpy.int32]:
        words = super().mask()
        guarded = GuardedMask(words, self._watch, token_index(self._tokenizer))
        guarded.narrow()
        if not self._watch.may_end():
            for token in self._tokenizer.end_tokens:
                guarded.remove(token)
        return words

    def accept_all(self, tokens: Sequence[int]) -> int:
        accepted = super().accept_all(tokens)
        taken = self._take(tokens[:accepted])
        if taken < accepted:
            super().rollback(accepted - taken)
        return taken

    def validate(self, tokens: Sequence[int]) -> int:
        taken = self._take(tokens[: super().validate(tokens)])
        self._watch.go_back(taken)
        return taken

    def rollback(self, count: int) -> None:
        super().rollback(count)
        self._watch.go_back(count)

    def forced_tokens(self) -> list[int]:
        tokens = super().forced_tokens()
        taken = self._take(tokens)
        self._watch.go_back(taken)
        return tokens[:taken]

    def _take(self, tokens: Sequence[int]) -> int:
        """Let the guards see tokens, up to the first that one of them forbids."""
        ends = self._tokenizer.end_tokens
        for index, token in enumerate(tokens):
            if token in ends:
                if not self._watch.may_end() or not self._watch.take(b""):
                    return index
            elif not self._watch.take(self._tokenizer.token_bytes(token)):
                return index
        return len(tokens)


def json_matcher(value: Lowered, tokenizer: Tokenizer) -> Matcher:
    """A matcher of one JSON value. Raises `SchemaTooComplexError` when its grammar is over the engine's means."""
    if value.plain is not None:
        try:
            return _matcher(*value.compilable(), tokenizer)
        except GrammarError:
            pass  # over the means of that compiler, which may not be those of a grammar
    try:
        return _matcher(value.grammar().text(), value.guards, tokenizer)
    except GrammarError as error:
        raise SchemaTooComplexError(
            f"The schema is over the grammar engine's means: {error.message}", pointer=""
        ) from None


def _matcher(grammar: str, guards: Guards, tokenizer: Tokenizer) -> Matcher:
    return GuardedMatcher(grammar, tokenizer, guards) if guards else Matcher(grammar, tokenizer)
