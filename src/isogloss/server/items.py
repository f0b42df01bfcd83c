"""Items as they are kept: with an id, and in the shape in which they are listed."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from isogloss.server.tables import ITEMS

Item = dict[str, Any]

ID_PREFIXES = {
    "message": "msg_",
    "reasoning": "rs_",
    "function_call": "fc_",
    "function_call_output": "fco_",
    "custom_tool_call": "ctc_",
    "custom_tool_call_output": "cto_",
    "compaction": "cmp_",
    "code_interpreter_call": "ci_",
    "web_search_call": "ws_",
}


def new_id(prefix: str) -> str:
    return prefix + secrets.token_hex(24)


def kept_items(given: str | Sequence[Item], taken: Iterable[str] = ()) -> tuple[Item, ...]:
    """The items of a request: each with an id that no other one has and is not ``taken``, a status, and its content as
    parts."""
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    used = set(taken)
    kept: list[Item] = []
    for item in given:
        item = {"type": "message", **item}
        item_id = item.get("id")
        if not isinstance(item_id, str) or item_id in used:
            item_id = new_id(ID_PREFIXES.get(item["type"], "item_"))
        used.add(item_id)
        item["id"] = item_id
        if item["type"] == "message":
            item["content"] = _parts(item)
        if item["type"] != "compaction":
            item["status"] = item.get("status") or "completed"
        kept.append(item)
    return tuple(kept)


def _parts(item: Item) -> list[Any]:
    content = item["content"]
    if not isinstance(content, str):
        return list(content)
    if item["role"] == "assistant":
        return [{"type": "output_text", "text": content, "annotations": [], "logprobs": []}]
    return [{"type": "input_text", "text": content}]


async def insert_items(
    connection: AsyncConnection,
    owner: str,
    items: Iterable[Item],
    *,
    response_id: str | None = None,
    conversation_id: str | None = None,
) -> None:
    """Keep items in this order, as the output of a response or as a part of a conversation."""
    place = {"owner": owner, "response_id": response_id, "conversation_id": conversation_id}
    for item in items:  # one by one: the order of their sequence numbers is theirs
        data = msgspec.json.encode(item).decode()
        await connection.execute(sa.insert(ITEMS).values(id=item["id"], data=data, **place))


async def select_items(connection: AsyncConnection, owner: str, ids: Sequence[str]) -> Mapping[str, Item]:
    """Items by their ids, wherever they are kept."""
    wanted = sa.select(ITEMS.c.id, ITEMS.c.data).where(ITEMS.c.id.in_(ids) & (ITEMS.c.owner == owner))
    rows = await connection.execute(wanted.order_by(ITEMS.c.sequence))
    return {row.id: msgspec.json.decode(row.data) for row in rows}
