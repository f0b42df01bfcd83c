"""Server-sent events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable

import msgspec
from fastapi.responses import StreamingResponse
from starlette.types import Send

DONE = b"data: [DONE]\n\n"

_encode = msgspec.json.encode


def event(data: object) -> bytes:
    """One event with JSON data."""
    return b"data: " + _encode(data) + b"\n\n"


def named_event(name: str, data: bytes) -> bytes:
    """One event of that name, whose data is JSON already."""
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"


class EventStream(StreamingResponse):
    """Sends events as they are made. ``close`` is awaited in the end, though the client went away before the start."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[bytes, None], close: Callable[[], Awaitable[None]] | None = None) -> None:
        super().__init__(events, headers={"cache-control": "no-cache", "x-accel-buffering": "no"})
        self._events = events
        self._close = close

    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        finally:
            try:
                await self._events.aclose()
            finally:
                if self._close is not None:
                    await self._close()
