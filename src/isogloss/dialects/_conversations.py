"""A conversation as dialects write it: which tools are told, the instructions together, results in runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from isogloss.dialects._told import paragraphs
from isogloss.messages import (
    Conversation,
    DeveloperMessage,
    Message,
    SystemMessage,
    Tool,
    ToolChoice,
    ToolMessage,
    UserMessage,
)


def offered(conversation: Conversation) -> tuple[Tool, ...]:
    """The tools that the model is told of: all of them, unless it may call none."""
    choice = ToolChoice.of(conversation.tool_choice)
    return () if choice.mode == "none" else conversation.tools


def instructions(messages: Iterable[Message]) -> str:
    """What system and developer messages say, wherever they stand."""
    return paragraphs(*[m.text for m in messages if isinstance(m, SystemMessage | DeveloperMessage)])


class Run(NamedTuple):
    """A message, or adjacent tool results. ``position`` is that of the last."""

    position: int
    spoken: Message | list[ToolMessage]


def runs(messages: Sequence[Message]) -> Iterable[Run]:
    """Messages one by one, but adjacent tool results together."""
    results: list[ToolMessage] = []
    for position, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            results.append(message)
            continue
        if results:
            yield Run(position - 1, results)
            results = []
        yield Run(position, message)
    if results:
        yield Run(len(messages) - 1, results)


def last_user_position(messages: Sequence[Message]) -> int:
    """Where the last user message is, -1 without one: reasoning after it belongs to the open turn."""
    for position in range(len(messages) - 1, -1, -1):
        if isinstance(messages[position], UserMessage):
            return position
    return -1
