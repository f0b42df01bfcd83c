"""Server-sent events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable

import msgspec
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

DONE = b"data: [DONE]\n\n"

_encode = msgspec.json.encode

DIRECT = "isogloss.send"
"""Key of a scope: the ``send`` for the bodies of streams. What is between it and a route looks at the start of an
answer only, and would cost every token a call each."""

_HOLE = b"\0"
HOLE = msgspec.Raw(_HOLE)
"""Stands in a `Template` for the value that changes."""


def event(data: object) -> bytes:
    """One event with JSON data."""
    return b"data: " + _encode(data) + b"\n\n"


def named_event(name: str, data: bytes) -> bytes:
    """One event of that name, whose data is JSON already."""
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"


class Template:
    """An event, with JSON data, of which one value changes. What stays is encoded once."""

    __slots__ = ("_head", "_tail")

    def __init__(self, data: object) -> None:
        self._head, _, self._tail = event(data).partition(_HOLE)  # the only one: a string's NUL is escaped

    def event(self, value: object) -> bytes:
        """The event with that value."""
        return b"".join((self._head, _encode(value), self._tail))


class EventStream(StreamingResponse):
    """Sends events as they are made. ``close`` is awaited in the end, though the client went away before the start."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[bytes, None], close: Callable[[], Awaitable[None]] | None = None) -> None:
        super().__init__(events, headers={"cache-control": "no-cache", "x-accel-buffering": "no"})
        self._events = events
        self._close = close
        self._send_body: Send | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._send_body = scope.get(DIRECT, send)
        await super().__call__(scope, receive, send)

    async def stream_response(self, send: Send) -> None:
        assert self._send_body is not None
        send_body = self._send_body
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for data in self._events:
                await send_body({"type": "http.response.body", "body": data, "more_body": True})
            await send_body({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            try:
                await self._events.aclose()
            finally:
                if self._close is not None:
                    await self._close()
