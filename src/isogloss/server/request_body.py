"""The body of a request: read within a limit, decoded, an object."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from fastapi import Request

from isogloss.chat import SHORT
from isogloss.errors import RequestError
from isogloss.json_fields import kind_of, shown
from isogloss.server.errors import TooLargeError, UnsupportedBodyError

_SCHEMAS = frozenset({"tools", "response_format", "text"})
"""Fields that may hold schemas."""

_Read = TypeVar("_Read")


async def read_body(request: Request, limit: int) -> dict[str, Any]:
    """The JSON object that was sent. Raises `TooLargeError` over ``limit`` bytes, `UnsupportedBodyError` for one that
    is compressed, `RequestError` for anything else."""
    encoding = request.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity"):
        raise UnsupportedBodyError(
            f"Content-Encoding {shown(encoding)} is not supported: send the body of the request uncompressed"
        )
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
    return decoded_object(b"".join(parts), "body of the request")


async def read_in_time(body: dict[str, Any], said: object, read: Callable[[], _Read]) -> _Read:
    """What ``read`` makes of a body in which ``said`` is said: in a thread where that may take its time (long texts,
    schemas), else at once, which is sooner than a thread has begun."""
    is_light = _SCHEMAS.isdisjoint(body) and len(msgspec.json.encode(said)) <= SHORT
    return read() if is_light else await asyncio.to_thread(read)


def decoded_object(text: bytes | str, what: str) -> dict[str, Any]:
    """The JSON object that ``text`` writes. Raises `RequestError` for anything else."""
    try:
        body = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise RequestError(f"The {what} is not valid JSON: {_reason(text, error)}", code="invalid_json") from None
    except RecursionError:
        raise RequestError(f"The {what} is nested too deeply", code="invalid_json") from None
    if not isinstance(body, dict):
        raise RequestError(f"Expected `object` as the {what}, got `{kind_of(body)}`", code="invalid_json")
    return body


def _reason(text: bytes | str, error: Exception) -> str:
    """What is wrong. The decoder has a name of its own for a lone surrogate; the standard library lets it through."""
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as fault:
        return f"a string in it has a lone surrogate, U+{ord(fault.object[fault.start]):04X}, which is no character"
    except (ValueError, RecursionError):
        pass
    return str(error)


def _too_large(limit: int) -> TooLargeError:
    return TooLargeError(f"The body of the request is over this server's limit of {limit} bytes")
