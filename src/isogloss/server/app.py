"""The web application."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from fastapi import FastAPI, Request, Response
from starlette.middleware.cors import CORSMiddleware

from isogloss.chat import Chat
from isogloss.errors import EngineUnavailableError
from isogloss.server import errors
from isogloss.server.background import Background
from isogloss.server.chat_completions import chat_completions, stored_completions
from isogloss.server.conversations import conversation_items, conversations
from isogloss.server.gate import Gate
from isogloss.server.generation import ClientGoneError
from isogloss.server.models import models, operation
from isogloss.server.openapi import openapi
from isogloss.server.options import ServerOptions
from isogloss.server.playground import playground
from isogloss.server.responses import responses, stored_responses
from isogloss.server.service import Service
from isogloss.server.websocket import responses_websocket

_log = logging.getLogger("isogloss.server")


def create_app(chat: Chat, options: ServerOptions | None = None) -> FastAPI:
    """An application that serves one model under OpenAI's APIs.

    The engine and the database are opened and closed with the application; when the engine cannot be reached the
    application starts all the same, answers 503, and tries again at each request. Raises `RequestError` for a store
    that is none; starting raises `StateUnavailableError` when it cannot be opened.
    """
    service = Service(chat, options or ServerOptions())
    background = Background(service.state.responses)
    app = FastAPI(title="Isogloss", lifespan=_lifespan(service, background), openapi_url=None)
    errors.install(app)
    app.add_exception_handler(ClientGoneError, _on_client_gone)
    for router in (
        operation(service),
        chat_completions(service),
        stored_completions(service),
        responses(service, background),
        stored_responses(service, background),
        responses_websocket(service),
        conversations(service),
        conversation_items(service),
        models(service),
        openapi(service),
        playground(service),
    ):
        app.include_router(router)
    app.add_middleware(Gate, service=service)
    if service.options.cors_origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=service.options.cors_origins, allow_methods=["*"], allow_headers=["*"]
        )
    return app


def _lifespan(service: Service, background: Background) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.state.start(background.drop_lost)
        try:
            await service.chat.start()
        except EngineUnavailableError as error:
            _log.warning("%s", error)
        try:
            yield
        finally:
            await background.close(service.options.drain_seconds)
            await service.chat.close()
            await service.state.close()

    return lifespan


async def _on_client_gone(_: Request, __: Exception) -> Response:
    """Nobody reads this; the status is for the log."""
    return Response(status_code=499)
