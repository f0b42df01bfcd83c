"""Python that a model wrote, run in a Jupyter kernel that keeps its variables from call to call.

**This executes whatever code the model writes, with all the rights of the user who runs this program**: it can read
and delete files, use the network and start processes. The kernel is a process of its own, which protects nothing but
this process. Run it inside a container or a virtual machine, or give ``connection_file`` of a kernel that runs in one.

Needs the extra ``python`` (jupyter-client, ipykernel).
"""

from __future__ import annotations

import asyncio
import os
import queue
import re
import shutil
import tempfile
import time
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isogloss.messages import Tool, ToolCall, ToolMessage
from isogloss.tools.toolbox import failed

if TYPE_CHECKING:
    from jupyter_client.asynchronous.client import AsyncKernelClient
    from jupyter_client.manager import AsyncKernelManager

TOOL = Tool.custom(
    "python",
    "Runs Python code in a stateful Jupyter kernel and returns what it prints, the value of its last line, and errors. "
    "Variables stay from call to call.",
)

LIMIT = 120.0
"""Seconds that one call may take."""

LONGEST_OUTPUT = 50_000
"""Characters of one call's output; of more, the beginning and the end are kept."""

GRACE = 5.0
"""Seconds that a kernel has to obey an interruption."""

_START_LIMIT = 60.0
_POLL = 1.0
_QUIET = "The code ran and printed nothing."
_KERNEL_OPTIONS = ("--HistoryManager.enabled=False",)
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


class PythonTool:
    """A kernel, started by the first call. Calls run one after the other.

    ``limit`` is how many seconds one call may take: then it is interrupted, and where that does not help for ``grace``
    seconds the kernel is started anew. ``directory`` is where it runs, by default a temporary one that is removed in
    the end. With ``connection_file`` it uses a kernel that somebody else started, and never starts or stops one.
    """

    def __init__(
        self,
        *,
        kernel: str = "python3",
        limit: float = LIMIT,
        grace: float = GRACE,
        directory: str | PathLike[str] | None = None,
        connection_file: str | PathLike[str] | None = None,
    ) -> None:
        self.tools = (TOOL,)
        self.limit = limit
        self._grace = grace
        self._kernel = kernel
        self._connection_file = connection_file
        self._directory = directory
        self._temporary: str | None = None
        self._manager: AsyncKernelManager | None = None
        self._client: AsyncKernelClient | None = None
        self._running = asyncio.Lock()

    async def run(self, call: ToolCall) -> ToolMessage:
        """Run the code of a call (its ``input``, or its ``code``)."""
        code = call.arguments.get("input", call.arguments.get("code"))
        if not isinstance(code, str):
            return failed(call, "Expected the code as text")
        text, is_whole = await self.execute(code)
        return ToolMessage(call.id, call.name, text, is_error=not is_whole)

    async def execute(self, code: str) -> tuple[str, bool]:
        """What the code prints, evaluates to and raises; and whether the kernel came to its end without an error."""
        async with self._running:
            try:
                client = await self._started()
            except Exception as error:
                await self._stop()
                return f"The Python kernel did not start: {type(error).__name__}: {error}", False
            cell = _Cell(client.execute(code, allow_stdin=False))
            until = time.monotonic() + self.limit
            if await self._follow(client, cell, until):
                return cell.text(), not cell.has_error
            return cell.text(await self._gave_up(client, cell)), False

    async def close(self) -> None:
        """Stop the kernel, if this tool started it."""
        async with self._running:
            await self._stop()
            if self._temporary is not None:
                shutil.rmtree(self._temporary, ignore_errors=True)
                self._temporary = None

    async def _started(self) -> AsyncKernelClient:
        if self._client is None:
            self._client = await (self._launched() if self._connection_file is None else self._attached())
            await self._client.wait_for_ready(timeout=_START_LIMIT)
        return self._client

    async def _launched(self) -> AsyncKernelClient:
        from jupyter_client.manager import AsyncKernelManager

        if self._temporary is None:
            self._temporary = tempfile.mkdtemp(prefix="isogloss-python-")
        files = Path(self._temporary)
        manager = AsyncKernelManager(kernel_name=self._kernel, connection_file=str(files / "kernel.json"))
        if os.name == "posix":  # sockets in a folder of this user's alone: nobody else can talk to the kernel
            manager.transport, manager.ip = "ipc", str(files / "socket")
        self._manager = manager
        (files / "work").mkdir(exist_ok=True)
        directory = str(self._directory or files / "work")
        await manager.start_kernel(cwd=directory, extra_arguments=list(_KERNEL_OPTIONS))
        client = manager.client()
        client.start_channels()
        return client

    async def _attached(self) -> AsyncKernelClient:
        from jupyter_client.asynchronous.client import AsyncKernelClient

        client = AsyncKernelClient(connection_file=str(self._connection_file))
        client.load_connection_file()
        client.start_channels()
        return client

    async def _stop(self) -> None:
        client, self._client = self._client, None
        manager, self._manager = self._manager, None
        if client is not None:
            client.stop_channels()
        if manager is not None:
            await manager.shutdown_kernel(now=True)

    async def _follow(self, client: AsyncKernelClient, cell: _Cell, until: float) -> bool:
        """Read what the kernel says until the cell is done. False when the time is up, or the kernel died."""
        while (left := until - time.monotonic()) > 0:
            try:
                message = await client.get_iopub_msg(timeout=min(left, _POLL))
            except queue.Empty:
                if not await self._is_alive():
                    return False
                continue
            if cell.take(message):
                return True
        return False

    async def _is_alive(self) -> bool:
        return self._manager is None or await self._manager.is_alive()

    async def _gave_up(self, client: AsyncKernelClient, cell: _Cell) -> str:
        """End a cell that took too long, or whose kernel died; what is to be said of it."""
        if not await self._is_alive():
            await self._stop()
            return "The Python kernel died. It will be started anew; all variables are lost."
        reason = f"The code took longer than {self.limit:g} seconds and was interrupted."
        await self._interrupt(client)
        if await self._follow(client, cell, time.monotonic() + self._grace):
            return reason
        if self._manager is None:
            await self._stop()
            return f"{reason} The kernel does not obey; it is somebody else's and has to be restarted there."
        await self._stop()
        return f"{reason} The kernel did not obey and will be started anew; all variables are lost."

    async def _interrupt(self, client: AsyncKernelClient) -> None:
        if self._manager is not None:
            await self._manager.interrupt_kernel()
            return
        client.control_channel.send(client.session.msg("interrupt_request", {}))
        with suppress(queue.Empty):
            await client.get_control_msg(timeout=self._grace)


