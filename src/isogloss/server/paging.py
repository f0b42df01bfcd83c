"""Lists by the page: ``after`` an id, at most ``limit``, in an ``order``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from isogloss.errors import RequestError
from isogloss.json_fields import as_choice, shown
from isogloss.server.errors import NotFoundError

MOST_LISTED = 100

Page = dict[str, Any]
"""``object``, ``data``, ``first_id``, ``last_id``, ``has_more``."""


class Asked(msgspec.Struct, frozen=True):
    """What a client asks of a list."""

    limit: int
    is_ascending: bool
    after: str | None = None

    @classmethod
    def of(cls, query: Mapping[str, str], order: str = "desc") -> Asked:
        """From a query string. Raises `RequestError`."""
        limit = query.get("limit", "20")
        if not (limit.isascii() and limit.isdecimal() and 1 <= int(limit[:9]) <= MOST_LISTED):
            raise RequestError(
                f"Expected a number from 1 to {MOST_LISTED}, got {shown(limit)}", pointer="/limit", code="invalid_value"
            )
        order = as_choice(query.get("order", order), ("asc", "desc"), "/order")
        return cls(int(limit), order == "asc", query.get("after"))

    def page(self, items: Sequence[dict[str, Any]]) -> Page:
        """The page of items that are at hand, the oldest first. Raises `NotFoundError` when ``after`` is no item."""
        ordered = list(items if self.is_ascending else reversed(items))
        if self.after is not None:
            ids = [item["id"] for item in ordered]
            if self.after not in ids:
                raise _no_item(self.after)
            ordered = ordered[ids.index(self.after) + 1 :]
        return as_page(ordered[: self.limit], len(ordered) > self.limit)

    async def select(
        self, connection: AsyncConnection, listed: sa.Select[Any], key: sa.Column[str], sequence: sa.Column[int]
    ) -> Page:
        """The page of rows whose ``data`` is JSON, in the order of ``sequence``. Raises `NotFoundError`."""
        if self.after is not None:
            start = (await connection.execute(listed.where(key == self.after))).first()
            if start is None:
                raise _no_item(self.after)
            listed = listed.where(sequence > start.sequence if self.is_ascending else sequence < start.sequence)
        ordered = listed.order_by(sequence if self.is_ascending else sequence.desc()).limit(self.limit + 1)
        items = [msgspec.json.decode(row.data) for row in await connection.execute(ordered)]
        return as_page(items[: self.limit], len(items) > self.limit)


def as_page(items: Sequence[dict[str, Any]], has_more: bool) -> Page:
    return {
        "object": "list",
        "data": items,
        "first_id": items[0]["id"] if items else None,
        "last_id": items[-1]["id"] if items else None,
        "has_more": has_more,
    }


def _no_item(item_id: str) -> NotFoundError:
    return NotFoundError(f"No item with id {shown(item_id)} in this list.", pointer="/after")
