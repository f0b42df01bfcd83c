"""What models said, token by token, to be found again when a conversation goes on.

A conversation comes back as messages, whichever way it was kept. It is known again by what was said in it: reasoning,
which many clients do not send back, aside.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import NamedTuple

from isogloss.messages import AssistantMessage, Conversation, Message, Tool, ToolChoice

KEPT_TURNS = 1024
KEPT_TOKENS = 4_000_000
"""How much `SampledTurns` keeps, at four bytes a token; the turns that were used longest ago go first."""


class SampledTurn(NamedTuple):
    """A turn as it was sampled. ``is_templated``: its prompt was made by the model's own chat template."""

    prompt_ids: Sequence[int]
    completion_ids: Sequence[int]
    reasoning: str
    is_templated: bool


class SampledTurns:
    """The latest turns, by the conversations that they end. Safe to use from several threads."""

    def __init__(self, kept_turns: int = KEPT_TURNS, kept_tokens: int = KEPT_TOKENS) -> None:
        self._kept_turns = kept_turns
        self._kept_tokens = kept_tokens
        self._tokens = 0
        self._turns: OrderedDict[bytes, SampledTurn] = OrderedDict()
        self._lock = Lock()

    def keep(
        self,
        conversation: Conversation,
        said: AssistantMessage,
        prompt_ids: Sequence[int],
        completion_ids: Sequence[int],
        *,
        is_templated: bool,
    ) -> None:
        """Keep the turn ``said`` that answered ``conversation``."""
        *_, key = _keys(conversation, (*conversation.messages, said))
        turn = SampledTurn(array("I", prompt_ids), array("I", completion_ids), said.reasoning, is_templated)
        with self._lock:
            self._drop(key)
            self._turns[key] = turn
            self._tokens += _size(turn)
            while len(self._turns) > self._kept_turns or self._tokens > self._kept_tokens:
                self._drop(next(iter(self._turns)))

    def find(self, conversation: Conversation) -> tuple[SampledTurn, Sequence[Message]] | None:
        """The latest turn of the conversation that was kept, and the messages behind it; ``None`` without both."""
        messages = conversation.messages
        keys = list(_keys(conversation, messages))
        for position in range(len(messages) - 2, -1, -1):
            said = messages[position]
            if not isinstance(said, AssistantMessage):
                continue
            with self._lock:
                turn = self._turns.get(keys[position])
                if turn is not None and said.reasoning in ("", turn.reasoning):
                    self._turns.move_to_end(keys[position])
                    return turn, messages[position + 1 :]
        return None

    def _drop(self, key: bytes) -> None:
        turn = self._turns.pop(key, None)
        if turn is not None:
            self._tokens -= _size(turn)


def _size(turn: SampledTurn) -> int:
    return len(turn.prompt_ids) + len(turn.completion_ids)


def _keys(conversation: Conversation, messages: Sequence[Message]) -> Iterator[bytes]:
    """For each message a digest of all that the prompt up to its end is made of."""
    is_offering = ToolChoice.of(conversation.tool_choice).mode != "none"
    tools: tuple[Tool, ...] = conversation.tools if is_offering else ()
    settings = (tools, conversation.response_format, conversation.reasoning_effort)
    digest = hashlib.blake2b(_bytes(settings), digest_size=16)
    for message in messages:
        known = message
        if isinstance(message, AssistantMessage):
            known = AssistantMessage(message.text, refusal=message.refusal, tool_calls=message.tool_calls)
        data = _bytes(known)
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
        yield digest.copy().digest()


def _bytes(value: object) -> bytes:
    """What tells values apart, lone surrogates in them included."""
    return repr(value).encode("utf-8", "surrogatepass")
