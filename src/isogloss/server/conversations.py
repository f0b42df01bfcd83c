"""``/v1/conversations``: create, retrieve, update, delete, and their items."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response

from isogloss.errors import ConversationError
from isogloss.json_fields import Fields, invalid
from isogloss.openai_responses import conversation_from_responses
from isogloss.server.caller import caller_of
from isogloss.server.errors import NotFoundError, json_response
from isogloss.server.items import Item, kept_items
from isogloss.server.paging import Asked, as_page
from isogloss.server.request_body import read_body
from isogloss.server.request_fields import check_fields, metadata
from isogloss.server.response_creation import opened_item
from isogloss.server.service import Service

_MOST_ADDED = 20


def conversations(service: Service) -> APIRouter:
    router = APIRouter()
    store = service.state.conversations
    most = service.options.max_body_bytes

    @router.post("/v1/conversations")
    async def create(request: Request) -> Response:
        owner = caller_of(request).name
        fields = Fields(await read_body(request, most), "")
        check_fields(fields, ("items", "metadata"), {})
        items = await _items(service, owner, fields, []) if fields.has("items") else ()
        return json_response(await store.create(owner, metadata(fields), items))

    @router.get("/v1/conversations/{conversation_id}")
    async def retrieve(conversation_id: str, request: Request) -> Response:
        return json_response(_found(await store.get(caller_of(request).name, conversation_id), conversation_id))

    @router.post("/v1/conversations/{conversation_id}")
    async def update(conversation_id: str, request: Request) -> Response:
        fields = Fields(await read_body(request, most), "")
        check_fields(fields, ("metadata",), {})
        changed = await store.update(caller_of(request).name, conversation_id, metadata(fields))
        return json_response(_found(changed, conversation_id))

    @router.delete("/v1/conversations/{conversation_id}")
    async def delete(conversation_id: str, request: Request) -> Response:
        if not await store.delete(caller_of(request).name, conversation_id):
            raise _no_conversation(conversation_id)
        return json_response({"id": conversation_id, "object": "conversation.deleted", "deleted": True})

    return router


def conversation_items(service: Service) -> APIRouter:
    router = APIRouter()
    store = service.state.conversations
    path = "/v1/conversations/{conversation_id}/items"

    async def conversation(request: Request, conversation_id: str) -> dict[str, Any]:
        found: dict[str, Any] = _found(await store.get(caller_of(request).name, conversation_id), conversation_id)
        return found

    @router.post(path)
    async def add(conversation_id: str, request: Request) -> Response:
        owner = caller_of(request).name
        history = _found(await store.items(owner, conversation_id), conversation_id)
        fields = Fields(await read_body(request, service.options.max_body_bytes), "")
        check_fields(fields, ("items",), {})
        items = await _items(service, owner, fields, history)
        await store.add(owner, conversation_id, items)
        return json_response(as_page(items, has_more=False))

    @router.get(path)
    async def listed(conversation_id: str, request: Request) -> Response:
        await conversation(request, conversation_id)
        return json_response(await store.page(conversation_id, Asked.of(request.query_params)))

    @router.get(path + "/{item_id}")
    async def retrieve(conversation_id: str, item_id: str, request: Request) -> Response:
        await conversation(request, conversation_id)
        item = await store.item(conversation_id, item_id)
        if item is None:
            raise _no_item(item_id)
        return json_response(item)

    @router.delete(path + "/{item_id}")
    async def delete(conversation_id: str, item_id: str, request: Request) -> Response:
        held = await conversation(request, conversation_id)
        if not await store.delete_item(conversation_id, item_id):
            raise _no_item(item_id)
        return json_response(held)

    return router


async def _items(service: Service, owner: str, fields: Fields, history: list[Item]) -> tuple[Item, ...]:
    """The ``items`` of a request, as they are kept, checked to be such that a request could go on from them."""
    fields.required("items")
    given: list[Any] = [value for value, _ in fields.array("items")]
    if not 1 <= len(given) <= _MOST_ADDED:
        raise invalid(f"Expected `array` of length >= 1 and <= {_MOST_ADDED}, got {len(given)}", "/items")

    def check() -> tuple[Item, ...]:
        new = [opened_item(service, owner, item, f"/items/{position}") for position, item in enumerate(given)]
        past = [opened_item(service, owner, item, f"/history/{position}") for position, item in enumerate(history)]
        try:
            conversation_from_responses({"input": new}, past)
        except ConversationError as error:
            pointer = (error.pointer or "").replace("/input", "/items", 1)
            raise ConversationError(error.message, pointer=pointer, code=error.code) from None
        return kept_items(given, [item["id"] for item in history])

    return await asyncio.to_thread(check)


def _found(value: Any, conversation_id: str) -> Any:
    if value is None:
        raise _no_conversation(conversation_id)
    return value


def _no_conversation(conversation_id: str) -> NotFoundError:
    return NotFoundError(f"Conversation with id '{conversation_id}' not found.", code="not_found")


def _no_item(item_id: str) -> NotFoundError:
    return NotFoundError(f"Item with id '{item_id}' not found.", code="not_found")
