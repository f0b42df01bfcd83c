"""A matcher of a turn that holds the guards of the JSON values in it.

Where such a value begins is told by a second grammar that runs beside the first, byte by byte: the same one, in which a
control token announces each value. A byte that it does not take without the announcement begins a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from isogloss.constraints.compilation import COMPILED_GRAMMARS
from isogloss.constraints.guarded_mask import GuardedMask, token_index
from isogloss.constraints.lark import write_announced
from isogloss.constraints.matcher import Matcher
from isogloss.grammar import Term, markers_of
from isogloss.schema.json_watch import JsonWatch, Violation
from isogloss.tokenizers import byte_level

if TYPE_CHECKING:
    import numpy
    from llguidance import LLMatcher
    from numpy.typing import NDArray

    from isogloss.schema.guards import Guards
    from isogloss.tokenizers import Tokenizer

ANNOUNCEMENT = "<|a guarded value begins|>"


class _Announcer:
    """The grammar that knows where guarded values begin."""

    def __init__(self, term: Term, tokenizer: Tokenizer) -> None:
        markers = sorted(marker for marker in set(markers_of(term)) if marker in tokenizer.special_tokens)
        vocabulary = byte_level([*markers, ANNOUNCEMENT])
        special = {marker: vocabulary.special_tokens[marker] for marker in markers}
        self._announcement = vocabulary.special_tokens[ANNOUNCEMENT]
        self._special = {tokenizer.special_tokens[marker]: special[marker] for marker in markers}
        lark, self._guards = write_announced(term, special, self._announcement)
        self._is_lost = not self._guards  # where nothing is guarded there is nothing to follow
        self._engine: LLMatcher | None = COMPILED_GRAMMARS.get(lark, vocabulary).deep_copy() if self._guards else None
        self.length = 0

    def copy(self) -> _Announcer:
        twin = _Announcer.__new__(_Announcer)
        twin.__dict__.update(self.__dict__)
        twin._engine = None if self._engine is None else self._engine.deep_copy()
        return twin

    def special(self, token: int) -> bool:
        """Follow a control token; whether it is one."""
        if token not in self._special:
            return False
        self._go_on([self._special[token]])
        return True

    def begins(self, byte: int) -> Guards | None:
        """Follow a byte outside of guarded values; the guards of the value that begins with it."""
        if self._engine is None or self._is_lost or self._engine.validate_tokens([byte]) == 1:
            self._go_on([byte])
            return None
        for number, guards in enumerate(self._guards):
            announced = [self._announcement, *b"j" * number, ord(";"), byte]
            if self._engine.validate_tokens(announced) == len(announced):
                self._go_on(announced)
                return guards
        self._is_lost = True
        return None

    def follow(self, data: bytes) -> None:
        """Follow bytes within a guarded value."""
        self._go_on(list(data))

    def go_back(self, length: int) -> None:
        if self._engine is not None and self.length > length:
            self._engine.rollback(self.length - length)
            self.length = length

    def _go_on(self, tokens: list[int]) -> None:
        if self._engine is not None and not self._is_lost and tokens:
            taken = self._engine.try_consume_tokens(tokens)
            self.length += taken
            self._is_lost = taken < len(tokens)


class _Step(NamedTuple):
    """What a token did: the value that was open before it, the length of the announcer's way, who took a piece."""

    before: JsonWatch | None
    length: int
    takers: list[JsonWatch]


class GuardedTurnMatcher(Matcher):
    """A `Matcher` in whose JSON values no token closes what a guard forbids."""

    def __init__(self, grammar: str, tokenizer: Tokenizer, term: Term) -> None:
        super().__init__(grammar, tokenizer)
        self._announcer = _Announcer(term, tokenizer)
        self._watch: JsonWatch | None = None
        self._steps: list[_Step] = []
        self._violation: Violation | None = None

    def copy(self) -> GuardedTurnMatcher:
        twin = super().copy()
        assert isinstance(twin, GuardedTurnMatcher)
        copies: dict[int, JsonWatch] = {}

        def copied(watch: JsonWatch) -> JsonWatch:
            if id(watch) not in copies:
                copies[id(watch)] = watch.copy()
            return copies[id(watch)]

        twin._announcer = self._announcer.copy()
        twin._watch = None if self._watch is None else copied(self._watch)
        twin._steps = [
            _Step(None if s.before is None else copied(s.before), s.length, [copied(t) for t in s.takers])
            for s in self._steps
        ]
        twin._violation = self._violation
        return twin

    @property
    def violation(self) -> Violation | None:
        """The value that the last refused token would have closed, and why it may not; None for no refusal yet."""
        return self._violation

    def mask(self) -> NDArray[numpy.int32]:
        words = super().mask()
        if self._watch is not None:
            GuardedMask(words, self._watch, token_index(self._tokenizer)).narrow()
        return words

    def accept_all(self, tokens: Sequence[int]) -> int:
        accepted = super().accept_all(tokens)
        for index, token in enumerate(tokens[:accepted]):
            if not self._take(token):
                super().rollback(accepted - index)
                return index
        return accepted

    def validate(self, tokens: Sequence[int]) -> int:
        return self.copy().accept_all(tokens)

    def rollback(self, count: int) -> None:
        super().rollback(count)
        for _ in range(count):
            self._undo(self._steps.pop())

    def forced_tokens(self) -> list[int]:
        tokens = super().forced_tokens()
        return tokens if self._watch is None else tokens[: self.validate(tokens)]

    def _undo(self, step: _Step) -> None:
        for watch in step.takers:
            watch.go_back(1)
        self._announcer.go_back(step.length)
        self._watch = step.before

    def _take(self, token: int) -> bool:
        """Let the guards see a token that the grammar allows; whether they allow it."""
        step = _Step(self._watch, self._announcer.length, [])
        is_text = token not in self._tokenizer.end_tokens and not self._announcer.special(token)
        if is_text and not self._read(self._tokenizer.token_bytes(token), step.takers):
            self._undo(step)
            return False
        self._steps.append(step)
        return True

    def _read(self, data: bytes, takers: list[JsonWatch]) -> bool:
        at = 0
        while at < len(data):
            ahead = 0
            if self._watch is None:
                guards = self._announcer.begins(data[at])
                if guards is None:
                    at += 1
                    continue
                self._watch = JsonWatch(guards)
                ahead = 1  # the byte that the announcer has followed already
            watch = self._watch
            before = watch.place.length
            if not watch.take(data[at:]):
                self._violation = watch.violation
                return False
            takers.append(watch)
            taken = watch.place.length - before
            self._announcer.follow(data[at + ahead : at + taken])
            at += taken
            if watch.is_over:
                self._watch = None
        return True
