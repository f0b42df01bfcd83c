"""``POST /v1/responses``, and what was kept of earlier ones: ``GET``, ``DELETE`` and their input items."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import Any

from fastapi import APIRouter, Request, Response

from isogloss.chat import Turn, Update
from isogloss.errors import IsoglossError, RequestError
from isogloss.json_fields import Fields, as_choice
from isogloss.server import sse
from isogloss.server.errors import NotFoundError, json_response
from isogloss.server.generation import updates_of, while_connected
from isogloss.server.request_body import read_body
from isogloss.server.response_object import ResponseObject
from isogloss.server.response_output import ResponseOutput, new_id
from isogloss.server.response_request import ResponseRequest, read_response_request
from isogloss.server.service import Service
from isogloss.server.store import ResponseStore, StoredResponse

_log = logging.getLogger("isogloss.server")

MOST_LISTED = 100


def responses(service: Service) -> APIRouter:
    router = APIRouter()
    store = service.store

    @router.post("/v1/responses")
    async def create(request: Request) -> Response:
        body = await read_body(request, service.max_body_bytes)
        model = await service.served_model(body.get("model"))
        history = await _history(store, Fields(body, "").optional_string("previous_response_id"))
        asked = await asyncio.to_thread(read_response_request, body, history)
        making = _Making(asked, ResponseObject(asked, model), service)
        if not asked.stream:
            return json_response(await while_connected(request, making.whole()))
        await while_connected(request, making.begin())
        return sse.EventStream(making.events())

    @router.get("/v1/responses/{response_id}")
    async def retrieve(response_id: str) -> Response:
        return json_response((await _stored(store, response_id)).response)

    @router.delete("/v1/responses/{response_id}")
    async def delete(response_id: str) -> Response:
        if not await store.delete(response_id):
            raise _no_response(response_id)
        return json_response({"id": response_id, "object": "response", "deleted": True})

    @router.get("/v1/responses/{response_id}/input_items")
    async def input_items(response_id: str, request: Request) -> Response:
        stored = await _stored(store, response_id)
        return json_response(_page(stored.input_items, request))

    return router


class _Making:
    """A response being made: whole, or as the events of a stream."""

    def __init__(self, asked: ResponseRequest, response: ResponseObject, service: Service) -> None:
        self._asked = asked
        self._response = response
        self._store = service.store
        self._turn: Turn = service.chat.stream(asked.conversation, asked.sampling)
        self._output = ResponseOutput(asked.custom_tools, asked.wants_logprobs)
        self._updates = updates_of([self._turn])
        self._first: Update | None = None
        self._sequence_number = -1

    async def whole(self) -> dict[str, Any]:
        async for _, update in self._updates:
            for _ in self._output.add(update):
                pass
        await self._end()
        return self._response.fields

    async def begin(self) -> None:
        """Wait for the first sign of the model, so that what fails before it is an error of the request."""
        _, self._first = await anext(self._updates)

    async def events(self) -> AsyncGenerator[bytes, None]:
        try:
            yield self._event("response.created", {"response": self._response.fields})
            yield self._event("response.in_progress", {"response": self._response.fields})
            assert self._first is not None
            for kind, fields in self._output.add(self._first):
                yield self._event(kind, fields)
            async for _, update in self._updates:
                for kind, fields in self._output.add(update):
                    yield self._event(kind, fields)
            await self._end()
            yield self._event(f"response.{self._response.fields['status']}", {"response": self._response.fields})
        except IsoglossError as error:
            _log.error("%s: %s", type(error).__name__, error)
            yield self._failed(error)
        except Exception:
            _log.exception("A stream failed")
            yield self._failed(None)
        finally:
            await self._updates.aclose()

    async def _end(self) -> None:
        self._response.end(self._output.finish, self._output.items, self._turn)
        if self._asked.store:
            items = tuple({**item, "id": item.get("id") or new_id("msg_")} for item in self._asked.input_items)
            await self._store.put(StoredResponse(self._response.id, self._response.fields, items))

    def _failed(self, error: IsoglossError | None) -> bytes:
        self._response.fail(error, self._output.items)
        return self._event("response.failed", {"response": self._response.fields})

    def _event(self, kind: str, fields: dict[str, Any]) -> bytes:
        self._sequence_number += 1
        return sse.event({"type": kind, "sequence_number": self._sequence_number, **fields}, kind)


async def _history(store: ResponseStore, response_id: str | None) -> list[dict[str, Any]]:
    """All items of a chain of responses, the oldest first. Raises `NotFoundError` when one of them is gone."""
    chain: list[StoredResponse] = []
    while response_id is not None:
        stored = await store.get(response_id)
        if stored is None:
            raise NotFoundError(
                f"Previous response with id '{response_id}' not found.",
                pointer="/previous_response_id",
                code="previous_response_not_found",
            )
        chain.append(stored)
        response_id = stored.previous_id
    return [item for stored in reversed(chain) for item in (*stored.input_items, *stored.response["output"])]


async def _stored(store: ResponseStore, response_id: str) -> StoredResponse:
    stored = await store.get(response_id)
    if stored is None:
        raise _no_response(response_id)
    return stored


def _no_response(response_id: str) -> NotFoundError:
    return NotFoundError(f"Response with id '{response_id}' not found.", code="response_not_found")


def _page(items: tuple[dict[str, Any], ...], request: Request) -> dict[str, Any]:
    """A page of items: ``order`` (newest first unless told otherwise), ``after`` an id, at most ``limit``."""
    asked = request.query_params
    limit = asked.get("limit", "20")
    if not (limit.isascii() and limit.isdecimal() and 1 <= int(limit) <= MOST_LISTED):
        raise RequestError(f"Expected a number from 1 to {MOST_LISTED}, got {limit!r}", pointer="/limit")
    order = as_choice(asked.get("order", "desc"), ("asc", "desc"), "/order")
    listed = list(items if order == "asc" else reversed(items))
    after = asked.get("after")
    if after is not None:
        ids = [item["id"] for item in listed]
        if after not in ids:
            raise NotFoundError(f"No input item with id '{after}' found.", pointer="/after")
        listed = listed[ids.index(after) + 1 :]
    page = listed[: int(limit)]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": len(page) < len(listed),
    }
