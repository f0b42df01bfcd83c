"""Which server makes which response: a server is alive as long as it says so, and what a dead one left is failed.

Every server has a row that it renews. A server on the same machine is known to be dead as soon as its process is gone;
any other when it was silent for `SILENCE` seconds by the database's clock.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from isogloss.server.database import Database, StateUnavailableError
from isogloss.server.tables import SERVERS

_log = logging.getLogger("isogloss.server")

PERIOD = 5.0
"""Seconds between two signs of life."""

SILENCE = 30.0
"""Seconds after which a server that gave no sign is taken for dead."""

_living: set[str] = set()
"""The servers of this process."""


class Lease:
    """This server's sign of life. ``at_each_sign`` is awaited with every one of them."""

    def __init__(self, database: Database) -> None:
        self.server_id = secrets.token_hex(8)
        self._database = database
        self._renewal: asyncio.Task[None] | None = None

    async def start(self, at_each_sign: Callable[[], Awaitable[object]]) -> None:
        _living.add(self.server_id)
        await self._database.run(self._sign)
        await at_each_sign()
        self._renewal = asyncio.create_task(self._renew(at_each_sign))

    async def close(self) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._renewal
        _living.discard(self.server_id)
        with contextlib.suppress(StateUnavailableError):
            await self._database.run(lambda c: c.execute(sa.delete(SERVERS).where(SERVERS.c.id == self.server_id)))

    async def living(self, connection: AsyncConnection) -> list[str]:
        """The ids of the servers that are alive; the rows of the others are deleted."""
        rows = await connection.execute(sa.select(SERVERS, (self._database.now - SERVERS.c.seen_at).label("silence")))
        alive: list[str] = []
        dead: list[str] = []
        for row in rows:
            is_gone = row.silence > SILENCE or _is_gone(row.id, row.place, row.pid)
            (dead if is_gone and row.id != self.server_id else alive).append(row.id)
        if dead:
            await connection.execute(sa.delete(SERVERS).where(SERVERS.c.id.in_(dead)))
        return alive

    async def _renew(self, at_each_sign: Callable[[], Awaitable[object]]) -> None:
        while True:
            await asyncio.sleep(PERIOD)
            try:
                await self._database.run(self._sign)
                await at_each_sign()
            except StateUnavailableError as error:
                _log.error("%s", error)

    async def _sign(self, connection: AsyncConnection) -> None:
        mine = SERVERS.c.id == self.server_id
        renewed = await connection.execute(sa.update(SERVERS).where(mine).values(seen_at=self._database.now))
        if renewed.rowcount == 0:
            await connection.execute(
                sa.insert(SERVERS).values(
                    id=self.server_id, place=_place(), pid=os.getpid(), seen_at=self._database.now
                )
            )


def _is_gone(server_id: str, place: str, pid: int) -> bool:
    """Whether the process of that server is known to be gone."""
    if place != _place():
        return False
    if pid == os.getpid():
        return server_id not in _living
    if sys.platform == "win32":
        return False  # there, signal 0 is a signal
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _place() -> str:
    """The machine, its boot and its space of process ids, as far as the platform tells: where a pid means something."""
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)
