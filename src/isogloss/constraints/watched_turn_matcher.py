"""A matcher of a turn in which no call ends whose arguments are invalid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from isogloss.constraints.guarded_turn_matcher import GuardedTurnMatcher

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from isogloss.constraints.call_watch import CallWatch
    from isogloss.grammar import Term
    from isogloss.schema.json_watch import Violation
    from isogloss.tokenizers import Tokenizer


class WatchedTurnMatcher(GuardedTurnMatcher):
    """A `GuardedTurnMatcher` that asks a `CallWatch` too. Where that leaves no token it `is_stuck`."""

    def __init__(self, grammar: str, tokenizer: Tokenizer, term: Term, calls: CallWatch) -> None:
        super().__init__(grammar, tokenizer, term)
        self._calls = calls

    def copy(self) -> WatchedTurnMatcher:
        twin = super().copy()
        assert isinstance(twin, WatchedTurnMatcher)
        twin._calls = self._calls.copy()
        return twin

    @property
    def violation(self) -> Violation | None:
        return super().violation or self._calls.violation

    @property
    def is_complete(self) -> bool:
        return super().is_complete and self._calls.may_end()

    def mask(self) -> NDArray[numpy.int32]:
        words = super().mask()
        self._calls.narrow(words)
        return words

    def accept_all(self, tokens: Sequence[int]) -> int:
        accepted = super().accept_all(tokens)
        followed = self._calls.take(tokens[:accepted])
        if followed < accepted:
            super().rollback(accepted - followed)
        return followed

    def rollback(self, count: int) -> None:
        super().rollback(count)
        self._calls.go_back(count)

    def forced_tokens(self) -> list[int]:
        tokens = super().forced_tokens()
        return tokens[: self.validate(tokens)]
