"""A server in a process of its own, that can be killed. It comes from a process that has imported everything before."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import uvicorn

from isogloss.chat import Chat
from isogloss.dialects import get_dialect
from isogloss.engines import GenerationRequest
from isogloss.engines.scripted import Script, ScriptedEngine
from isogloss.server import ServerOptions, create_app
from isogloss.server.launch import server_config

from .hold import Hold

QUICK, SPELL = "be quick", "spell"
"""What a prompt says last that is to be answered at once, or letter by letter."""

LETTERS = "abcdefghijklmnopqrstuvwxyz"

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["isogloss.server.launch", "isogloss.engines.scripted", "isogloss.dialects.hermes"])


class Child:
    """A running server. ``position`` is the letter before which its answers stop for good."""

    def __init__(self, url: str, process: BaseProcess) -> None:
        self.url = url
        self.process = process

    def kill(self) -> None:
        """At once, without a word."""
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join(30)


@contextmanager
def child(store: str, position: int = -1) -> Iterator[Child]:
    here, there = _context.Pipe()
    process = _context.Process(target=_serve, args=(store, position, there), daemon=True)
    process.start()
    there.close()
    try:
        assert here.poll(60)
        yield Child(f"http://127.0.0.1:{here.recv()}", process)
    finally:
        here.close()
        if process.is_alive():
            process.terminate()
            process.join(30)


def _serve(store: str, position: int, parent: Connection) -> None:
    def script(request: GenerationRequest) -> Script:
        is_quick = request.prompt.rfind(QUICK) > request.prompt.rfind(SPELL)
        return Script("Hi") if is_quick else Script(LETTERS, cut=1)

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            parent.send(self.servers[0].sockets[0].getsockname()[1])

    engine = ScriptedEngine(script, before_piece=Hold(position))
    options = ServerOptions(store=store, drain_seconds=1)
    config = server_config(create_app(Chat(engine, get_dialect("hermes")), options), options)
    config.port = 0
    asyncio.run(Server(config).serve())
