"""A real Chromium: the machine's, or one that is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

COMMANDS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge")
CACHE = Path(__file__).parents[2] / ".cache" / "chromium"

ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
"""Root has no sandbox, and containers have little shared memory."""

_NODE = "import('@sparticuz/chromium').then(async ({default: c}) => console.log(await c.executablePath()))"


def chromium() -> Path:
    """The browser: named by ``CHROMIUM_PATH``, on the path, Debian's (as root), or npm's ``@sparticuz/chromium``.

    Raises `RuntimeError` where none can be had.
    """
    return _found() or _from_debian() or _from_npm()


def _found() -> Path | None:
    named = os.environ.get("CHROMIUM_PATH")
    found = named or next(filter(None, map(shutil.which, COMMANDS)), None)
    return Path(found) if found else None


def _from_debian() -> Path | None:
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return None
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "--yes", "--no-install-recommends", "chromium"]):
        done = subprocess.run(["apt-get", "--quiet", *command], env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            return None
    return _found()


def _from_npm() -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeError("No Chromium: install one, or Node.js so that one can be installed, or set CHROMIUM_PATH")
    CACHE.mkdir(parents=True, exist_ok=True)
    for command in ([npm, "install", "--silent", "--no-save", "@sparticuz/chromium"], ["node", "--eval", _NODE]):
        done = subprocess.run(command, cwd=CACHE, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"No Chromium: {' '.join(command[:3])} failed: {done.stderr.strip()[-500:]}")
    return Path(done.stdout.strip())
