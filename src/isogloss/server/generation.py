"""Several turns of the model at once, as one stream; and work that ends when the client goes away.

Each turn runs in a task of its own: when the stream is closed, or fails, the tasks are cancelled once and can clean up
after themselves, whatever became of the request that they were for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

from fastapi import Request

from isogloss.chat import Turn, Update
from isogloss.errors import EngineTimeoutError, IsoglossError
from isogloss.events import Malformed
from isogloss.server.service import Service

_WAITING = 256
"""How many updates may wait for a slow client before the engine has to."""

_Result = TypeVar("_Result")
_Said = tuple[int, Update | BaseException | None]
"""The position of a turn, and what it says: an update, the error that ended it, or that it is over."""

Batch = Sequence[tuple[int, Update]]
"""Updates that came together, each with the position of its turn; at least one."""


class ClientGoneError(Exception):
    """The client closed the connection before it got its answer."""


async def updates_of(service: Service, turns: Sequence[Turn]) -> AsyncGenerator[Batch, None]:
    """The updates of all turns as they come: each time, all that are there. The first error ends them all.

    Each turn waits for its place at the engine. Raises `OverloadedError` when too many wait, `EngineTimeoutError` when
    a turn takes too long, and what the turns raise.
    """
    queue = _Queue()
    tasks = [asyncio.create_task(_feed(service, position, turn, queue)) for position, turn in enumerate(turns)]
    running = len(tasks)
    try:
        while running:
            batch: list[tuple[int, Update]] = []
            failure: BaseException | None = None
            for position, said in await queue.take():
                if isinstance(said, Update):
                    batch.append((position, said))
                elif said is None:
                    running -= 1
                else:
                    failure = said
                    break
            if batch:
                yield batch
            if failure is not None:
                raise failure
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Queue:
    """What turns say, for one reader. To put something in is a call, and waits for nothing: whoever says much asks for
    `room`. It is there for every token, and `asyncio.Queue` takes several times as long."""

    def __init__(self) -> None:
        self._said: list[_Said] = []
        self._arrival: asyncio.Future[None] | None = None
        self._room = asyncio.Event()

    def put(self, said: _Said) -> None:
        self._said.append(said)
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    @property
    def is_full(self) -> bool:
        return len(self._said) >= _WAITING

    async def room(self) -> None:
        """Wait until it is not full."""
        while self.is_full:
            self._room.clear()
            await self._room.wait()

    async def take(self) -> list[_Said]:
        """All that was said since the last time, in order; waits until there is something."""
        if not self._said:
            self._arrival = asyncio.get_running_loop().create_future()
            await self._arrival
        said, self._said = self._said, []
        self._room.set()
        return said


async def _feed(service: Service, position: int, turn: Turn, queue: _Queue) -> None:
    limit = service.options.timeout_seconds
    try:
        await asyncio.wait_for(_run(service, position, turn, queue), limit)
    except asyncio.TimeoutError:
        queue.put((position, EngineTimeoutError(f"The generation took longer than {limit:g} seconds")))
    except Exception as error:
        service.metrics.failures.labels(error.code if isinstance(error, IsoglossError) else "defect").inc()
        queue.put((position, error))
    else:
        queue.put((position, None))


async def _run(service: Service, position: int, turn: Turn, queue: _Queue) -> None:
    metrics = service.metrics
    asked = time.perf_counter()
    is_first = True
    async with service.admission.place(), aclosing(turn.updates()) as updates:
        async for update in updates:
            if is_first:
                metrics.first_token_seconds.observe(time.perf_counter() - asked)
                is_first = False
            if isinstance(update.event, Malformed):
                metrics.malformed.labels(service.chat.dialect.name).inc()
            queue.put((position, update))
            if queue.is_full:
                await queue.room()
    counted = {
        "prompt": turn.usage.prompt_tokens,
        "cached": turn.usage.cached_tokens,
        "completion": turn.usage.completion_tokens,
        "reasoning": turn.reasoning_tokens,
    }
    for kind, count in counted.items():
        metrics.tokens.labels(kind).inc(count)


async def while_connected(request: Request, work: Coroutine[Any, Any, _Result]) -> _Result:
    """The result of ``work``, which is cancelled when the client goes away. Raises `ClientGoneError` then."""
    task = asyncio.create_task(work)
    watch = asyncio.create_task(_disconnected(request))
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGoneError
        return task.result()
    finally:
        task.cancel()
        watch.cancel()
        await asyncio.gather(task, watch, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
