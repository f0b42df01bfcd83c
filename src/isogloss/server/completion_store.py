"""Where chat completions are kept whose requests said ``store``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from isogloss.server.database import Database
from isogloss.server.paging import Asked, Page
from isogloss.server.tables import COMPLETION_METADATA, COMPLETIONS

_encode = msgspec.json.encode
_decode = msgspec.json.decode

Completion = dict[str, Any]


class CompletionStore:
    """Keeps chat completions by id and owner, each as the object that was sent, with its ``metadata``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, owner: str, completion: Completion, messages: Sequence[dict[str, Any]]) -> None:
        """``messages`` are those of the request, each with an id."""
        row = {"id": completion["id"], "owner": owner, "model": completion["model"]}
        data = {"body": _encode(completion).decode(), "messages": _encode(messages).decode()}

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(sa.insert(COMPLETIONS).values(**row, **data, created_at=self._database.now))
            await _insert_metadata(connection, completion)

        await self._database.run(work)

    async def get(self, owner: str, completion_id: str) -> Completion | None:
        return await self._database.run(lambda c: self._find(c, owner, completion_id))

    async def messages(self, owner: str, completion_id: str) -> list[dict[str, Any]] | None:
        wanted = sa.select(COMPLETIONS.c.messages).where(_mine(owner, completion_id))
        row = (await self._database.run(lambda c: c.execute(wanted))).first()
        return None if row is None else _decode(row.messages)

    async def page(self, owner: str, asked: Asked, model: str | None, metadata: Mapping[str, str]) -> Page:
        """Some of the completions: of that model, and with all of that metadata. Raises `NotFoundError`."""
        listed = sa.select(COMPLETIONS.c.sequence, COMPLETIONS.c.body.label("data")).where(COMPLETIONS.c.owner == owner)
        if model is not None:
            listed = listed.where(COMPLETIONS.c.model == model)
        for key, value in metadata.items():
            entry = COMPLETION_METADATA.alias()
            is_there = (entry.c.completion_id == COMPLETIONS.c.id) & (entry.c.name == key) & (entry.c.value == value)
            listed = listed.where(sa.exists().where(is_there))
        return await self._database.run(lambda c: asked.select(c, listed, COMPLETIONS.c.id, COMPLETIONS.c.sequence))

    async def update(self, owner: str, completion_id: str, metadata: Mapping[str, str]) -> Completion | None:
        async def work(connection: AsyncConnection) -> Completion | None:
            found = await self._find(connection, owner, completion_id)
            if found is None:
                return None
            found["metadata"] = dict(metadata)
            changed = sa.update(COMPLETIONS).where(_mine(owner, completion_id))
            await connection.execute(changed.values(body=_encode(found).decode()))
            await _delete_metadata(connection, completion_id)
            await _insert_metadata(connection, found)
            return found

        return await self._database.run(work)

    async def delete(self, owner: str, completion_id: str) -> bool:
        """Whether there was one."""

        async def work(connection: AsyncConnection) -> bool:
            deleted = await connection.execute(sa.delete(COMPLETIONS).where(_mine(owner, completion_id)))
            if deleted.rowcount == 1:
                await _delete_metadata(connection, completion_id)
            return deleted.rowcount == 1

        return await self._database.run(work)

    async def _find(self, connection: AsyncConnection, owner: str, completion_id: str) -> Completion | None:
        wanted = sa.select(COMPLETIONS.c.body).where(_mine(owner, completion_id)).with_for_update()
        row = (await connection.execute(wanted)).first()
        return None if row is None else _decode(row.body)


async def _insert_metadata(connection: AsyncConnection, completion: Completion) -> None:
    entries = [
        {"completion_id": completion["id"], "name": name, "value": value}
        for name, value in completion["metadata"].items()
    ]
    if entries:
        await connection.execute(sa.insert(COMPLETION_METADATA), entries)


async def _delete_metadata(connection: AsyncConnection, completion_id: str) -> None:
    entries = COMPLETION_METADATA.c.completion_id == completion_id
    await connection.execute(sa.delete(COMPLETION_METADATA).where(entries))


def _mine(owner: str, completion_id: str) -> sa.ColumnElement[bool]:
    return (COMPLETIONS.c.id == completion_id) & (COMPLETIONS.c.owner == owner)
