"""Calls under a constraint whose arguments no grammar of their notation holds to their schema: followed by the
dialect's own scanner, and checked when they end.

The grammar says whether it is `Loose`: most are not, and cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from isogloss.constraints.constraint import Constraint
from isogloss.dialects._closing_tokens import ClosingTokens
from isogloss.dialects._token_scanner import Snapshot, TokenScanner
from isogloss.events import Event, Malformed, ToolCallDelta, ToolCallEnd, ToolCallStart
from isogloss.grammar import Literal, Marker, Term, is_loose, parts_of
from isogloss.schema.json_watch import Violation

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from isogloss.dialects import Dialect
    from isogloss.messages import Tool
    from isogloss.tokenizers import Tokenizer

_FEW = 16
"""So many tokens are each tried, whatever they are."""
_STRIDE = 64
"""Tokens between two states that are kept to go back to."""
_MOST_KEPT = 8
_OF_SINGLE_ARGUMENTS = frozenset(
    {"$schema", "$id", "$defs", "definitions", "properties", "patternProperties", "additionalProperties"}
)
"""What a schema says of arguments one by one, and so of the first of them while others are to come."""


class _Arguments:
    """What the calls of each tool have to satisfy."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._schemas = {tool.name: tool.parameters for tool in tools}
        self._validators: dict[tuple[str, bool], Any] = {}

    def fault(self, name: str, arguments: dict[str, Any], *, is_whole: bool = True) -> Violation | None:
        """What is wrong with the arguments of a call, or with the first of them."""
        if name not in self._schemas:
            return None  # which tools may be called is for the grammar to say
        error = next(self._validator(name, is_whole).iter_errors(arguments), None)
        if error is None:
            return None
        return Violation("".join([f"/{part}" for part in error.instance_path]), error.message)

    def _validator(self, name: str, is_whole: bool) -> Any:
        if (name, is_whole) not in self._validators:
            import jsonschema_rs

            schema = self._schemas[name]
            if not is_whole:
                schema = {key: value for key, value in schema.items() if key in _OF_SINGLE_ARGUMENTS}
            self._validators[name, is_whole] = jsonschema_rs.validator_for(schema, validate_formats=True)
        return self._validators[name, is_whole]


class _State(NamedTuple):
    """How far the scanner is, to go back to."""

    length: int
    snapshot: Snapshot
    open_call: str | None
    written: list[str]
    written_length: int
    tail: bytes


