"""Where conversations are kept: a list of items that requests can read and continue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from isogloss.server.database import Database
from isogloss.server.items import Item, insert_items, new_id, select_items
from isogloss.server.paging import Asked, Page
from isogloss.server.tables import CONVERSATIONS, ITEMS

_encode = msgspec.json.encode
_decode = msgspec.json.decode


class ConversationStore:
    """Keeps conversations by id and owner, each as the object that is sent."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, owner: str, metadata: Mapping[str, str], items: Sequence[Item]) -> dict[str, Any]:
        async def work(connection: AsyncConnection) -> dict[str, Any]:
            conversation_id = new_id("conv_")
            now = {"created_at": self._database.now, "used_at": self._database.now}
            fields = {"owner": owner, "metadata": _encode(metadata).decode(), **now}
            await connection.execute(sa.insert(CONVERSATIONS).values(id=conversation_id, **fields))
            await insert_items(connection, owner, items, conversation_id=conversation_id)
            created = await self._find(connection, owner, conversation_id)
            assert created is not None
            return created

        return await self._database.run(work)

    async def get(self, owner: str, conversation_id: str) -> dict[str, Any] | None:
        return await self._database.run(lambda c: self._find(c, owner, conversation_id))

    async def update(self, owner: str, conversation_id: str, metadata: Mapping[str, str]) -> dict[str, Any] | None:
        async def work(connection: AsyncConnection) -> dict[str, Any] | None:
            mine = _mine(owner, conversation_id)
            data = _encode(metadata).decode()
            await connection.execute(sa.update(CONVERSATIONS).where(mine).values(metadata=data))
            return await self._find(connection, owner, conversation_id)

        return await self._database.run(work)

    async def delete(self, owner: str, conversation_id: str) -> bool:
        """Delete a conversation with its items. Whether there was one."""

        async def work(connection: AsyncConnection) -> bool:
            deleted = await connection.execute(sa.delete(CONVERSATIONS).where(_mine(owner, conversation_id)))
            if deleted.rowcount == 1:
                await connection.execute(sa.delete(ITEMS).where(ITEMS.c.conversation_id == conversation_id))
            return deleted.rowcount == 1

        return await self._database.run(work)

    # Items

    async def items(self, owner: str, conversation_id: str) -> list[Item] | None:
        """All items, the oldest first; ``None`` when there is no such conversation."""

        async def work(connection: AsyncConnection) -> list[Item] | None:
            if await self._find(connection, owner, conversation_id) is None:
                return None
            held = sa.select(ITEMS.c.data).where(ITEMS.c.conversation_id == conversation_id)
            return [_decode(row.data) for row in await connection.execute(held.order_by(ITEMS.c.sequence))]

        return await self._database.run(work)

    async def page(self, conversation_id: str, asked: Asked) -> Page:
        """Some of the items. Raises `NotFoundError` when the item to begin after is none of them."""
        held = sa.select(ITEMS.c.sequence, ITEMS.c.data).where(ITEMS.c.conversation_id == conversation_id)
        return await self._database.run(lambda c: asked.select(c, held, ITEMS.c.id, ITEMS.c.sequence))

    async def add(self, owner: str, conversation_id: str, items: Sequence[Item]) -> None:
        used = sa.update(CONVERSATIONS).where(_mine(owner, conversation_id)).values(used_at=self._database.now)

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(used)
            await insert_items(connection, owner, items, conversation_id=conversation_id)

        await self._database.run(work)

    async def item(self, conversation_id: str, item_id: str) -> Item | None:
        held = sa.select(ITEMS.c.data).where(_held(conversation_id, item_id)).order_by(ITEMS.c.sequence.desc())
        row = (await self._database.run(lambda c: c.execute(held.limit(1)))).first()
        return None if row is None else _decode(row.data)

    async def delete_item(self, conversation_id: str, item_id: str) -> bool:
        """Whether there was one."""
        held = sa.delete(ITEMS).where(_held(conversation_id, item_id))
        return (await self._database.run(lambda c: c.execute(held))).rowcount > 0

    async def referred(self, owner: str, ids: Sequence[str]) -> Mapping[str, Item]:
        """Items by their ids, whether of a conversation or of a response."""
        return await self._database.run(lambda c: select_items(c, owner, ids))

    async def _find(self, connection: AsyncConnection, owner: str, conversation_id: str) -> dict[str, Any] | None:
        wanted = sa.select(CONVERSATIONS).where(_mine(owner, conversation_id))
        row = (await connection.execute(wanted)).mappings().first()
        if row is None:
            return None
        return {
            "id": row["id"],
            "object": "conversation",
            "created_at": int(row["created_at"]),
            "metadata": _decode(row["metadata"]),
        }


def _mine(owner: str, conversation_id: str) -> sa.ColumnElement[bool]:
    return (CONVERSATIONS.c.id == conversation_id) & (CONVERSATIONS.c.owner == owner)


def _held(conversation_id: str, item_id: str) -> sa.ColumnElement[bool]:
    return (ITEMS.c.conversation_id == conversation_id) & (ITEMS.c.id == item_id)
