"""Errors as the OpenAI APIs write them: ``{"error": {"message", "type", "param", "code"}}`` and a status."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from isogloss.errors import IsoglossError, RequestError, StrictSchemaError
from isogloss.json_fields import parameter

_log = logging.getLogger("isogloss.server")

_CODELESS = frozenset({"invalid_request", "invalid_conversation"})
"""Codes of the tree that say no more than the type; OpenAI's APIs answer with ``null`` there."""


_TYPES = {429: "requests"}
"""Of statuses whose errors have a type of their own."""


class NotFoundError(RequestError):
    """There is nothing of that name."""

    code = "not_found"
    status = 404


class AuthenticationError(RequestError):
    """The key is missing or wrong."""

    code = "invalid_api_key"
    status = 401


class RateLimitError(RequestError):
    """The key has used up what it may ask for."""

    code = "rate_limit_exceeded"
    status = 429

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class OverloadedError(IsoglossError):
    """More is asked for than may wait."""

    code = "overloaded"
    status = 503


class TooLargeError(RequestError):
    """The body is over the server's limit."""

    code = "request_too_large"
    status = 413


class UnsupportedBodyError(RequestError):
    """The body is written in a way that is not read here."""

    code = "unsupported_media_type"
    status = 415


def install(app: FastAPI) -> None:
    """Answer every error of the tree and of the router in the one shape."""
    app.add_exception_handler(IsoglossError, _on_error)
    app.add_exception_handler(HTTPException, _on_http_error)


def error_body(error: IsoglossError) -> dict[str, Any]:
    """The ``error`` object. A strict schema's further violations are listed in ``violations``."""
    body = _body(
        error.message,
        error.status,
        None if error.pointer is None else parameter(error.pointer),
        None if error.code in _CODELESS else error.code,
    )
    if isinstance(error, StrictSchemaError):
        body["violations"] = [
            {"pointer": violation.pointer, "keyword": violation.keyword, "message": violation.message}
            for violation in error.violations
        ]
    return body


def defect_body() -> dict[str, Any]:
    """The ``error`` object for a defect of the server; what it was is in the log."""
    return _body("The server had an error while processing your request.", 500, None, "internal_error")


def json_response(body: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(body), status, headers, "application/json")


def error_response(error: IsoglossError) -> Response:
    """The answer to a request that failed. Where trying again may help, it says when."""
    seconds = getattr(error, "retry_after", 1 if error.status == 503 else None)
    headers = None if seconds is None else {"retry-after": str(seconds)}
    return json_response({"error": error_body(error)}, error.status, headers)


def _body(message: str, status: int, param: str | None, code: str | None) -> dict[str, Any]:
    kind = "server_error" if status >= 500 else _TYPES.get(status, "invalid_request_error")
    return {"message": message, "type": kind, "param": param, "code": code}


async def _on_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, IsoglossError)
    if error.status >= 500:
        _log.error("%s: %s", type(error).__name__, error)
    return error_response(error)


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    messages = {
        404: f"Invalid URL ({request.method} {request.url.path})",
        405: f"Not allowed to {request.method} on {request.url.path}",
    }
    message = messages.get(error.status_code, str(error.detail))
    headers = dict(error.headers) if error.headers else None
    return json_response({"error": _body(message, error.status_code, None, None)}, error.status_code, headers)
