"""The body of a request: read within a limit, decoded, an object."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import Request

from isogloss.errors import RequestError
from isogloss.json_fields import kind_of
from isogloss.server.errors import TooLargeError


async def read_body(request: Request, limit: int) -> dict[str, Any]:
    """The JSON object that was sent. Raises `TooLargeError` over ``limit`` bytes, `RequestError` for anything else."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limit:
        raise _too_large(limit)
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
    try:
        body = msgspec.json.decode(b"".join(parts))
    except msgspec.DecodeError as error:
        raise RequestError(f"The body of the request is not valid JSON: {error}", code="invalid_json") from None
    except RecursionError:
        raise RequestError("The body of the request is nested too deeply", code="invalid_json") from None
    if not isinstance(body, dict):
        raise RequestError(f"Expected `object` as the body of the request, got `{kind_of(body)}`", code="invalid_json")
    return body


def _too_large(limit: int) -> TooLargeError:
    return TooLargeError(f"The body of the request is over this server's limit of {limit} bytes")
