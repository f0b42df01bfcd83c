"""The WebSocket transport of Open Responses on ``/v1/responses``.

A client sends ``{"type": "response.create", ...}`` with the fields of ``POST /v1/responses``, and gets the events of
the stream as messages. Requests of one ``stream_id`` are answered one after the other, those of different ones side by
side, and events carry it. A response that is not stored can be continued on the same connection. With
``"generate": false`` nothing is generated: the request is checked and becomes a response that can be continued.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import Any

import msgspec
from fastapi import APIRouter, WebSocket
from starlette.websockets import WebSocketDisconnect

from isogloss.errors import IsoglossError, RequestError
from isogloss.json_fields import Fields, invalid, kind_of
from isogloss.server.caller import caller_of
from isogloss.server.errors import defect_body, error_body
from isogloss.server.response_creation import prepare
from isogloss.server.response_run import ResponseRun
from isogloss.server.response_store import StoredResponse
from isogloss.server.service import Service

_log = logging.getLogger("isogloss.server")

MOST_LANES = 16
MOST_WAITING = 32
"""Requests of one lane that may wait; a client that sends more is not read until they are answered."""

_KEPT = 32
"""Responses that are not stored and can be continued: the newest of a connection."""

_Body = dict[str, Any]


def responses_websocket(service: Service) -> APIRouter:
    router = APIRouter()

    @router.websocket("/v1/responses")
    async def connect(websocket: WebSocket) -> None:
        await websocket.accept()
        connection = _Connection(service, websocket)
        try:
            await connection.serve()
        except WebSocketDisconnect:
            pass
        finally:
            await connection.close()

    return router


class _Connection:
    """One client."""

    def __init__(self, service: Service, websocket: WebSocket) -> None:
        self._service = service
        self._websocket = websocket
        self._owner = caller_of(websocket).name
        self._known: OrderedDict[str, StoredResponse] = OrderedDict()
        self._lanes: dict[str | None, tuple[asyncio.Queue[_Body], asyncio.Task[None]]] = {}
        self._sending = asyncio.Lock()

    async def serve(self) -> None:
        """Read requests until the client goes away. Raises `WebSocketDisconnect`."""
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                raise WebSocketDisconnect(message.get("code", 1000))
            lane: str | None = None
            try:
                body = _decoded(message.get("text") or message.get("bytes") or "")
                lane = Fields(body, "").optional_string("stream_id")
                await self._queue(lane).put(body)
            except IsoglossError as error:
                await self._send_error(error, lane)

    async def close(self) -> None:
        """Stop everything."""
        tasks = [task for _, task in self._lanes.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _queue(self, lane: str | None) -> asyncio.Queue[_Body]:
        if lane not in self._lanes:
            if len(self._lanes) >= MOST_LANES:
                message = f"At most {MOST_LANES} streams can share a connection."
                raise invalid(message, "/stream_id", "invalid_stream_id")
            queue: asyncio.Queue[_Body] = asyncio.Queue(MOST_WAITING)
            self._lanes[lane] = queue, asyncio.create_task(self._answer_all(lane, queue))
        return self._lanes[lane][0]

    async def _answer_all(self, lane: str | None, queue: asyncio.Queue[_Body]) -> None:
        while True:
            body = await queue.get()
            try:
                await self._answer(lane, body)
            except IsoglossError as error:
                await self._send_error(error, lane)
            except (WebSocketDisconnect, RuntimeError):
                return  # the client is gone
            except Exception:
                _log.exception("A request of a WebSocket failed")
                await self._send({"type": "error", "status": 500, "error": defect_body()}, lane)

    async def _answer(self, lane: str | None, body: _Body) -> None:
        fields = Fields(body, "")
        fields.choice("type", ("response.create",))
        if fields.boolean("background", False):
            raise invalid("Background responses cannot be made over a WebSocket.", "/background")
        generates = fields.boolean("generate", True)
        own = {"type", "stream_id", "generate", "stream"}
        asked = {name: value for name, value in body.items() if name not in own}
        run = await prepare(self._service, self._owner, asked, self._known)
        if generates:
            await run.begin()
            await self._send_events(lane, run)
        else:
            await self._send_prepared(lane, run)
        if not run.asked.store:
            self._known[run.id] = run.stored
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)

    async def _send_events(self, lane: str | None, run: ResponseRun) -> None:
        try:
            async for event in run.events():
                await self._send(event, lane)
        finally:
            await run.close()

    async def _send_prepared(self, lane: str | None, run: ResponseRun) -> None:
        """A response without output, as it can be continued."""
        for event in await run.without_output():
            await self._send(event, lane)

    async def _send_error(self, error: IsoglossError, lane: str | None) -> None:
        await self._send({"type": "error", "status": error.status, "error": error_body(error)}, lane)

    async def _send(self, event: dict[str, Any], lane: str | None) -> None:
        told = event if lane is None else {**event, "stream_id": lane}
        data = msgspec.json.encode(told).decode()
        async with self._sending:
            await self._websocket.send_text(data)


def _decoded(message: str | bytes) -> _Body:
    try:
        body = msgspec.json.decode(message)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RequestError(f"The message is not valid JSON: {error}", code="invalid_json") from None
    if not isinstance(body, dict):
        raise RequestError(f"Expected `object` as the message, got `{kind_of(body)}`", code="invalid_json")
    return body
