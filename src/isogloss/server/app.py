"""The web application."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from fastapi import Depends, FastAPI, Request, Response

from isogloss.chat import Chat
from isogloss.errors import EngineUnavailableError
from isogloss.server import errors
from isogloss.server.auth import key_check
from isogloss.server.chat_completions import chat_completions
from isogloss.server.generation import ClientGoneError
from isogloss.server.models import health, models
from isogloss.server.responses import responses
from isogloss.server.service import Service
from isogloss.server.store import MemoryStore, ResponseStore

_log = logging.getLogger("isogloss.server")


def create_app(
    chat: Chat,
    *,
    aliases: Sequence[str] = (),
    api_key: str | None = None,
    max_body_bytes: int = 32 * 1024 * 1024,
    store: ResponseStore | None = None,
) -> FastAPI:
    """An application that serves one model under OpenAI's APIs.

    The engine is started and closed with the application; when it cannot be reached the application starts all the
    same, answers 503, and tries again at each request. ``aliases`` are further names of the model beside its own id and
    ``default``. With an ``api_key``, everything but ``/health`` needs it. A body over ``max_body_bytes`` is a 413.
    ``store`` keeps responses; without one they are kept in memory, a bounded number of them.
    """
    service = Service(chat, MemoryStore() if store is None else store, tuple(aliases), max_body_bytes)
    app = FastAPI(title="Isogloss", lifespan=_lifespan(service), openapi_url=None)
    errors.install(app)
    app.add_exception_handler(ClientGoneError, _on_client_gone)
    needs_key = [Depends(key_check(api_key))]
    app.include_router(health(service))
    for router in (chat_completions(service), responses(service), models(service)):
        app.include_router(router, dependencies=needs_key)
    return app


def _lifespan(service: Service) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            await service.chat.start()
        except EngineUnavailableError as error:
            _log.warning("%s", error)
        try:
            yield
        finally:
            await service.chat.close()
            await service.store.close()

    return lifespan


async def _on_client_gone(_: Request, __: Exception) -> Response:
    """Nobody reads this; the status is for the log."""
    return Response(status_code=499)
