"""Where responses are kept: as they are made, for `previous_response_id`, and for who asks for them again.

A response that is being made belongs to one server. Whatever that server writes about it is fenced: once the response
was ended by somebody else (cancelled, deleted, or failed because the server was taken for dead), it writes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from isogloss.server.database import Database
from isogloss.server.items import Item, insert_items
from isogloss.server.lease import Lease
from isogloss.server.tables import CONVERSATIONS, EVENTS, ITEMS, RESPONSES

_PAGE = 512
"""How many events are read at once."""

_encode = msgspec.json.encode
_decode = msgspec.json.decode

Body = dict[str, Any]


class StoredResponse(msgspec.Struct, frozen=True):
    """A response as it was sent, and the items that were its own input (those of earlier responses are theirs)."""

    body: Body
    input_items: tuple[Item, ...]
    is_background: bool = False
    is_running: bool = False

    @property
    def id(self) -> str:
        response_id: str = self.body["id"]
        return response_id

    @property
    def previous_id(self) -> str | None:
        """The response that this one continued."""
        previous: str | None = self.body["previous_response_id"]
        return previous


class ResponseStore:
    """Keeps responses by id and owner."""

    def __init__(self, database: Database, lease: Lease) -> None:
        self._database = database
        self._lease = lease
        self._making: set[str] = set()

    # What the server that makes the response writes

    async def begin(self, owner: str, response: StoredResponse) -> None:
        """Keep a response that is going to be made by this server, until it is released."""
        self._making.add(response.id)
        await self._database.run(lambda c: self._insert(c, owner, response, self._lease.server_id))

    async def add(self, owner: str, response: StoredResponse, conversation_id: str | None) -> None:
        """Keep a response that has ended, and what it adds to a conversation."""

        async def work(connection: AsyncConnection) -> None:
            await self._insert(connection, owner, response, None)
            await self._keep_items(connection, owner, response, conversation_id)

        await self._database.run(work)

    async def advance(self, response_id: str, body: Body | None, events: Sequence[tuple[int, bytes]] = ()) -> bool:
        """Keep how far the response came: its body if it changed, and events of its stream. Whether it still may."""
        data = None if body is None else _encode(body).decode()

        async def work(connection: AsyncConnection) -> bool:
            if not await self._set(connection, response_id, data):
                return False
            await _insert_events(connection, response_id, events)
            return True

        return await self._database.run(work)

    async def end(
        self,
        owner: str,
        response: StoredResponse,
        conversation_id: str | None = None,
        events: Sequence[tuple[int, bytes]] = (),
    ) -> bool:
        """Keep the response as it ended, and what it adds to a conversation. Whether it still may."""

        async def work(connection: AsyncConnection) -> bool:
            if not await self._set(connection, response.id, _encode(response.body).decode(), server_id=None):
                return False
            await _insert_events(connection, response.id, events)
            await self._keep_items(connection, owner, response, conversation_id)
            return True

        return await self._database.run(work)

    def release(self, response_id: str) -> None:
        """This server makes that response no longer, whatever could be kept of it."""
        self._making.discard(response_id)

    async def _insert(
        self, connection: AsyncConnection, owner: str, response: StoredResponse, server_id: str | None
    ) -> None:
        await connection.execute(
            sa.insert(RESPONSES).values(
                id=response.id,
                owner=owner,
                previous_id=response.previous_id,
                server_id=server_id,
                is_background=response.is_background,
                created_at=self._database.now,
                body=_encode(response.body).decode(),
                input_items=_encode(response.input_items).decode(),
            )
        )

    async def _set(self, connection: AsyncConnection, response_id: str, body: str | None, **values: Any) -> bool:
        """Write to a response if this server makes it. Without anything to write, lock it."""
        if body is not None:
            values["body"] = body
        mine = (RESPONSES.c.id == response_id) & (RESPONSES.c.server_id == self._lease.server_id)
        values = values or {"server_id": self._lease.server_id}
        done = await connection.execute(sa.update(RESPONSES).where(mine).values(**values))
        return done.rowcount == 1

    async def _keep_items(
        self, connection: AsyncConnection, owner: str, response: StoredResponse, conversation_id: str | None
    ) -> None:
        await insert_items(connection, owner, response.body["output"], response_id=response.id)
        if conversation_id is None:
            return
        used = sa.update(CONVERSATIONS).where(CONVERSATIONS.c.id == conversation_id).values(used_at=self._database.now)
        if (await connection.execute(used)).rowcount == 1:  # it may have been deleted meanwhile
            items = (*response.input_items, *response.body["output"])
            await insert_items(connection, owner, items, conversation_id=conversation_id)

    # What clients ask

    async def get(self, owner: str, response_id: str) -> StoredResponse | None:
        wanted = sa.select(RESPONSES).where((RESPONSES.c.id == response_id) & (RESPONSES.c.owner == owner))
        row = (await self._database.run(lambda c: c.execute(wanted))).first()
        return None if row is None else _stored(row)

    async def chain(self, owner: str, response_id: str) -> list[StoredResponse]:
        """The response and those that it continued, the oldest first; shorter where one of them is gone."""
        link = (
            sa.select(RESPONSES, sa.literal(0).label("depth"))
            .where((RESPONSES.c.id == response_id) & (RESPONSES.c.owner == owner))
            .cte("chain", recursive=True)
        )
        before = sa.select(RESPONSES, link.c.depth + 1).where(
            (RESPONSES.c.id == link.c.previous_id) & (RESPONSES.c.owner == owner)
        )
        chain = link.union_all(before)
        rows = await self._database.run(lambda c: c.execute(sa.select(chain).order_by(chain.c.depth.desc())))
        return [_stored(row) for row in rows]

    async def delete(self, owner: str, response_id: str) -> bool:
        """Whether there was one. One that is being made loses its place, which its maker notices."""

        async def work(connection: AsyncConnection) -> bool:
            mine = (RESPONSES.c.id == response_id) & (RESPONSES.c.owner == owner)
            deleted = await connection.execute(sa.delete(RESPONSES).where(mine))
            if deleted.rowcount == 0:
                return False
            await connection.execute(sa.delete(EVENTS).where(EVENTS.c.response_id == response_id))
            await connection.execute(sa.delete(ITEMS).where(ITEMS.c.response_id == response_id))
            return True

        return await self._database.run(work)

    async def cancel(self, owner: str, response_id: str) -> StoredResponse | None:
        """End a response that is being made, by whichever server; one that has ended stays as it is."""

        async def work(connection: AsyncConnection) -> StoredResponse | None:
            mine = (RESPONSES.c.id == response_id) & (RESPONSES.c.owner == owner)
            row = (await connection.execute(sa.select(RESPONSES).where(mine).with_for_update())).first()
            if row is None or row.server_id is None:
                return None if row is None else _stored(row)
            return await self._break_off(connection, _stored(row), {"status": "cancelled"})

        return await self._database.run(work)

    async def events(self, response_id: str, after: int) -> list[tuple[int, bytes]]:
        """The next events of a background response's stream, in order; none when there are none yet."""
        wanted = (
            sa.select(EVENTS.c.number, EVENTS.c.data)
            .where((EVENTS.c.response_id == response_id) & (EVENTS.c.number > after))
            .order_by(EVENTS.c.number)
            .limit(_PAGE)
        )
        rows = await self._database.run(lambda c: c.execute(wanted))
        return [(row.number, row.data.encode()) for row in rows]

    # What is left behind

    async def fail_orphans(self) -> int:
        """Fail the responses that nobody makes: those of dead servers, and those of this one whose end could not be
        kept. How many there were."""

        async def work(connection: AsyncConnection) -> int:
            alive = await self._lease.living(connection)
            dropped = (RESPONSES.c.server_id == self._lease.server_id) & RESPONSES.c.id.not_in(list(self._making))
            orphaned = RESPONSES.c.server_id.is_not(None) & (RESPONSES.c.server_id.not_in(alive) | dropped)
            rows = (await connection.execute(sa.select(RESPONSES).where(orphaned).with_for_update())).all()
            for row in rows:
                error = {"code": "server_error", "message": "The server stopped while the response was being made."}
                await self._break_off(connection, _stored(row), {"status": "failed", "error": error})
            return len(rows)

        return await self._database.run(work)

    async def still_mine(self, response_ids: Sequence[str]) -> set[str]:
        """Those of the responses that this server may still make."""
        mine = RESPONSES.c.id.in_(response_ids) & (RESPONSES.c.server_id == self._lease.server_id)
        rows = await self._database.run(lambda c: c.execute(sa.select(RESPONSES.c.id).where(mine)))
        return {row.id for row in rows}

    async def _break_off(self, connection: AsyncConnection, response: StoredResponse, ending: Body) -> StoredResponse:
        body = response.body | ending
        kept = sa.update(RESPONSES).where(RESPONSES.c.id == response.id)
        await connection.execute(kept.values(server_id=None, body=_encode(body).decode()))
        if response.is_background:
            newest = sa.select(sa.func.max(EVENTS.c.number)).where(EVENTS.c.response_id == response.id)
            number = await connection.scalar(newest)
            number = 0 if number is None else number + 1
            kind = f"response.{ending['status']}" if ending["status"] == "failed" else "response.incomplete"
            event = {"type": kind, "sequence_number": number, "response": body}
            await _insert_events(connection, response.id, [(number, _encode(event))])
        return msgspec.structs.replace(response, body=body, is_running=False)


async def _insert_events(connection: AsyncConnection, response_id: str, events: Sequence[tuple[int, bytes]]) -> None:
    if events:
        rows = [{"response_id": response_id, "number": number, "data": data.decode()} for number, data in events]
        await connection.execute(sa.insert(EVENTS), rows)


def _stored(row: Any) -> StoredResponse:
    return StoredResponse(
        body=_decode(row.body),
        input_items=tuple(_decode(row.input_items)),
        is_background=row.is_background,
        is_running=row.server_id is not None,
    )
