"""Several turns of the model at once, as one stream; and work that ends when the client goes away.

Each turn runs in a task of its own: when the stream is closed, or fails, the tasks are cancelled once and can clean up
after themselves, whatever became of the request that they were for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

from fastapi import Request

from isogloss.chat import Turn, Update

_WAITING = 256
"""How many updates may wait for a slow client before the engine has to."""

_Result = TypeVar("_Result")


class ClientGoneError(Exception):
    """The client closed the connection before it got its answer."""


async def updates_of(turns: Sequence[Turn]) -> AsyncGenerator[tuple[int, Update], None]:
    """The updates of all turns as they come, each with the position of its turn. The first error ends them all."""
    queue: asyncio.Queue[tuple[int, Update | BaseException | None]] = asyncio.Queue(_WAITING)
    tasks = [asyncio.create_task(_feed(position, turn, queue)) for position, turn in enumerate(turns)]
    running = len(tasks)
    try:
        while running:
            position, update = await queue.get()
            if update is None:
                running -= 1
            elif isinstance(update, BaseException):
                raise update
            else:
                yield position, update
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _feed(position: int, turn: Turn, queue: asyncio.Queue[tuple[int, Update | BaseException | None]]) -> None:
    try:
        async with aclosing(turn.updates()) as updates:
            async for update in updates:
                await queue.put((position, update))
    except Exception as error:
        await queue.put((position, error))
    else:
        await queue.put((position, None))


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
