"""A real server on loopback over scripted engines."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, cast

import openai
import pytest
import uvicorn

from isogloss.chat import Chat
from isogloss.dialects import get_dialect
from isogloss.engines.scripted import Script, ScriptedEngine
from isogloss.server import ServerOptions, create_app
from isogloss.server.launch import server_config

from .postgres import postgres
from .wire import Wire


class Served:
    """A running server: its address, its engine, and official clients for it."""

    def __init__(self, url: str, chat: Chat, server: uvicorn.Server) -> None:
        self.url = url
        self.chat = chat
        self.engine = cast(ScriptedEngine, chat.engine)  # but in the few tests with a model
        self.server = server
        self.clients = ExitStack()

    def stop(self) -> None:
        """Tell the server to stop; it still ends what it has begun."""
        self.server.should_exit = True

    def client(self, **options: Any) -> openai.OpenAI:
        """An official client, closed with the test."""
        client = openai.OpenAI(**{"base_url": f"{self.url}/v1", "api_key": "none", "max_retries": 0, **options})
        return self.clients.enter_context(client)

    def async_client(self, **options: Any) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(**{"base_url": f"{self.url}/v1", "api_key": "none", "max_retries": 0, **options})


class _Server(uvicorn.Server):
    """Says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = threading.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.listening.set()


@contextmanager
def serving(chat: Chat, **options: Any) -> Iterator[Served]:
    settings = ServerOptions(**{"drain_seconds": 5, **options})
    wire = Wire(create_app(chat, settings))
    config = server_config(wire, settings)
    config.port = 0
    server = _Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert server.listening.wait(30)
    port = server.servers[0].sockets[0].getsockname()[1]
    served = Served(f"http://127.0.0.1:{port}", chat, server)
    try:
        with served.clients:
            yield served
    finally:
        served.stop()
        thread.join(30)
        assert wire.faults == [], "\n".join(sorted(set(wire.faults)))


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    with postgres() as url:
        yield url


STORES = ("memory", "sqlite", "postgresql")
SHARED_STORES = STORES[1:]
"""Those that outlive a process."""


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store of the kind that the test is parametrized with."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'state.sqlite'}"
    url: str = request.getfixturevalue("postgres_url") if request.param == "postgresql" else request.param
    return url


Serve = Callable[..., Served]


@pytest.fixture(scope="session")
def shared_server() -> Iterator[Served]:
    with serving(Chat(ScriptedEngine(""), get_dialect("hermes"))) as served:
        yield served


@pytest.fixture
def serve(shared_server: Served) -> Iterator[Serve]:
    """``serve(*scripts, dialect="hermes", ...)``: a server that answers with these scripts, one after the other.

    It is the same one for all tests, given another engine, but where a test wants options of its own.
    """
    with ExitStack() as stack:

        def start(
            *scripts: str | Script,
            dialect: str = "hermes",
            takes_grammar: bool = False,
            engine: dict[str, Any] | None = None,
            **options: Any,
        ) -> Served:
            scripted = ScriptedEngine(scripts, takes_grammar=takes_grammar, **(engine or {}))
            if options:
                return stack.enter_context(serving(Chat(scripted, get_dialect(dialect)), **options))
            chat = shared_server.chat
            chat.engine, chat.dialect = scripted, get_dialect(dialect)
            chat.forget_model()
            served = Served(shared_server.url, chat, shared_server.server)
            stack.enter_context(served.clients)
            return served

        yield start
