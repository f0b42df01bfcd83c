"""What a browser needs of the world: a way to search it, and a way to fetch from it."""

from __future__ import annotations

from typing import Protocol

import msgspec

from isogloss.errors import IsoglossError
from isogloss.tools.page import Document


class BackendError(IsoglossError):
    """Nothing could be found or fetched; the message says why, in words for the model."""

    code = "backend_error"
    status = 502


class Hit(msgspec.Struct, frozen=True):
    """Something that a search found."""

    url: str
    title: str
    summary: str = ""


class Backend(Protocol):
    """A world to browse. Both methods raise `BackendError`."""

    async def search(self, query: str, count: int) -> list[Hit]:
        """The best ``count`` hits, best first."""
        ...

    async def fetch(self, url: str) -> Document:
        """The document at an address of this world."""
        ...

    async def close(self) -> None:
        """Give back what the backend holds."""
        ...
