"""What a matcher asks of those who know a turn's calls: whether a token would end one that may not end so.

Grammars of notations other than JSON say most of a schema. `Constraint` takes a maker of watches for the rest, from the
dialect whose turn it is: constraints know nothing of how calls are written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from isogloss.schema.json_watch import Violation
    from isogloss.tokenizers import Tokenizer


class CallWatch(Protocol):
    """Follows one turn token by token."""

    @property
    def violation(self) -> Violation | None:
        """What the last refused token would have closed, and why it may not."""

    def copy(self) -> CallWatch:
        """A watch at the same place that goes its own way."""

    def narrow(self, words: NDArray[numpy.int32]) -> None:
        """Take the tokens away from a mask that would end a call whose arguments are invalid."""

    def may_end(self) -> bool:
        """Whether the turn may end here, as far as its calls are concerned."""

    def take(self, tokens: Sequence[int]) -> int:
        """Follow tokens up to the first that would end such a call; how many they were."""

    def go_back(self, count: int) -> None:
        """Take back the last tokens."""


CallWatchMaker: TypeAlias = "Callable[[Tokenizer], CallWatch]"
