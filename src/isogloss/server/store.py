"""Where responses are kept for ``previous_response_id`` and for who asks for them again."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Protocol

import msgspec

KEPT = 10_000
"""How many responses `MemoryStore` keeps; the ones that were used longest ago go first."""


class StoredResponse(msgspec.Struct, frozen=True):
    """A response as it was sent, and the items that were its own input (those of earlier responses are theirs)."""

    id: str
    response: dict[str, Any]
    input_items: tuple[dict[str, Any], ...]

    @property
    def previous_id(self) -> str | None:
        """The response that this one continued."""
        previous: str | None = self.response["previous_response_id"]
        return previous


class ResponseStore(Protocol):
    """Keeps responses by id."""

    async def put(self, stored: StoredResponse) -> None: ...

    async def get(self, response_id: str) -> StoredResponse | None: ...

    async def delete(self, response_id: str) -> bool:
        """Whether there was one."""
        ...

    async def close(self) -> None: ...


class MemoryStore:
    """Keeps the latest responses as long as the process lives."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._responses: OrderedDict[str, StoredResponse] = OrderedDict()

    async def put(self, stored: StoredResponse) -> None:
        self._responses[stored.id] = stored
        if len(self._responses) > self._kept:
            self._responses.popitem(last=False)

    async def get(self, response_id: str) -> StoredResponse | None:
        stored = self._responses.get(response_id)
        if stored is not None:
            self._responses.move_to_end(response_id)
        return stored

    async def delete(self, response_id: str) -> bool:
        return self._responses.pop(response_id, None) is not None

    async def close(self) -> None:
        self._responses.clear()
