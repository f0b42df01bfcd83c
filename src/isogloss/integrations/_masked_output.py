"""One output on its way through a grammar, as logits processors see it: whole rows of ids in, forbidden tokens out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

from isogloss.errors import GrammarError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isogloss.constraints import Matcher


class MaskedOutput:
    """Follows the tokens of one output. What comes behind its end is not looked at, because loops pad there; one that
    does not take the token for an end can only repeat it."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._end: int | None = None
        """The token that ended the output."""

    def copy(self) -> MaskedOutput:
        """The same output, to go on in another way."""
        twin = MaskedOutput(self._matcher.copy())
        twin._end = self._end
        return twin

    def take(self, token: int) -> None:
        """Go on by a token. Raises `GrammarError` where the grammar does not allow it."""
        if self._end is not None:
            return
        if not self._matcher.accept(token):
            raise GrammarError(f"The token {token}, number {len(self._matcher)} of the output, is not allowed there")
        if self._matcher.is_ended:
            self._end = token

    def forbidden(self, width: int) -> NDArray[numpy.bool_]:
        """Which of ``width`` tokens may not come next. Raises `GrammarError` where no token may."""
        forbidden = numpy.ones(width, dtype=numpy.bool_)
        if self._end is not None:
            forbidden[self._end] = False
            return forbidden
        allowed = numpy.unpackbits(self._matcher.mask().view(numpy.uint8), bitorder="little")[:width]
        if not allowed.any():
            raise GrammarError("The output may neither end here nor go on: no token is allowed")
        forbidden[: len(allowed)] = allowed == 0
        return forbidden
