"""Several servers of one model: which of them gets the next request, and what becomes of one that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence

from isogloss.engines._endpoint import Endpoint
from isogloss.errors import EngineCapabilityError, EngineError, EngineUnavailableError

CHECK_EVERY = 5.0
"""Seconds between two greetings of a server that is down."""


class Replicas:
    """The servers, of which those that answer take turns by how much they have to do.

    ``greet`` finds out whether a server is up and is one of these; it raises `EngineError` when not. One that fails is
    greeted again and again in the background and comes back when it answers.
    """

    def __init__(self, endpoints: Sequence[Endpoint], greet: Callable[[Endpoint], Awaitable[None]]) -> None:
        self._endpoints = endpoints
        self._greet = greet
        self._down: dict[Endpoint, EngineError] = {}
        self._recoveries: dict[Endpoint, asyncio.Task[None]] = {}

    async def start(self) -> None:
        """Greet all of them, one after the other: the first that answers says what the others must be.

        Raises `EngineError` when none answers, or one is no replica of the others.
        """
        for endpoint in self._endpoints:
            try:
                await self._greet(endpoint)
            except EngineCapabilityError:
                raise
            except EngineError as error:
                self._down[endpoint] = error
        if len(self._down) == len(self._endpoints):
            raise next(iter(self._down.values()))
        for endpoint in self._down:
            self._recover(endpoint)

    async def close(self) -> None:
        """Stop greeting and close the connections."""
        tasks = list(self._recoveries.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for endpoint in self._endpoints:
            await endpoint.close()

    def in_turn(self) -> Iterator[Endpoint]:
        """Each of them once, the one with the least to do first; those that are down last."""
        waiting = list(self._endpoints)
        while waiting:
            chosen = min(waiting, key=lambda endpoint: (endpoint in self._down, endpoint.running))
            waiting.remove(chosen)
            yield chosen

    def first_up(self) -> Endpoint:
        """One that answers, as far as is known. Raises `EngineUnavailableError` with the reason of the first."""
        chosen = next(self.in_turn())
        if chosen in self._down:
            raise EngineUnavailableError(self._down[chosen].message)
        return chosen

    def failed(self, endpoint: Endpoint, error: EngineError) -> None:
        """This one did not answer."""
        self._down[endpoint] = error
        self._recover(endpoint)

    def answered(self, endpoint: Endpoint) -> None:
        """This one did."""
        self._down.pop(endpoint, None)

    def _recover(self, endpoint: Endpoint) -> None:
        if endpoint not in self._recoveries:
            task = asyncio.create_task(self._greet_until_up(endpoint))
            self._recoveries[endpoint] = task
            task.add_done_callback(lambda _: self._recoveries.pop(endpoint, None))

    async def _greet_until_up(self, endpoint: Endpoint) -> None:
        while endpoint in self._down:
            await asyncio.sleep(CHECK_EVERY)
            try:
                await self._greet(endpoint)
            except EngineError as error:
                self._down[endpoint] = error
            else:
                self.answered(endpoint)
