"""OpenTelemetry, where it is installed: a span for every request. Without it, or without a set-up of it, nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any


@contextmanager
def span(method: str, path: str, request_id: str) -> Iterator[None]:
    """A span around one request. It has no content of the request, only where it went and its id."""
    tracer = _tracer()
    if tracer is None:
        yield
        return
    attributes = {"http.request.method": method, "url.path": path, "isogloss.request_id": request_id}
    with tracer.start_as_current_span(method, attributes=attributes):
        yield


@lru_cache(maxsize=1)
def _tracer() -> Any:
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace.get_tracer("isogloss")
