"""Everything that `isogloss serve` does: engine up, dialect found, port taken, served until told to stop."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import logging
import math
import socket
from collections.abc import Coroutine, Mapping
from typing import Any

import msgspec
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from isogloss.chat import Chat
from isogloss.dialects import Dialect, detect_dialect, get_dialect
from isogloss.engines import ModelInfo, open_engine
from isogloss.errors import EngineUnavailableError, UnknownDialectError
from isogloss.server.app import create_app
from isogloss.server.database import Database
from isogloss.server.options import ServerOptions
from isogloss.server.structured_log import configure
from isogloss.server.websocket import RESTART

_log = logging.getLogger("isogloss.server")


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What to serve, and where. ``model`` is what `isogloss.engines.open_engine` takes."""

    model: str
    engine: str | None = None
    engine_options: Mapping[str, Any] = msgspec.field(default_factory=dict)
    dialect: str | None = None
    """``None``: found out from the model's id or its chat template."""
    uses_template: bool = True
    """Whether a model that was trained on the dialect by its own chat template is prompted by that template."""
    host: str = "127.0.0.1"
    port: int = 8080
    refusals: bool = False
    """Whether the model may refuse where an answer's format is asked for."""
    log_level: str = "warning"
    log_format: str = "text"
    """``text`` or ``json``."""
    server: ServerOptions = ServerOptions()


def serve(options: ServeOptions) -> None:
    """Serve until interrupted. Raises `EngineUnavailableError` when the port is taken or the engine does not come up,
    and `UnknownDialectError` when the dialect has to be named."""
    listener = _listen(options.host, options.port)
    try:
        _run(_serve(options, listener))
    finally:
        listener.close()


def _run(work: Coroutine[Any, Any, None]) -> None:
    """On uvloop, where it is installed: it is not on Windows."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(work)
    else:
        uvloop.run(work)


async def _serve(options: ServeOptions, listener: socket.socket) -> None:
    await _check_store(options.server.store)
    engine = open_engine(options.model, engine=options.engine, **options.engine_options)
    await engine.start()
    try:
        model = await engine.model()
        dialect = get_dialect(options.dialect) if options.dialect is not None else dialect_of(model)
        chat = Chat(engine, dialect, may_refuse=options.refusals, uses_template=options.uses_template)
        app = create_app(chat, options.server)
        configure(options.log_level, options.log_format)
        if not options.server.keys and not _is_loopback(options.host):
            _log.warning("Anyone who can reach %s may use this server: it has no API key", options.host)
        told = f"Serving {model.id} ({dialect.name} on {engine.name}) at {_address(listener)}/v1"
        if model.settings:
            told += "\nwith " + ", ".join(f"{name}={value}" for name, value in model.settings.items())
        gc.freeze()  # what is there stays: to look through it again would hold up all streams
        await _Server(server_config(app, options.server), told).serve(sockets=[listener])
    finally:
        await engine.close()


async def _check_store(url: str) -> None:
    """A model is not loaded to find that its answers cannot be kept. Raises `StateUnavailableError`."""
    database = Database(url)
    try:
        await database.start()
    finally:
        await database.close()


def server_config(app: ASGIApp, options: ServerOptions) -> uvicorn.Config:
    """How uvicorn serves the application: streams may end after it was told to stop, and messages are bounded."""
    return uvicorn.Config(
        app,
        http="httptools",
        ws=_WebSocketProtocol,
        ws_max_size=options.max_body_bytes,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=math.ceil(options.drain_seconds),
    )


class _WebSocketProtocol(WebSocketsSansIOProtocol):
    """Lets the application answer what it is answering before it closes a connection."""

    def shutdown(self) -> None:
        if self.close_sent or not self.handshake_complete:
            super().shutdown()
        else:
            self.stop_keepalive()
            self.queue.put_nowait({"type": "websocket.disconnect", "code": RESTART})


class _Server(uvicorn.Server):
    """Says that it serves once it does: the database was opened, and the first request will be answered."""

    def __init__(self, config: uvicorn.Config, told: str) -> None:
        super().__init__(config)
        self._told = told

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            print(self._told, flush=True)


def dialect_of(model: ModelInfo) -> Dialect:
    """The dialect of a model, by its id, else by its chat template. Raises `UnknownDialectError`."""
    try:
        return detect_dialect(model.id)
    except UnknownDialectError:
        if model.chat_template is None:
            raise
        return detect_dialect(model.chat_template)


def _listen(host: str, port: int) -> socket.socket:
    """Taken before the engine starts: a model is not loaded to find that nobody can reach it."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[
            0
        ]
        listener = socket.socket(family, kind)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen()
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise EngineUnavailableError(f"Cannot listen on port {port} of {host}: {error.strerror}") from error
    return listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
