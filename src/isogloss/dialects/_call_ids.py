"""Ids of calls in a family's own shape."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from isogloss.messages import AssistantMessage, Conversation, Message, ToolMessage


def with_ids(conversation: Conversation, make: Callable[[str, str, int], str]) -> Conversation:
    """The conversation with the id that ``make`` gives each call for its id, its name and a number that goes on over
    the whole conversation; results follow. ``make`` gives two numbers different ids, unless it keeps the call's."""
    ids: dict[str, str] = {}
    used: set[str] = set()
    count = 0
    messages: list[Message] = []
    for message in conversation.messages:
        if isinstance(message, AssistantMessage) and message.tool_calls:
            calls = []
            for call in message.tool_calls:
                own = make(call.id, call.name, count)
                while own in used and own != call.id:
                    count += 1
                    own = make(call.id, call.name, count)
                used.add(own)
                ids[call.id] = own
                calls.append(msgspec.structs.replace(call, id=own))
                count += 1
            messages.append(msgspec.structs.replace(message, tool_calls=tuple(calls)))
        elif isinstance(message, ToolMessage):
            messages.append(msgspec.structs.replace(message, call_id=ids.get(message.call_id, message.call_id)))
        else:
            messages.append(message)
    return msgspec.structs.replace(conversation, messages=tuple(messages))
