"""``POST /v1/responses/compact``: a long conversation in fewer tokens. What the users said stays as it is; all the rest
becomes one sealed item, which holds the model's own summary."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from isogloss.errors import OutputError
from isogloss.json_fields import Fields
from isogloss.messages import Conversation, UserMessage
from isogloss.server.generation import updates_of
from isogloss.server.items import ID_PREFIXES, Item, new_id
from isogloss.server.request_fields import check_fields
from isogloss.server.response_creation import read
from isogloss.server.response_object import usage_of
from isogloss.server.response_output import ResponseOutput
from isogloss.server.service import Service

_KNOWN = (
    *("input", "instructions", "model", "previous_response_id"),
    *("prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "service_tier"),
)
_TASK = (
    "Write a summary of this conversation so far, for yourself: you will go on with nothing but what the user said and "
    "this summary. Keep what was decided, found out and done, the results of tools that still matter, and what is left "
    "to do. Write the summary alone."
)


async def compact(service: Service, owner: str, body: dict[str, Any]) -> dict[str, Any]:
    """The ``response.compaction`` object. Raises `RequestError`, and what a turn raises."""
    await service.served_model(body.get("model"))
    fields = Fields(body, "")
    check_fields(fields, _KNOWN, {})
    if not fields.has("input") and fields.has("previous_response_id"):
        body = {**body, "input": []}
    asked = await read(service, owner, body, {})
    turn = service.chat.stream(_asking_for_a_summary(asked.conversation))
    output = ResponseOutput(frozenset(), wants_logprobs=False)
    async for batch in updates_of(service, [turn]):
        for _, update in batch:
            for _ in output.add(update):
                pass
    summary = "".join(part["text"] for part in _text_parts(output.items))
    if not summary:
        raise OutputError("The model wrote no summary")
    messages = [item for item in (*asked.history, *asked.input_items) if item["type"] == "message"]
    said = [message for message in messages if message["role"] == "user"]
    sealed = {
        "type": "compaction",
        "id": new_id(ID_PREFIXES["compaction"]),
        "encrypted_content": service.state.seal.close(owner, summary),
    }
    return {
        "id": new_id("resp_"),
        "object": "response.compaction",
        "created_at": int(time.time()),
        "output": [*({**item, "status": "completed"} for item in said), sealed],
        "usage": usage_of([turn]),
    }


def _asking_for_a_summary(conversation: Conversation) -> Conversation:
    return msgspec.structs.replace(conversation, messages=(*conversation.messages, UserMessage(_TASK)))


def _text_parts(items: list[Item]) -> list[Item]:
    return [part for item in items if item["type"] == "message" for part in item["content"] if "text" in part]
