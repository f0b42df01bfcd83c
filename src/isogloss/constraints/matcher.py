"""A grammar at work: what may come next, and what has come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from isogloss.constraints.compilation import COMPILED_GRAMMARS, DEAD_END, check

if TYPE_CHECKING:
    import numpy
    from llguidance import LLMatcher
    from numpy.typing import NDArray

    from isogloss.tokenizers import Tokenizer


class Matcher:
    """One output on its way through a grammar, token by token.

    Every method raises `GrammarError` when the grammar runs into a limit of the engine; the matcher is of no use then.
    One matcher belongs to one thread at a time.
    """

    def __init__(self, lark: str, tokenizer: Tokenizer) -> None:
        """At the start of the grammar. Raises `GrammarError` when it does not compile."""
        self._lark = lark
        self._tokenizer = tokenizer
        self._engine: LLMatcher = COMPILED_GRAMMARS.get(lark, tokenizer).deep_copy()
        self._length = 0
        self._before_ends: list[tuple[int, LLMatcher]] = []
        """The engine before each end token that was accepted, and how many tokens preceded it: the engine cannot go
        back over one by itself."""

    def copy(self) -> Matcher:
        """A matcher at the same place that goes its own way."""
        twin = type(self).__new__(type(self))
        twin._lark = self._lark
        twin._tokenizer = self._tokenizer
        twin._engine = self._engine.deep_copy()
        twin._length = self._length
        twin._before_ends = [(length, engine.deep_copy()) for length, engine in self._before_ends]
        return twin

    def __len__(self) -> int:
        """How many tokens have been accepted."""
        return self._length

    @property
    def is_complete(self) -> bool:
        """Whether the output may end here."""
        return self._engine.is_accepting()

    @property
    def is_stopped(self) -> bool:
        """Whether nothing may follow, besides a token that ends the turn where none has come yet."""
        return self._engine.is_stopped()

    @property
    def is_ended(self) -> bool:
        """Whether a token that ends the turn has come, and nothing may follow."""
        return bool(self._before_ends) and self._before_ends[-1][0] == self._length - 1 and self.is_stopped

    @property
    def is_stuck(self) -> bool:
        """Whether the output may neither end here nor go on: the grammar asks for what no token can write. There is no
        way back from there."""
        return not self.is_complete and not self.mask().any()

    def mask(self) -> NDArray[numpy.int32]:
        """One bit a token, the lowest first: whether it may come next. Tokens that end the turn may where
        `is_complete`."""
        import numpy

        words = numpy.zeros((self._tokenizer.vocabulary_size + 31) // 32, dtype=numpy.int32)
        address, _ = words.__array_interface__["data"]  # `words.ctypes` would import and build more than a mask costs
        self._engine.unsafe_compute_mask_ptr(address, words.nbytes)
        self._check()
        if self._is_dead:
            words.fill(0)
        return words

    def accept(self, token: int) -> bool:
        """Go on by one token. Where it is not allowed nothing happens and the answer is no."""
        return self.accept_all((token,)) == 1

    def accept_all(self, tokens: Sequence[int]) -> int:
        """Go on by as many tokens as are allowed one after the other; how many they were."""
        accepted = 0
        for run, end in self._runs(tokens):
            count = self._engine.try_consume_tokens(run) if run and not self.is_stopped else 0
            self._check()
            self._length += count
            accepted += count
            if count < len(run):
                break
            if end is not None:
                if not self._accept_end(end):
                    break
                accepted += 1
        return accepted

    def validate(self, tokens: Sequence[int]) -> int:
        """How many tokens `accept_all` would accept, without going on: for drafts that are yet to be verified."""
        runs = self._runs(tokens)
        if len(runs) > 1:
            return self.copy().accept_all(tokens)
        run, _ = runs[0]
        count = 0 if self.is_stopped else self._engine.validate_tokens(run)
        self._check()
        return count

    def rollback(self, count: int) -> None:
        """Go back by ``count`` tokens. Raises `ValueError` when that many have not been accepted."""
        if not 0 <= count <= self._length:
            raise ValueError(f"Expected to go back by 0 to {self._length} tokens, got {count}")
        target = self._length - count
        while self._before_ends and self._before_ends[-1][0] >= target:
            self._length, self._engine = self._before_ends.pop()
        if self._length > target:
            if not self._engine.rollback(self._length - target):
                check(self._engine)
            self._length = target

    def forced_tokens(self) -> list[int]:
        """The tokens that have to come next whatever the model says, none where there is a choice. They are not
        accepted yet."""
        tokens = self._engine.compute_ff_tokens()
        self._check()
        return list(tokens)

    def _runs(self, tokens: Sequence[int]) -> list[tuple[list[int], int | None]]:
        """Runs of tokens that end no turn, each with the end token behind it, up to an id outside the vocabulary."""
        ends = self._tokenizer.end_tokens
        size = self._tokenizer.vocabulary_size
        runs: list[tuple[list[int], int | None]] = []
        run: list[int] = []
        for token in tokens:
            if not 0 <= token < size:
                break
            if token in ends:
                runs.append((run, token))
                run = []
            else:
                run.append(token)
        runs.append((run, None))
        return runs

    def _accept_end(self, token: int) -> bool:
        if self.is_ended:
            return False
        before = self._engine.deep_copy()
        if not self._engine.consume_token(token):
            self._engine = before  # a token refused in this way leaves the engine in error
            return False
        self._before_ends.append((self._length, before))
        self._length += 1
        return True

    @property
    def _is_dead(self) -> bool:
        return self._engine.is_error() and self._engine.get_error().startswith(DEAD_END)

    def _check(self) -> None:
        if self._engine.is_error() and not self._is_dead:
            COMPILED_GRAMMARS.discard(self._lark, self._tokenizer)
            check(self._engine)