class _Cell:
    """The output of one execution."""

    def __init__(self, request: str) -> None:
        self.has_error = False
        self._request = request
        self._parts: list[str] = []
        self._length = 0

    def take(self, message: dict[str, Any]) -> bool:
        """Take in one message of the kernel. True when it says that the execution is over."""
        if message["parent_header"].get("msg_id") != self._request:
            return False
        kind, content = message["msg_type"], message["content"]
        if kind == "stream":
            self._add(content["text"])
        elif kind in ("execute_result", "display_data"):
            self._add_block(content["data"].get("text/plain", ""))
        elif kind == "error":
            self.has_error = True
            self._add_block("\n".join(content["traceback"]))
        return bool(kind == "status" and content["execution_state"] == "idle")

    def text(self, note: str = "") -> str:
        """All of it, with a note behind."""
        self._add_block(note)
        text = _ANSI.sub("", "".join(self._parts)).strip("\n") or _QUIET
        if len(text) <= LONGEST_OUTPUT:
            return text
        half = LONGEST_OUTPUT // 2
        return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"

    def _add(self, text: str) -> None:
        """Keep the beginning, and the end as it moves on: a loop that prints without end takes no memory."""
        self._parts.append(text)
        self._length += len(text)
        if self._length > 8 * LONGEST_OUTPUT:
            joined = "".join(self._parts)
            kept = [joined[:LONGEST_OUTPUT], joined[-LONGEST_OUTPUT:]]
            self._parts = kept
            self._length = len(kept[0]) + len(kept[1])

    def _add_block(self, text: str) -> None:
        """Text that begins on a line of its own."""
        if not text:
            return
        ends_open = bool(self._parts) and not self._parts[-1].endswith("\n")
        self._add(f"\n{text}" if ends_open else text)
