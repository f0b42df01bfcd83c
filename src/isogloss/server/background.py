"""Responses that are made while nobody waits: they go on without their client, and can be followed and cancelled."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator

from isogloss.server.errors import NotFoundError
from isogloss.server.journal import Recording
from isogloss.server.response_run import ResponseRun
from isogloss.server.response_store import ResponseStore, StoredResponse

_log = logging.getLogger("isogloss.server")

_LOOK_AGAIN = 0.5
"""Seconds after which a follower looks again for what another server may have written."""


class Background:
    """The background responses that this server makes."""

    def __init__(self, store: ResponseStore) -> None:
        self._store = store
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._recordings: dict[str, Recording] = {}

    async def start(self, run: ResponseRun) -> None:
        """Keep the response as queued, then make it."""
        assert isinstance(run.journal, Recording)
        await run.journal.begin(run.stored)
        self._recordings[run.id] = run.journal
        task = self._tasks[run.id] = asyncio.create_task(self._make(run))
        task.add_done_callback(lambda _: self._forget(run.id))

    async def cancel(self, owner: str, response_id: str) -> StoredResponse | None:
        """Cancel a response, whichever server makes it; that server notices when it next writes or looks."""
        cancelled = await self._store.cancel(owner, response_id)
        if cancelled is not None:
            self._stop(response_id)
        return cancelled

    async def follow(self, owner: str, response_id: str, after: int) -> AsyncGenerator[bytes, None]:
        """The events of a stream that have a higher number than ``after``, to its end, each as JSON.

        Nothing is held for a slow reader: what it has not read is in the database.
        """
        is_running = True
        while True:
            recording = self._recordings.get(response_id)
            written = None if recording is None else recording.written
            events = await self._store.events(response_id, after)
            for number, data in events:
                after = number
                yield data
            if events:
                continue
            if not is_running:
                return
            stored = await self._store.get(owner, response_id)
            is_running = stored is not None and stored.is_running
            if is_running:
                await _either(written, _LOOK_AGAIN)

    async def drop_lost(self) -> None:
        """Stop making what was cancelled or deleted at another server."""
        if self._tasks:
            mine = await self._store.still_mine(list(self._tasks))
            for response_id in [name for name in self._tasks if name not in mine]:
                self._stop(response_id)

    async def close(self, seconds: float) -> None:
        """Let the responses come to their ends for so long, then cancel them."""
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=seconds)
        for task in list(self._tasks.values()):
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _make(self, run: ResponseRun) -> None:
        try:
            async for _ in run.events():
                pass
        except Exception:
            _log.exception("A background response failed")

    def _stop(self, response_id: str) -> None:
        task = self._tasks.get(response_id)
        if task is not None:
            task.cancel()

    def _forget(self, response_id: str) -> None:
        self._tasks.pop(response_id, None)
        self._recordings.pop(response_id, None)


async def _either(event: asyncio.Event | None, seconds: float) -> None:
    if event is None:
        await asyncio.sleep(seconds)
        return
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({waiting}, timeout=seconds)
    finally:
        waiting.cancel()


def not_found(response_id: str) -> NotFoundError:
    return NotFoundError(f"Response with id '{response_id}' not found.", code="response_not_found")
