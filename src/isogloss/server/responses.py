"""``/v1/responses``: create, retrieve, follow, cancel, delete, list the input, count its tokens, compact."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response

from isogloss.errors import RequestError
from isogloss.json_fields import invalid, shown
from isogloss.server import sse
from isogloss.server.background import Background, not_found
from isogloss.server.caller import caller_of
from isogloss.server.compaction import compact
from isogloss.server.errors import json_response
from isogloss.server.generation import while_connected
from isogloss.server.paging import Asked
from isogloss.server.request_body import read_body
from isogloss.server.response_creation import prepare, read
from isogloss.server.response_run import ResponseRun
from isogloss.server.response_store import StoredResponse
from isogloss.server.service import Service

_BOOLEANS = {"true": True, "false": False}


class _Kind(msgspec.Struct):
    """What is to be known of an event that is JSON already."""

    type: str


_kind_of = msgspec.json.Decoder(_Kind).decode


def responses(service: Service, background: Background) -> APIRouter:
    router = APIRouter()
    most = service.options.max_body_bytes

    @router.post("/v1/responses")
    async def create(request: Request) -> Response:
        owner = caller_of(request).name
        run = await prepare(service, owner, await read_body(request, most))
        if run.asked.background:
            await background.start(run)
            if not run.asked.stream:
                return json_response(run.response.fields)
            return sse.EventStream(_named(background.follow(owner, run.id, -1)))
        if not run.asked.stream:
            return json_response(await while_connected(request, run.whole()))
        await while_connected(request, run.begin())
        return sse.EventStream(_encoded(run), run.close)

    @router.post("/v1/responses/input_tokens")
    async def input_tokens(request: Request) -> Response:
        body = await read_body(request, most)
        await service.served_model(body.get("model"))
        asked = await read(service, caller_of(request).name, body, {})
        count = await service.chat.prompt_tokens(asked.conversation)
        return json_response({"object": "response.input_tokens", "input_tokens": count})

    @router.post("/v1/responses/compact")
    async def compacted(request: Request) -> Response:
        body = await read_body(request, most)
        return json_response(await while_connected(request, compact(service, caller_of(request).name, body)))

    return router


def stored_responses(service: Service, background: Background) -> APIRouter:
    router = APIRouter()
    store = service.state.responses

    async def found(request: Request, response_id: str) -> StoredResponse:
        response = await store.get(caller_of(request).name, response_id)
        if response is None:
            raise not_found(response_id)
        return response

    @router.get("/v1/responses/{response_id}")
    async def retrieve(response_id: str, request: Request) -> Response:
        response = await found(request, response_id)
        if not _boolean(request, "stream"):
            return json_response(response.body)
        if not response.is_background:
            raise invalid(
                "This response cannot be streamed because it was not created with background=true.", "/stream"
            )
        after = _number(request, "starting_after")
        return sse.EventStream(_named(background.follow(caller_of(request).name, response_id, after)))

    @router.delete("/v1/responses/{response_id}")
    async def delete(response_id: str, request: Request) -> Response:
        if not await store.delete(caller_of(request).name, response_id):
            raise not_found(response_id)
        await background.drop_lost()
        return json_response({"id": response_id, "object": "response", "deleted": True})

    @router.post("/v1/responses/{response_id}/cancel")
    async def cancel(response_id: str, request: Request) -> Response:
        if not (await found(request, response_id)).is_background:
            raise RequestError("Cannot cancel a synchronous response.", code="invalid_value")
        cancelled = await background.cancel(caller_of(request).name, response_id)
        if cancelled is None:
            raise not_found(response_id)
        return json_response(cancelled.body)

    @router.get("/v1/responses/{response_id}/input_items")
    async def input_items(response_id: str, request: Request) -> Response:
        response = await found(request, response_id)
        return json_response(Asked.of(request.query_params).page(response.input_items))

    return router


async def _encoded(run: ResponseRun) -> AsyncGenerator[bytes, None]:
    async for event in run.events():
        yield sse.named_event(event["type"], msgspec.json.encode(event))


async def _named(events: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    async for data in events:
        yield sse.named_event(_kind_of(data).type, data)


def _boolean(request: Request, name: str) -> bool:
    given = request.query_params.get(name, "false")
    if given not in _BOOLEANS:
        raise invalid(f"Expected `true` or `false`, got {shown(given)}", f"/{name}")
    return _BOOLEANS[given]


def _number(request: Request, name: str) -> int:
    """A number from 0 on; -1 where none is given."""
    given: Any = request.query_params.get(name)
    if given is None:
        return -1
    if not (given.isascii() and given.isdecimal() and len(given) < 10):
        raise invalid(f"Expected a number >= 0, got {shown(given)}", f"/{name}")
    return int(given)
