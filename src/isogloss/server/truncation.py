"""``truncation: auto``: the oldest turns are left out until the prompt fits the model's context."""

from __future__ import annotations

import msgspec

from isogloss.chat import Chat
from isogloss.messages import Conversation, DeveloperMessage, Message, SystemMessage, UserMessage

_ROOM = 16
"""Tokens that must be left for the answer."""


async def truncated(chat: Chat, conversation: Conversation) -> Conversation:
    """The conversation without its oldest turns, as many as needed; instructions and the newest turn always stay.

    As it is where the engine's context or vocabulary is not known.
    """
    limit = (await chat.model()).context_length
    if limit is None or chat.engine.tokenizer is None:
        return conversation
    starts = _turns(conversation.messages)
    low, high = 0, len(starts) - 1
    while low < high:  # the more is left out, the shorter it is
        middle = (low + high) // 2
        if await chat.prompt_tokens(_from(conversation, starts[middle])) + _ROOM <= limit:
            high = middle
        else:
            low = middle + 1
    return _from(conversation, starts[low])


def _turns(messages: tuple[Message, ...]) -> list[int]:
    """Where the turns begin: at the very start, and with what a user says after that."""
    said = [position for position, message in enumerate(messages) if isinstance(message, UserMessage)]
    return [0, *said[1:]]


def _from(conversation: Conversation, start: int) -> Conversation:
    """The conversation from that message on, with all instructions."""
    messages = conversation.messages
    instructions = (message for message in messages[:start] if isinstance(message, (SystemMessage, DeveloperMessage)))
    return msgspec.structs.replace(conversation, messages=(*instructions, *messages[start:]))
