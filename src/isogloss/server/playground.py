"""``GET /``, the page on which one looks at what happens, and ``/playground/api``, which answers what it asks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from importlib.resources import files
from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response

from isogloss.chat import Turn
from isogloss.dialects import Dialect, dialect_names, get_dialect
from isogloss.errors import EngineError, IsoglossError
from isogloss.events import Event
from isogloss.server import playground_views as views
from isogloss.server import sse
from isogloss.server.chat_request import read_chat_request
from isogloss.server.errors import NotFoundError, defect_body, error_body, json_response
from isogloss.server.generation import updates_of
from isogloss.server.output_runs import runs_of
from isogloss.server.request_body import read_body
from isogloss.server.service import Service

_log = logging.getLogger("isogloss.server")

PAGE_PATH = "/"
FILES_PATH = "/playground/"
API_PATH = "/playground/api/"

_MEDIA_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "woff2": "font/woff2",
}

_HEADERS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "object-src 'none'",
    "cache-control": "no-cache",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def is_page(path: str) -> bool:
    """Whether a path is the page or one of its files: they are the same for everybody, and hold nothing."""
    return path == PAGE_PATH or (path.startswith(FILES_PATH) and not path.startswith(API_PATH))


def playground(service: Service) -> APIRouter:
    router = APIRouter(include_in_schema=False)
    page = {entry.name: entry.read_bytes() for entry in files("isogloss.server").joinpath("playground").iterdir()}

    @router.get(PAGE_PATH)
    async def index() -> Response:
        return _file("index.html", page["index.html"])

    @router.get(FILES_PATH + "{name}")
    async def file(name: str) -> Response:
        if name not in page:
            raise NotFoundError(f"Invalid URL (GET {FILES_PATH}{name})")
        return _file(name, page[name])

    @router.get(API_PATH + "about")
    async def about() -> Response:
        return json_response(await _about(service))

    @router.post(API_PATH + "chat")
    async def chat(request: Request) -> Response:
        body = await read_body(request, service.options.max_body_bytes)
        asked = await asyncio.to_thread(read_chat_request, body)
        turn = service.chat.stream(asked.conversation, asked.samplings[0])
        return sse.EventStream(_chat_events(service, turn))

    def answers(name: str, view: Callable[[dict[str, Any]], Any]) -> None:
        """What a view makes of the request's body, made in a thread: it may take a while."""

        async def answer(request: Request) -> Response:
            body = await read_body(request, service.options.max_body_bytes)
            return json_response(await asyncio.to_thread(view, body))

        router.add_api_route(API_PATH + name, answer, methods=["POST"])

    answers("sample", lambda body: views.sample(body, service.chat.dialect))
    answers("scan", lambda body: views.scanned(body, service.chat.dialect))
    answers("convert", lambda body: views.converted(body, service.chat.dialect))
    answers("constraint", lambda body: views.constrained(body, service.chat.dialect))
    answers("schema", views.checked)
    answers("prompt", lambda body: views.prompted(body, service.chat))
    return router


def _file(name: str, content: bytes) -> Response:
    return Response(content, headers=_HEADERS, media_type=_MEDIA_TYPES[name.rpartition(".")[2]])


async def _about(service: Service) -> dict[str, Any]:
    """What is served, and the dialects there are. The page works without the engine, but for the chat."""
    model, fault = None, None
    try:
        model = (await service.model()).id
    except EngineError as error:
        fault = error.message
    return {
        "model": model,
        "fault": fault,
        "engine": service.chat.engine.name,
        "takes_grammar": service.chat.engine.takes_grammar,
        "dialect": service.chat.dialect.name,
        "dialects": [_dialect(get_dialect(name)) for name in dialect_names()],
    }


def _dialect(dialect: Dialect) -> dict[str, Any]:
    return {"name": dialect.name, "title": dialect.title}


async def _chat_events(service: Service, turn: Turn) -> AsyncGenerator[bytes, None]:
    """Pieces of raw output as they come, and behind them the events that they settle, with their runs."""
    output = _Unsettled(turn)
    try:
        async for batch in updates_of(service, [turn]):
            piece = output.grown()
            if piece:
                yield sse.event({"piece": piece})
            for _, update in batch:
                event = update.event
                runs = runs_of(event, output.settled_by(event))
                yield sse.event({"event": msgspec.to_builtins(event), "runs": runs})
        yield sse.event({"usage": msgspec.to_builtins(turn.usage)})
        yield sse.DONE
    except IsoglossError as error:
        yield sse.event({"error": error_body(error)})
    except Exception:
        _log.exception("A stream of the playground failed")
        yield sse.event({"error": defect_body()})


class _Unsettled:
    """The end of a turn's output, from where its events have not settled it."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._taken = 0
        self._tail = ""
        self._start = 0

    def grown(self) -> str:
        """What the model wrote since this was asked last."""
        pieces = self._turn.output[self._taken :]
        self._taken += len(pieces)
        piece = "".join(pieces)
        self._tail += piece
        return piece

    def settled_by(self, event: Event) -> str:
        """The output that an event covers. Events tile it, so that it is the front of what is left."""
        raw = self._tail[: event.end - self._start]
        self._tail = self._tail[len(raw) :]
        self._start = event.end
        return raw
