"""What is kept of a response while it is made, depending on how it was asked for.

A response, an item that is done and an end are kept before a client is told of them, and so is every event of a
background response: when the process is killed, none of these is lost. The deltas of an item that was not done go with
the process, as they go when a response fails or is cancelled: half an item is no part of a response.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

import msgspec

from isogloss.server.response_store import ResponseStore, StoredResponse

StreamMessage = dict[str, Any]
"""An event of a stream as it is sent, with its type and number."""

_MOST_PENDING = 1024
"""Events that may wait for the database before the response has to."""


class LostResponseError(Exception):
    """The response was ended by somebody else: cancelled, deleted, or failed as that of a dead server."""


class Journal(Protocol):
    """All raise `LostResponseError`."""

    async def begin(self, response: StoredResponse) -> None:
        """The response is going to be made."""

    async def add(self, event: StreamMessage, response: StoredResponse) -> None:
        """An event that is going to be sent, and how far the response came."""

    async def end(self, event: StreamMessage, response: StoredResponse) -> None:
        """The last event, and the response as it ended."""


class Forgotten:
    """Of a response that is not to be stored nothing is kept."""

    async def begin(self, response: StoredResponse) -> None: ...

    async def add(self, event: StreamMessage, response: StoredResponse) -> None: ...

    async def end(self, event: StreamMessage, response: StoredResponse) -> None: ...


class Checkpoints:
    """Of a response that somebody waits for the finished items are kept as they come."""

    def __init__(self, store: ResponseStore, owner: str, conversation_id: str | None) -> None:
        self._store = store
        self._owner = owner
        self._conversation_id = conversation_id

    async def begin(self, response: StoredResponse) -> None:
        await self._store.begin(self._owner, response)

    async def add(self, event: StreamMessage, response: StoredResponse) -> None:
        if event["type"] == "response.output_item.done" and not await self._store.advance(response.id, response.body):
            raise LostResponseError

    async def end(self, event: StreamMessage, response: StoredResponse) -> None:
        if not await self._store.end(self._owner, response, self._conversation_id):
            raise LostResponseError


class Recording:
    """Of a background response every event is kept, so that its stream can be followed from anywhere at any time.

    Events are written together that came while the ones before them were written. ``written`` is set, and replaced,
    whenever there is something new to read.
    """

    def __init__(self, store: ResponseStore, owner: str, conversation_id: str | None) -> None:
        self.written = asyncio.Event()
        self._store = store
        self._owner = owner
        self._conversation_id = conversation_id
        self._pending: list[tuple[int, bytes]] = []
        self._body: dict[str, Any] | None = None
        self._writing: asyncio.Task[bool] | None = None

    async def begin(self, response: StoredResponse) -> None:
        await self._store.begin(self._owner, response)

    async def add(self, event: StreamMessage, response: StoredResponse) -> None:
        self._pending.append((event["sequence_number"], msgspec.json.encode(event)))
        if event["type"] in ("response.in_progress", "response.output_item.done"):
            self._body = dict(response.body)
        if self._writing is None or self._writing.done():
            await self._settle()
            self._writing = asyncio.create_task(self._write(response.id))
        elif len(self._pending) >= _MOST_PENDING:
            await self._settle()

    async def end(self, event: StreamMessage, response: StoredResponse) -> None:
        await self._settle()
        events = [*self._pending, (event["sequence_number"], msgspec.json.encode(event))]
        is_mine = await self._store.end(self._owner, response, self._conversation_id, events)
        self._tell()
        if not is_mine:
            raise LostResponseError

    async def _write(self, response_id: str) -> bool:
        while self._pending:
            batch, self._pending = self._pending, []
            body, self._body = self._body, None
            if not await self._store.advance(response_id, body, batch):
                return False
            self._tell()
        return True

    async def _settle(self) -> None:
        """Wait for what is being written."""
        if self._writing is not None and not await self._writing:
            raise LostResponseError

    def _tell(self) -> None:
        written, self.written = self.written, asyncio.Event()
        written.set()
