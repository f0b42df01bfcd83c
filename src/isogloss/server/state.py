"""All that a server keeps beyond a request: responses, conversations, chat completions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import sqlalchemy as sa
from cryptography.fernet import Fernet
from sqlalchemy.ext.asyncio import AsyncConnection

from isogloss.server.completion_store import CompletionStore
from isogloss.server.conversation_store import ConversationStore
from isogloss.server.database import MEMORY, Database
from isogloss.server.lease import Lease
from isogloss.server.response_store import ResponseStore
from isogloss.server.seal import Seal
from isogloss.server.tables import COMPLETION_METADATA, COMPLETIONS, CONVERSATIONS, EVENTS, ITEMS, RESPONSES, SECRETS

KEPT_IN_MEMORY = 10_000
"""How many responses, and how many completions, a database in memory holds; the oldest go first."""

_SEAL = "seal"
_AT_ONCE = 500
"""How many responses are forgotten in one transaction."""


class State:
    """What is kept in the database at ``url``, for at most ``keep_seconds``."""

    def __init__(self, url: str, keep_seconds: float) -> None:
        self.database = Database(url)
        self.lease = Lease(self.database)
        self.responses = ResponseStore(self.database, self.lease)
        self.conversations = ConversationStore(self.database)
        self.completions = CompletionStore(self.database)
        self.seal = Seal()
        self._keep_seconds = keep_seconds
        self._most_kept = KEPT_IN_MEMORY if url == MEMORY else None

    async def start(self, at_each_look: Callable[[], Awaitable[object]]) -> None:
        """Open the database, and fail what dead servers were making. Raises `StateUnavailableError`.

        ``at_each_look`` is awaited whenever this server looks for what others did.
        """
        await self.database.start()
        self.seal.key = await self.database.run(self._seal_key)

        async def look() -> None:
            await self._tidy()
            await at_each_look()

        await self.lease.start(look)

    async def close(self) -> None:
        await self.lease.close()
        await self.database.close()

    async def check(self) -> None:
        """Return when the database answers. Raises `StateUnavailableError`."""
        await self.database.run(lambda c: c.execute(sa.select(1)))

    async def _tidy(self) -> None:
        await self.responses.fail_orphans()
        await self.database.run(self._forget_the_old)

    async def _forget_the_old(self, connection: AsyncConnection) -> None:
        limit = self.database.now - self._keep_seconds
        old = sa.select(RESPONSES.c.id).where(self._is_old(RESPONSES) & RESPONSES.c.server_id.is_(None))
        ids = [row.id for row in await connection.execute(old.limit(_AT_ONCE))]
        if ids:
            for table, key in (
                (EVENTS, EVENTS.c.response_id),
                (ITEMS, ITEMS.c.response_id),
                (RESPONSES, RESPONSES.c.id),
            ):
                await connection.execute(sa.delete(table).where(key.in_(ids)))
        past = sa.select(COMPLETIONS.c.id).where(self._is_old(COMPLETIONS))
        await connection.execute(sa.delete(COMPLETION_METADATA).where(COMPLETION_METADATA.c.completion_id.in_(past)))
        await connection.execute(sa.delete(COMPLETIONS).where(self._is_old(COMPLETIONS)))
        gone = sa.select(CONVERSATIONS.c.id).where(CONVERSATIONS.c.used_at < limit)
        await connection.execute(sa.delete(ITEMS).where(ITEMS.c.conversation_id.in_(gone)))
        await connection.execute(sa.delete(CONVERSATIONS).where(CONVERSATIONS.c.used_at < limit))

    def _is_old(self, table: sa.Table) -> sa.ColumnElement[bool]:
        is_old: sa.ColumnElement[bool] = table.c.created_at < self.database.now - self._keep_seconds
        if self._most_kept is None:
            return is_old
        newest = sa.select(sa.func.max(table.c.sequence)).scalar_subquery()
        return is_old | (table.c.sequence <= newest - self._most_kept)

    async def _seal_key(self, connection: AsyncConnection) -> bytes:
        """The key that all servers of this database seal with, made by the first of them."""
        if not self.database.is_sqlite:
            await connection.execute(sa.text("LOCK TABLE secrets IN EXCLUSIVE MODE"))
        known = await connection.scalar(sa.select(SECRETS.c.value).where(SECRETS.c.name == _SEAL))
        if known is not None:
            return bytes(known)
        key = Fernet.generate_key()
        await connection.execute(sa.insert(SECRETS).values(name=_SEAL, value=key))
        return key
