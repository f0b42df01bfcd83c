"""Fetch genuine chat templates of many model families for the tests: those that llama.cpp's sources carry.

    python scripts/chat_templates.py

They are in the source archive of the PyPI package ``llama-cpp-python`` (77 MB), which is fetched with pip and never
built. They go into Isogloss's cache, where ``tests/test_chat_template.py`` finds them; none are part of this project.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

from isogloss.demo_model import cache_directory

VERSION = "0.3.36"
TEMPLATES = "vendor/llama.cpp/models/templates"


def main() -> None:
    folder = cache_directory() / "chat-templates"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache_directory()) as temporary:
            fetched = Path(temporary) / "templates"
            fetched.mkdir()
            extract(download(Path(temporary)), fetched)
            fetched.rename(folder)
    print(f"{len(list(folder.glob('*.jinja')))} chat templates in {folder}")


def download(folder: Path) -> Path:
    """The source archive. pip asks its build system about it, for which that is installed for a moment."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
    command += ["--no-binary", "llama-cpp-python", "--dest", str(folder), f"llama-cpp-python=={VERSION}"]
    if subprocess.run(command, check=False).returncode:
        sys.exit("The source archive of llama-cpp-python could not be fetched")
    [archive] = folder.glob("*.tar.gz")
    return archive


def extract(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as files:
        for member in files:
            path = PurePosixPath(member.name)
            content = files.extractfile(member) if path.parent.match(f"*/{TEMPLATES}") else None
            if content is not None and path.suffix == ".jinja":
                (folder / path.name).write_bytes(content.read())


if __name__ == "__main__":
    main()
