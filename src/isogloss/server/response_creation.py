"""From a request's body to a response that can be made: the history it continues, what it refers to, what is sealed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from isogloss.errors import RequestError
from isogloss.json_fields import Fields, as_string, invalid
from isogloss.server.errors import NotFoundError
from isogloss.server.items import Item
from isogloss.server.request_body import read_in_time
from isogloss.server.response_request import ResponseRequest, read_response_request
from isogloss.server.response_run import ResponseRun
from isogloss.server.response_store import StoredResponse
from isogloss.server.service import Service
from isogloss.server.truncation import truncated

_SUMMARY = "This is a summary of the conversation so far:\n\n{}"


async def prepare(
    service: Service, owner: str, body: dict[str, Any], known: Mapping[str, StoredResponse] | None = None
) -> ResponseRun:
    """A response to a request. ``known`` are responses that can be continued though they are not stored.

    Raises `RequestError`, and `NotFoundError` for what the request refers to and is not there.
    """
    model = await service.served_model(body.get("model"))
    asked = await read(service, owner, body, known or {})
    if asked.may_truncate:
        conversation = await truncated(service.chat, asked.conversation)
        asked = msgspec.structs.replace(asked, conversation=conversation)
    return ResponseRun(service, owner, asked, model)


async def read(
    service: Service, owner: str, body: dict[str, Any], known: Mapping[str, StoredResponse]
) -> ResponseRequest:
    """The request, checked whole, with the history that it continues."""
    fields = Fields(body, "")
    history = await _history(service, owner, fields, known)
    given = await _resolved(service, owner, fields.get("input"), history)

    def opened(item: Any, pointer: str) -> Any:
        return opened_item(service, owner, item, pointer)

    resolved = {**body, "input": given}
    enabled = service.options.hosted_tools
    options = service.engine_options
    make = partial(read_response_request, resolved, history, opened, enabled, options)
    return await read_in_time(body, (given, history), make)


async def _history(service: Service, owner: str, fields: Fields, known: Mapping[str, StoredResponse]) -> list[Item]:
    previous = fields.optional_string("previous_response_id")
    conversation = _conversation_id(fields)
    if conversation is not None:
        if previous is not None:
            raise invalid(
                "Mutually exclusive parameters: 'previous_response_id' and 'conversation'.", "/previous_response_id"
            )
        items = await service.state.conversations.items(owner, conversation)
        if items is None:
            raise NotFoundError(
                f"Conversation with id '{conversation}' not found.", pointer="/conversation", code="not_found"
            )
        return items
    return [] if previous is None else await _chain(service, owner, previous, known)


def _conversation_id(fields: Fields) -> str | None:
    if not fields.has("conversation"):
        return None
    given = fields.get("conversation")
    return as_string(given, "/conversation") if isinstance(given, str) else fields.object("conversation").string("id")


async def _chain(service: Service, owner: str, response_id: str, known: Mapping[str, StoredResponse]) -> list[Item]:
    """All items of a chain of responses, the oldest first. Raises `RequestError` when one of them is gone."""
    local: list[StoredResponse] = []
    wanted: str | None = response_id
    while wanted is not None and wanted in known:
        local.append(known[wanted])
        wanted = known[wanted].previous_id
    chain = [] if wanted is None else await service.state.responses.chain(owner, wanted)
    if wanted is not None and (not chain or chain[0].previous_id is not None):
        missing = chain[0].previous_id if chain else wanted
        raise RequestError(  # a 400 at OpenAI, too: it is the request that is wrong, not its URL
            f"Previous response with id '{missing}' not found.",
            pointer="/previous_response_id",
            code="previous_response_not_found",
        )
    for response in chain:
        if response.is_running:
            raise RequestError(
                f"Previous response with id '{response.id}' has not ended yet.",
                pointer="/previous_response_id",
                code="previous_response_not_completed",
            )
    return [
        item for response in (*chain, *reversed(local)) for item in (*response.input_items, *response.body["output"])
    ]


async def _resolved(service: Service, owner: str, given: object, history: Sequence[Item]) -> Any:
    """The input with the items in it that it refers to. What the history has already is not said twice."""
    if not isinstance(given, list):
        return given
    referred = {
        position: Fields(item, f"/input/{position}").string("id")
        for position, item in enumerate(given)
        if isinstance(item, dict) and item.get("type") == "item_reference"
    }
    if not referred:
        return given
    in_history = {item["id"] for item in history if "id" in item}
    items = await service.state.conversations.referred(owner, [*referred.values()])
    resolved = []
    for position, item in enumerate(given):
        item_id = referred.get(position)
        if item_id is None:
            resolved.append(item)
        elif item_id in items:
            resolved.extend([] if item_id in in_history else [items[item_id]])
        else:
            raise NotFoundError(f"Item with id '{item_id}' not found.", pointer=f"/input/{position}/id")
    return resolved


def opened_item(service: Service, owner: str, item: Any, pointer: str) -> Any:
    """The item with what is sealed in it."""
    if not isinstance(item, dict) or not isinstance(item.get("encrypted_content"), str):
        return item
    if item.get("type") == "compaction":
        opened = service.state.seal.open(owner, item["encrypted_content"], f"{pointer}/encrypted_content")
        return {"type": "message", "role": "user", "content": _SUMMARY.format(opened)}
    if item.get("type") == "reasoning" and not item.get("content"):
        opened = service.state.seal.open(owner, item["encrypted_content"], f"{pointer}/encrypted_content")
        return {**item, "content": [{"type": "reasoning_text", "text": opened}]}
    return item
