"""The way to the engine: so many generations at once, so many waiting, and nothing beyond."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from isogloss.server.errors import OverloadedError


class Admission:
    """``most_running`` generations run, ``most_waiting`` wait for their turn in the order in which they came."""

    def __init__(self, most_running: int, most_waiting: int) -> None:
        self.running = 0
        self.waiting = 0
        self._most_waiting = most_waiting
        self._places = asyncio.Semaphore(most_running)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """A place at the engine, freed at the end of the block. Raises `OverloadedError`."""
        if self._places.locked() and self.waiting >= self._most_waiting:
            raise OverloadedError("The engine is overloaded with other requests. Please try again later.")
        self.waiting += 1
        try:
            await self._places.acquire()
        finally:
            self.waiting -= 1
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1
            self._places.release()
