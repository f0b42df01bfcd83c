"""Models named ``hf:OWNER/REPOSITORY/FILE``: the hub's real client, against a server that speaks the hub's protocol."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest

from isogloss.engines._model_file import model_file
from isogloss.errors import EngineCapabilityError

pytestmark = pytest.mark.skipif(find_spec("huggingface_hub") is None, reason="huggingface-hub is not installed")

COMMIT = "0123456789abcdef0123456789abcdef01234567"
MODEL = b"GGUF" + bytes(range(256)) * 100
MIB = 1 << 20
FETCH = "import sys; from isogloss.engines._model_file import model_file; print(model_file(sys.argv[1]))"


class Hub(ThreadingHTTPServer):
    """One repository, ``owner/repository``. Its large files are elsewhere, as on the hub: ``/resolve`` says where, what
    their SHA-256 is and how long they are."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.elsewhere = f"http://localhost:{self.server_address[1]}"
        self.files: dict[str, bytes] = {}
        self.told: dict[str, str] = {}
        """The SHA-256 of files, where it is not theirs."""
        self.breaks_at: int | None = None
        """Where the connection breaks, once."""
        self.ranges: list[str | None] = []
        """What was asked of each file's content."""

    def sha256(self, name: str) -> str:
        return self.told.get(name) or hashlib.sha256(self.files[name]).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        kind, _, name = self.path.removeprefix("/owner/repository/").partition("/")
        if kind == "resolve":
            self._resolve(name.partition("/")[2])
        elif kind == "content":
            self._content(name)
        else:  # what the client tells about itself
            self._answer(404, {})

    def _resolve(self, name: str) -> None:
        if name not in self.server.files:
            self._answer(404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT})
            return
        headers = {"X-Repo-Commit": COMMIT, "X-Linked-ETag": f'"{self.server.sha256(name)}"'}
        headers["X-Linked-Size"] = str(len(self.server.files[name]))
        self._answer(302, headers | {"Location": f"{self.server.elsewhere}/owner/repository/content/{name}"})

    def _content(self, name: str) -> None:
        data = self.server.files[name]
        asked = self.headers.get("Range")
        self.server.ranges.append(asked)
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        headers = {"Content-Length": str(len(data) - start)}
        part = {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"} if asked else {}
        self._answer(206 if asked else 200, headers | part)
        end, self.server.breaks_at = self.server.breaks_at, None
        self.wfile.write(data[start:end])

    def _answer(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": "0", **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing."""


@pytest.fixture
def hub() -> Iterator[Hub]:
    server = Hub()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def run(hub: Hub, home: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """The client reads its settings once a process."""
    unset = ("HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_TOKEN", "HF_HUB_DISABLE_PROGRESS_BARS")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment |= {"HF_ENDPOINT": hub.url, "HF_HOME": str(home), "NO_PROXY": "*", "HF_HUB_DISABLE_TELEMETRY": "1"}
    environment["TQDM_POSITION"] = "-1"  # progress is shown although this is no terminal
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment, check=False)


def fetch(hub: Hub, home: Path, file: str) -> subprocess.CompletedProcess[str]:
    return run(hub, home, "-c", FETCH, f"hf:owner/repository/{file}")


def test_a_file_is_fetched_once(hub: Hub, home: Path) -> None:
    hub.files["folder/m.gguf"] = MODEL
    fetched = fetch(hub, home, "folder/m.gguf")
    path = Path(fetched.stdout.strip())
    assert path.read_bytes() == MODEL
    assert path.is_relative_to(home)
    assert path.name == "m.gguf"  # by which the model is called, and the other parts of a split one are found
    assert "100%" in fetched.stderr
    assert hub.ranges == [None]
    assert Path(fetch(hub, home, "folder/m.gguf").stdout.strip()) == path
    assert hub.ranges == [None]


def test_a_broken_download_goes_on_where_it_broke(hub: Hub, home: Path) -> None:
    hub.files["m.gguf"] = MODEL.ljust(25 * MIB)
    hub.breaks_at = 22 * MIB  # the client writes 10 MiB at once
    path = Path(fetch(hub, home, "m.gguf").stdout.strip())
    assert path.read_bytes() == hub.files["m.gguf"]
    first, second = hub.ranges
    assert first is None
    assert second is not None
    assert MIB < int(second.removeprefix("bytes=").rstrip("-")) <= 22 * MIB


def test_a_file_that_arrives_damaged_is_not_kept(hub: Hub, home: Path) -> None:
    hub.files["m.gguf"] = MODEL
    hub.told["m.gguf"] = "0" * 64
    assert f"arrived damaged and was removed: expected SHA-256 {'0' * 64}" in fetch(hub, home, "m.gguf").stderr
    hub.told.clear()
    assert Path(fetch(hub, home, "m.gguf").stdout.strip()).read_bytes() == MODEL


def test_all_parts_of_a_model_that_was_split_are_fetched(hub: Hub, home: Path) -> None:
    names = [f"q4/m-{part:05}-of-00003.gguf" for part in (1, 2, 3)]
    hub.files |= {name: MODEL[: 900 + number] for number, name in enumerate(names)}
    run(hub, home, "-c", FETCH, f"hf:owner/repository/{names[0]}")
    [snapshot] = (home / "hub").glob("models--owner--repository/snapshots/*")
    assert {name: (snapshot / name).read_bytes() for name in names} == hub.files


def test_what_is_not_there(hub: Hub, home: Path) -> None:
    assert "Cannot fetch `hf:owner/repository/none.gguf`: 404" in fetch(hub, home, "none.gguf").stderr
    with pytest.raises(EngineCapabilityError, match="Expected `hf:OWNER/REPOSITORY/FILE`"):
        model_file("hf:owner/repository")
