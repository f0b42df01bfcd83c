"""What every request passes: an id, the key, the limits, the log, the metrics, a trace. Plain ASGI, so that streams
pass as they are."""

from __future__ import annotations

import logging
import secrets
import time
from contextlib import ExitStack
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from isogloss.errors import IsoglossError
from isogloss.server import sse
from isogloss.server.auth import Keys
from isogloss.server.caller import REQUEST_ID, SCOPE_KEY, Caller
from isogloss.server.errors import defect_body, error_response, json_response
from isogloss.server.limits import Limits
from isogloss.server.playground import is_page
from isogloss.server.service import Service
from isogloss.server.tracing import span

_log = logging.getLogger("isogloss.server.access")

OPEN_PATHS = frozenset({"/health", "/ready"})
"""What can be asked without a key."""

_NOT_ANSWERED = "aborted"
_CONNECTIONS = ("http", "websocket")


class Gate:
    """The application behind a gate."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        options = service.options
        self._app = app
        self._metrics = service.metrics
        self._keys = Keys(options.keys)
        self._limits = Limits(options.requests_per_minute, options.concurrent_requests)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in _CONNECTIONS:
            await self._app(scope, receive, send)
            return
        if scope.get("method") == "HEAD":  # the same as GET; the server that sends the answer leaves out its body
            scope = {**scope, "method": "GET"}
        request_id = "req_" + secrets.token_hex(16)
        token = REQUEST_ID.set(request_id)
        visit = _Visit(scope, request_id, send)
        try:
            with ExitStack() as stack:
                stack.enter_context(span(visit.method, scope["path"], request_id))
                try:
                    visit.holder = self._admit(scope, stack)
                except IsoglossError as error:
                    await error_response(error)(scope, receive, visit.send)
                    return
                scope[SCOPE_KEY] = Caller(request_id, visit.holder)
                scope[sse.DIRECT] = send
                await self._app(scope, receive, visit.send)
        except Exception:
            _log.exception("A request failed")
            if visit.status == _NOT_ANSWERED:
                await json_response({"error": defect_body()}, 500)(scope, receive, visit.send)
        finally:
            self._tell(visit)
            REQUEST_ID.reset(token)

    def _admit(self, scope: Scope, stack: ExitStack) -> str:
        """The name of the key. Raises `AuthenticationError` and `RateLimitError`."""
        if scope["path"] in OPEN_PATHS or is_page(scope["path"]):
            return ""
        holder = self._keys.holder(Headers(scope=scope).get("authorization", ""))
        if scope["type"] == "websocket" or scope["method"] == "POST":
            stack.enter_context(self._limits.request(holder))
        return holder

    def _tell(self, visit: _Visit) -> None:
        seconds = time.perf_counter() - visit.begun
        route = visit.route
        self._metrics.requests.labels(route, str(visit.status)).inc()
        self._metrics.request_seconds.labels(route).observe(seconds)
        fields = {
            "method": visit.method,
            "path": visit.scope["path"],
            "status": visit.status,
            "key": visit.holder,
            "milliseconds": round(seconds * 1000, 1),
        }
        _log.info("%s %s %s", visit.method, fields["path"], visit.status, extra={"fields": fields})


class _Visit:
    """One request on its way through."""

    def __init__(self, scope: Scope, request_id: str, send: Send) -> None:
        self.scope = scope
        self.begun = time.perf_counter()
        self.method: str = scope.get("method", "WEBSOCKET")
        self.holder = ""
        self.status: int | str = _NOT_ANSWERED
        self._request_id = request_id
        self._send = send

    @property
    def route(self) -> str:
        """The route's pattern: paths hold ids, and a metric for each of them would grow without bound."""
        route: Any = self.scope.get("route")
        return getattr(route, "path", "none")

    async def send(self, message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            self.status = message["status"]
            MutableHeaders(scope=message)["x-request-id"] = self._request_id
        elif message["type"] == "websocket.accept":
            self.status = 101
        await self._send(message)