class ScannedCalls:
    """The calls of one turn, as `isogloss.constraints.call_watch.CallWatch` asks for them."""

    def __init__(
        self,
        dialect: Dialect,
        tools: Sequence[Tool],
        starts_in: str,
        arguments: _Arguments,
        closing: ClosingTokens,
        tokenizer: Tokenizer,
    ) -> None:
        self._made_of = (dialect, tools, starts_in, arguments, closing, tokenizer)
        self._tokenizer = tokenizer
        self._closing = closing
        self._arguments = arguments
        self._special = frozenset((*tokenizer.special_tokens.values(), *tokenizer.end_tokens))
        self._scanner = TokenScanner(dialect, tokenizer, tools, starts_in=starts_in)
        self._tokens: list[int] = []
        self._open_call: str | None = None
        self._written: list[str] = []
        """The arguments of the open call so far. It only grows; a state says how much of it counts."""
        self._tail = b""
        """The last bytes, as many as may begin what closes something."""
        self.violation: Violation | None = None
        """What the last refused token would have closed, and why it may not."""
        self._states = [self._state()]

    def copy(self) -> ScannedCalls:
        twin = ScannedCalls(*self._made_of)
        twin._tokens = self._tokens.copy()
        twin._states = [state._replace(written=state.written[: state.written_length]) for state in self._states]
        twin._return_to(self._state()._replace(written=self._written.copy()))
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
        candidates = self._candidates(words)
        if not candidates:
            return
        state = self._state()
        bits = words.view("uint32")
        for token in candidates:
            if not self._feed(token):
                bits[token >> 5] &= ~(1 << (token & 31)) & 0xFFFFFFFF
            self._return_to(state)

    def take(self, tokens: Sequence[int]) -> int:
        for index, token in enumerate(tokens):
            if len(self._tokens) - self._states[-1].length >= _STRIDE:
                self._keep()
            may_close = self._open_call is not None and self._closing.completes(self._tail, token)
            state = self._state() if may_close else None
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
        snapshot, written = self._scanner.snapshot(), self._written
        return _State(len(self._tokens), snapshot, self._open_call, written, len(written), self._tail)

    def _return_to(self, state: _State) -> None:
        self._scanner.restore(state.snapshot)
        self._open_call, self._written, self._tail = state.open_call, state.written, state.tail
        del self._written[state.written_length :]

    def _feed(self, token: int) -> bool:
        """Follow a token; whether what it closes holds."""
        if token in self._tokenizer.end_tokens:
            return self.may_end()
        may_close = self._open_call is not None and self._closing.completes(self._tail, token)
        holds = self._see(self._scanner.feed(token))
        if token in self._special:
            self._tail = b""
        elif self._closing.longest:
            self._tail = (self._tail + self._tokenizer.token_bytes(token))[-self._closing.longest :]
        return holds and (not may_close or self._first_arguments_hold())

    def _see(self, events: Sequence[Event]) -> bool:
        for event in events:
            if isinstance(event, ToolCallStart):
                self._open_call, self._written = event.name, []
            elif isinstance(event, ToolCallDelta):
                self._written.append(event.arguments)
            elif isinstance(event, Malformed):
                self._open_call = None
            elif isinstance(event, ToolCallEnd):
                name, self._open_call = self._open_call, None
                if name is not None and self._is_fault(self._arguments.fault(name, event.arguments)):
                    return False
        return True

    def _first_arguments_hold(self) -> bool:
        """Whether the arguments that are whole hold, where the last of them has just been closed."""
        if self._open_call is None:
            return True
        try:
            arguments = msgspec.json.decode("".join([*self._written, "}"]))
        except msgspec.DecodeError:
            return True  # within a value
        return not self._is_fault(self._arguments.fault(self._open_call, arguments, is_whole=False))

    def _is_fault(self, violation: Violation | None) -> bool:
        if violation is not None:
            self.violation = violation
        return violation is not None

    def _candidates(self, words: NDArray[numpy.int32]) -> list[int]:
        """The tokens of a mask that may close an argument or the call."""
        import numpy

        allowed = numpy.unpackbits(words.view(numpy.uint8), bitorder="little")[: self._tokenizer.vocabulary_size]
        if numpy.count_nonzero(allowed) <= _FEW:
            return [int(token) for token in numpy.flatnonzero(allowed)]
        return [token for token in self._closing.behind(self._tail) if allowed[token]]


def watched(dialect: Dialect, tools: Sequence[Tool], constraint: Constraint, starts_in: str) -> Constraint:
    """The constraint of a turn, with a watch over the calls where its grammar admits more than their schemas."""
    if not is_loose(constraint.term):
        return constraint
    arguments = _Arguments(tools)

    texts = tuple(sorted(set(_closing_texts(constraint.term))))

    def watch(tokenizer: Tokenizer) -> ScannedCalls:
        return ScannedCalls(dialect, tools, starts_in, arguments, ClosingTokens(texts, tokenizer), tokenizer)

    return Constraint(constraint.term, watch)


def _closing_texts(term: Term) -> Iterator[bytes]:
    """The closing tags that a term writes: in tagged formats alone, a grammar is ever loose."""
    for part in parts_of(term):
        if isinstance(part, Literal | Marker):
            text = part.text.strip()
            if text.endswith(">") and ("</" in text or "close" in text):
                yield text.encode()
