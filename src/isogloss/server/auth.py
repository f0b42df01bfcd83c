"""Who may use the server: those who send its key, or everybody when it has none."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable

from fastapi import Request

from isogloss.server.errors import AuthenticationError


def key_check(api_key: str | None) -> Callable[[Request], Awaitable[None]]:
    """A dependency that raises `AuthenticationError` unless ``Authorization: Bearer KEY`` carries the key."""

    async def check(request: Request) -> None:
        if api_key is None:
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not given:
            raise AuthenticationError(
                "You didn't provide an API key. You need to provide your API key in an Authorization header using "
                "Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
                code="missing_api_key",
            )
        if not hmac.compare_digest(given.encode(), api_key.encode()):
            raise AuthenticationError("Incorrect API key provided.")

    return check
