"""Who makes a request, and under which id it is logged."""

from __future__ import annotations

from contextvars import ContextVar

import msgspec
from starlette.requests import HTTPConnection

SCOPE_KEY = "isogloss.caller"

REQUEST_ID: ContextVar[str | None] = ContextVar("request_id", default=None)
"""The id of the request that is being worked on."""


class Caller(msgspec.Struct, frozen=True):
    """``name`` is that of the key: what is kept belongs to it."""

    request_id: str
    name: str


def caller_of(connection: HTTPConnection) -> Caller:
    """The caller, as `isogloss.server.gate.Gate` found it."""
    caller: Caller = connection.scope[SCOPE_KEY]
    return caller
