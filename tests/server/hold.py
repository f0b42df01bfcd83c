"""An engine that waits at a piece until it is told to go on."""

from __future__ import annotations

import asyncio
import threading


class Hold:
    """For ``before_piece``: every generation stops before the piece at ``position``.

    ``reached`` is set when one waits there, ``left`` when one of them was let go or stopped.
    """

    def __init__(self, position: int) -> None:
        self.reached = threading.Event()
        self.left = threading.Event()
        self._position = position
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        self._is_open = False

    async def __call__(self, position: int) -> None:
        if position != self._position or self._is_open:
            await asyncio.sleep(0)
            return
        gate = asyncio.Event()
        self._waiting.append((asyncio.get_running_loop(), gate))
        self.reached.set()
        try:
            await gate.wait()
        finally:
            self.left.set()

    def release(self) -> None:
        """Let all go on, now and later."""
        self._is_open = True
        for loop, gate in self._waiting:
            loop.call_soon_threadsafe(gate.set)
