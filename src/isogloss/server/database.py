"""The database of the server's state: SQLite by default, in a file or in memory, PostgreSQL by URL. One code path.

Work is done in transactions that a cancelled request cannot break off in the middle.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool

from isogloss.errors import IsoglossError, RequestError

MEMORY = "memory"
"""The URL of a database that lives as long as the process."""

_DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "postgres": "postgresql+asyncpg",
    "postgresql": "postgresql+asyncpg",
}
_NOW = {
    "sqlite": "(julianday('now') - 2440587.5) * 86400.0",
    "postgresql": "extract(epoch from clock_timestamp())::double precision",
}
"""The database's own clock, the one that all servers share."""

_MIGRATION_LOCK = 0x1506105
_BUSY_SECONDS = 30

_Result = TypeVar("_Result")


class StateUnavailableError(IsoglossError):
    """The database cannot be reached, or does not do what it is asked."""

    code = "state_unavailable"
    status = 503


def default_url() -> str:
    """A SQLite file in the user's state directory: ``$ISOGLOSS_STATE_DIR``, or where the platform keeps such files."""
    given = os.environ.get("ISOGLOSS_STATE_DIR")
    if given:
        return f"sqlite:///{Path(given) / 'server.sqlite'}"
    home = Path.home()
    if sys.platform == "darwin":
        folder = home / "Library" / "Application Support"
    elif sys.platform == "win32":
        folder = Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local"))
    else:
        folder = Path(os.environ.get("XDG_STATE_HOME", home / ".local" / "state"))
    return f"sqlite:///{folder / 'isogloss' / 'server.sqlite'}"


class Database:
    """A database by URL: ``memory``, ``sqlite:///PATH``, ``postgresql://...``. Raises `RequestError` for any other."""

    def __init__(self, url: str) -> None:
        parsed = _parse(url)
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        self.now: sa.ColumnElement[float] = sa.literal_column(_NOW[parsed.get_backend_name()], sa.Float())
        self._engine = _sqlite(parsed) if self.is_sqlite else create_async_engine(parsed, pool_pre_ping=True)
        sa.event.listen(self._engine.sync_engine, "before_cursor_execute", _refuse_nul)
        self._running: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        """Bring the tables to the newest revision. Raises `StateUnavailableError`."""
        if self.is_sqlite:
            _check_file(self._engine.url.database or ":memory:")

        async def migrate(connection: AsyncConnection) -> None:
            if not self.is_sqlite:
                await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
            await connection.run_sync(_migrate)

        await self.run(migrate)

    async def close(self) -> None:
        """Wait for what is being written, then let go."""
        while self._running:
            await asyncio.wait(self._running)
        await self._engine.dispose()

    async def run(self, work: Callable[[AsyncConnection], Awaitable[_Result]]) -> _Result:
        """Do ``work`` in one transaction. It is done whole even when the caller is cancelled meanwhile.

        Raises `StateUnavailableError`, and `RequestError` for a text that cannot be looked for.
        """
        task = asyncio.ensure_future(self._transaction(work))
        self._running.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    async def _transaction(self, work: Callable[[AsyncConnection], Awaitable[_Result]]) -> _Result:
        try:
            async with self._engine.begin() as connection:
                return await work(connection)
        except (SQLAlchemyError, OSError) as error:
            reason = getattr(error, "orig", None) or error
            raise StateUnavailableError(f"The server's database does not answer: {type(reason).__name__}") from error

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # told to whoever waits for it, if anybody still does


def _parse(url: str) -> URL:
    if url == MEMORY:
        return make_url("sqlite+aiosqlite:///:memory:")
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise RequestError("Expected `memory` or a database's URL for the store") from None
    backend = parsed.get_backend_name()
    if backend not in _DRIVERS:
        raise RequestError(f"Expected `memory`, `sqlite:` or `postgresql:` for the store, got `{backend}:`")
    return parsed.set(drivername=_DRIVERS[backend])


def _check_file(path: str) -> None:
    """The driver's thread outlives a file that it cannot open, so that is tried without it."""
    try:
        with contextlib.closing(sqlite3.connect(path)):
            pass
    except sqlite3.Error as error:
        raise StateUnavailableError(f"The server's database `{path}` cannot be opened: {error}") from error


def _sqlite(url: URL) -> AsyncEngine:
    """One connection, so that writers wait for each other here instead of polling a lock."""
    if url.database and url.database != ":memory:":
        with contextlib.suppress(OSError):  # a folder that cannot be made is told when the file is opened
            Path(url.database).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    engine = create_async_engine(url, poolclass=AsyncAdaptedQueuePool, pool_size=1, max_overflow=0, pool_timeout=300)

    @sa.event.listens_for(engine.sync_engine, "connect")
    def connected(connection: Any, _: object) -> None:
        connection.isolation_level = None  # transactions are begun below, not by the driver
        cursor = connection.cursor()
        for pragma in (f"busy_timeout = {_BUSY_SECONDS * 1000}", "journal_mode = WAL", "synchronous = NORMAL"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @sa.event.listens_for(engine.sync_engine, "begin")
    def begun(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def _refuse_nul(_: object, __: object, ___: str, parameters: Any, *____: object) -> None:
    """No id has the character NUL, which PostgreSQL takes in no text. JSON escapes it."""
    for row in parameters if isinstance(parameters, list) else [parameters]:
        for value in row.values() if isinstance(row, dict) else row:
            if isinstance(value, str) and "\0" in value:
                raise RequestError("Expected a text without NUL", code="invalid_value")


def _migrate(connection: sa.Connection) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
