from __future__ import annotations

import asyncio

from isogloss.server.store import MemoryStore, StoredResponse


def stored(response_id: str) -> StoredResponse:
    return StoredResponse(response_id, {"id": response_id, "previous_response_id": None}, ())


def test_the_one_used_longest_ago_goes_first() -> None:
    async def work() -> None:
        store = MemoryStore(kept=2)
        for name in ("a", "b"):
            await store.put(stored(name))
        assert await store.get("a") == stored("a")
        await store.put(stored("c"))
        assert await store.get("b") is None
        assert await store.get("a") is not None
        assert await store.delete("a")
        assert not await store.delete("a")
        await store.close()
        assert await store.get("c") is None

    asyncio.run(work())
