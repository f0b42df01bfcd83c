"""The WebSocket transport of Open Responses on ``/v1/responses``.

A client sends ``{"type": "response.create", ...}`` with the fields of ``POST /v1/responses``, and gets the events of
the stream as messages. Requests of one ``stream_id`` are answered one after the other, those of different ones side by
side, and events carry it. A response that is not stored can be continued on the same connection, until a request that
continues it fails. With ``"generate": false`` nothing is generated: the request is checked and becomes a response that
can be continued. When the server stops, what it answers is answered to its end, and the connection is closed with
`RESTART`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from typing import Any

import msgspec
from fastapi import APIRouter, WebSocket
from starlette.websockets import WebSocketDisconnect

from isogloss.errors import IsoglossError
from isogloss.json_fields import Fields, invalid
from isogloss.server.caller import caller_of
from isogloss.server.errors import defect_body, error_body
from isogloss.server.request_body import decoded_object
from isogloss.server.response_creation import prepare
from isogloss.server.response_run import ResponseRun
from isogloss.server.response_store import StoredResponse
from isogloss.server.service import Service

_log = logging.getLogger("isogloss.server")

RESTART = 1012
"""The close code that says that the server stops, and may be there again soon."""

MOST_LANES = 16
MOST_WAITING = 32
"""Requests of one lane that may wait; a client that sends more is not read until they are answered."""

_KEPT = 32
"""Responses that are not stored and can be continued: the newest of a connection."""

_OWN_FIELDS = frozenset({"type", "stream_id", "generate", "stream"})
"""What is said to the connection, not to the API."""

_Body = dict[str, Any]


def responses_websocket(service: Service) -> APIRouter:
    router = APIRouter()

    @router.websocket("/v1/responses")
    async def connect(websocket: WebSocket) -> None:
        await websocket.accept()
        connection = _Connection(service, websocket)
        try:
            await connection.serve()
        except WebSocketDisconnect as gone:
            if gone.code == RESTART:
                await connection.finish()
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
        self._answering: set[str | None] = set()
        self._is_stopping = False

    async def serve(self) -> None:
        """Read requests until the client goes away. Raises `WebSocketDisconnect`."""
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                raise WebSocketDisconnect(message.get("code", 1000))
            lane: str | None = None
            try:
                body = decoded_object(message.get("text") or message.get("bytes") or "", "message")
                lane = Fields(body, "").optional_string("stream_id")
                await self._queue(lane).put(body)
            except IsoglossError as error:
                await self._send_error(error, lane)

    async def finish(self) -> None:
        """Answer what is being answered to its end, begin nothing more, and close the connection."""
        self._is_stopping = True
        for lane, (_, task) in self._lanes.items():
            if lane not in self._answering:
                task.cancel()
        await asyncio.gather(*[task for _, task in self._lanes.values()], return_exceptions=True)
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # the client may be gone
            await self._websocket.close(RESTART, "The server is stopping.")

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
        while not self._is_stopping:
            body = await queue.get()
            self._answering.add(lane)
            try:
                await self._answer(lane, body)
            except IsoglossError as error:
                await self._send_error(error, lane)
            except (WebSocketDisconnect, RuntimeError):
                return  # the client is gone
            except Exception:
                _log.exception("A request of a WebSocket failed")
                await self._send({"type": "error", "status": 500, "error": defect_body()}, lane)
            finally:
                self._answering.discard(lane)

    async def _answer(self, lane: str | None, body: _Body) -> None:
        fields = Fields(body, "")
        continued = fields.optional_string("previous_response_id")
        try:
            run = await self._run(lane, fields)
        except IsoglossError:
            self._forget(continued)
            raise
        if run.response.status == "failed":
            self._forget(continued)
        if not run.asked.store:
            self._known[run.id] = run.stored
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)

    async def _run(self, lane: str | None, fields: Fields) -> ResponseRun:
        """The response to a request, once it was sent."""
        fields.choice("type", ("response.create",))
        if fields.boolean("background", False):
            raise invalid("Background responses cannot be made over a WebSocket.", "/background")
        asked = {name: value for name, value in fields.members.items() if name not in _OWN_FIELDS}
        run = await prepare(self._service, self._owner, asked, self._known)
        if fields.boolean("generate", True):
            await run.begin()
            await self._send_events(lane, run)
        else:
            await self._send_prepared(lane, run)
        return run

    def _forget(self, response_id: str | None) -> None:
        """What could not be continued is not there to be tried again."""
        if response_id is not None:
            self._known.pop(response_id, None)

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
