"""Calls under a constraint whose arguments no grammar of their notation holds to their schema: followed by the
dialect's own scanner, and checked when they end.

Which tools need that is told by their schemas (`said_exactly`): most do not, and cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from isogloss.constraints.constraint import Constraint
from isogloss.dialects._token_scanner import Snapshot, TokenScanner
from isogloss.events import Event, Malformed, ToolCallEnd, ToolCallStart
from isogloss.grammar import json_values_of
from isogloss.notations.exactness import said_exactly

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from isogloss.dialects import Dialect
    from isogloss.messages import Tool
    from isogloss.tokenizers import Tokenizer

_CLOSING = frozenset(b">)]}\n`")
"""The last bytes of what ends a call, in any dialect."""
_FEW = 16
"""So many tokens are each tried, whatever they are."""
_STRIDE = 64
"""Tokens between two states that are kept to go back to."""
_MOST_KEPT = 8


class _Arguments:
    """What the calls of each tool have to satisfy."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._schemas = {tool.name: tool.parameters for tool in tools}
        self._validators: dict[str, Any] = {}

    def hold(self, name: str, arguments: dict[str, Any]) -> bool:
        if name not in self._schemas:
            return True  # which tools may be called is for the grammar to say
        if name not in self._validators:
            import jsonschema_rs

            self._validators[name] = jsonschema_rs.validator_for(self._schemas[name], validate_formats=True)
        return bool(self._validators[name].is_valid(arguments))


class _State:
    """How far the scanner is, to go back to."""

    __slots__ = ("length", "open_call", "snapshot")

    def __init__(self, length: int, snapshot: Snapshot, open_call: str | None) -> None:
        self.length = length
        self.snapshot = snapshot
        self.open_call = open_call


class ScannedCalls:
    """The calls of one turn, as `isogloss.constraints.call_watch.CallWatch` asks for them."""

    def __init__(
        self, dialect: Dialect, tools: Sequence[Tool], starts_in: str, arguments: _Arguments, tokenizer: Tokenizer
    ) -> None:
        self._made_of = (dialect, tools, starts_in, arguments, tokenizer)
        self._tokenizer = tokenizer
        self._arguments = arguments
        self._scanner = TokenScanner(dialect, tokenizer, tools, starts_in=starts_in)
        self._tokens: list[int] = []
        self._open_call: str | None = None
        self._states = [self._state()]

    def copy(self) -> ScannedCalls:
        twin = ScannedCalls(*self._made_of)
        twin._tokens = self._tokens.copy()
        twin._states = self._states.copy()
        twin._return_to(self._state())
        return twin

    def may_end(self) -> bool:
        """Whether no call is open that the end of the turn would end wrongly."""
        if self._open_call is None:
            return True
        state = self._state()
        holds = self._see(self._scanner.finish())
        self._return_to(state)
        return holds

    def narrow(self, words: NDArray[numpy.int32]) -> None:
        if self._open_call is None:
            return
        state = self._state()
        bits = words.view("uint32")
        for token in self._candidates(words):
            if not self._feed(token):
                bits[token >> 5] &= ~(1 << (token & 31)) & 0xFFFFFFFF
            self._return_to(state)

    def take(self, tokens: Sequence[int]) -> int:
        for index, token in enumerate(tokens):
            if len(self._tokens) - self._states[-1].length >= _STRIDE:
                self._keep()
            state = self._state() if self._may_close(token) else None
            if not self._feed(token):
                if state is None:
                    self._replay(len(self._tokens))
                else:
                    self._return_to(state)
                return index
            self._tokens.append(token)
        return len(tokens)

    def go_back(self, count: int) -> None:
        if count:
            self._replay(len(self._tokens) - count)

    def _replay(self, length: int) -> None:
        """Go back to where there were so many tokens, from the last state that is kept before it."""
        while len(self._states) > 1 and self._states[-1].length > length:
            self._states.pop()
        state = self._states[-1]
        self._return_to(state)
        for token in self._tokens[state.length : length]:
            self._feed(token)
        del self._tokens[length:]

    def _keep(self) -> None:
        """Keep this state. The oldest but the first goes: few go back that far."""
        self._states.append(self._state())
        if len(self._states) > _MOST_KEPT:
            del self._states[1]

    def _state(self) -> _State:
        return _State(len(self._tokens), self._scanner.snapshot(), self._open_call)

    def _return_to(self, state: _State) -> None:
        self._scanner.restore(state.snapshot)
        self._open_call = state.open_call

    def _feed(self, token: int) -> bool:
        """Follow a token; whether the calls that it ends hold."""
        if token in self._tokenizer.end_tokens:
            return self.may_end()
        return self._see(self._scanner.feed(token))

    def _see(self, events: Sequence[Event]) -> bool:
        for event in events:
            if isinstance(event, ToolCallStart):
                self._open_call = event.name
            elif isinstance(event, Malformed):
                self._open_call = None
            elif isinstance(event, ToolCallEnd):
                name, self._open_call = self._open_call, None
                if name is not None and not self._arguments.hold(name, event.arguments):
                    return False
        return True

    def _candidates(self, words: NDArray[numpy.int32]) -> list[int]:
        """The tokens of a mask that may end a call."""
        import numpy

        allowed = numpy.unpackbits(words.view(numpy.uint8), bitorder="little")[: self._tokenizer.vocabulary_size]
        if numpy.count_nonzero(allowed) > _FEW:
            allowed &= self._closing
        tokens: list[int] = numpy.flatnonzero(allowed).tolist()
        return tokens

    @cached_property
    def _closing(self) -> NDArray[numpy.uint8]:
        vocabulary: Any = self._tokenizer
        return _closing_tokens(vocabulary)

    def _may_close(self, token: int) -> bool:
        return bool(self._closing[token])


@lru_cache(maxsize=8)
def _closing_tokens(tokenizer: Any) -> NDArray[numpy.uint8]:
    """One byte a token: whether it may end a call."""
    import numpy

    special = frozenset((*tokenizer.special_tokens.values(), *tokenizer.end_tokens))
    size = tokenizer.vocabulary_size
    return numpy.fromiter(
        (t in special or not _CLOSING.isdisjoint(tokenizer.token_bytes(t)) for t in range(size)), numpy.uint8, size
    )


def watched(dialect: Dialect, tools: Sequence[Tool], constraint: Constraint, starts_in: str) -> Constraint:
    """The constraint of a turn, with a watch over the calls of those tools that its grammar does not say exactly."""
    whole_values = {id(value.schema) for value in json_values_of(constraint.term)}
    loose = [tool for tool in tools if id(tool.parameters) not in whole_values and not said_exactly(tool.parameters)]
    if not loose:
        return constraint
    arguments = _Arguments(loose)

    def watch(tokenizer: Tokenizer) -> ScannedCalls:
        return ScannedCalls(dialect, tools, starts_in, arguments, tokenizer)

    return Constraint(constraint.term, watch)
