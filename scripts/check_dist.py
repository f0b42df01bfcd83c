"""Check a wheel and a source archive before anybody gets them, and write the wheel's bill of materials.

    python scripts/check_dist.py dist

Holds what is in both against the files that git knows, installs the wheel into a fresh environment of every supported
Python that is found and tries it there (``scripts/try_install.py``), tells the sizes, and writes the bill (CycloneDX,
``NAME-VERSION.cdx.json``) of an installation with all extras. Packages come from where pip is configured to look.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from email.message import Message
from email.parser import BytesParser
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
SOURCES = "src/"
LEFT_OUT = (".ci/",)
"""What git has and the source archive does not."""
NEEDED = (
    r"isogloss/py\.typed",
    r"isogloss/data/o200k_base\.xz",
    r"isogloss/data/o200k_base\.LICENSE",
    r"isogloss/server/playground/index\.html",
    r"isogloss/server/playground/app\.js",
    r"isogloss/server/playground/markers\.woff2",
    r"isogloss/server/playground/page\.css",
    r"isogloss/server/migrations/env\.py",
    r"isogloss/server/migrations/versions/r0001_\w+\.py",
    r"[^/]+\.dist-info/licenses/LICENSE",
    r"[^/]+\.dist-info/licenses/NOTICE",
)
"""Patterns, each of some file in the wheel without which it would be of no use or unlawful."""
NEEDED_SOURCES = (
    r"tests/corpus/harmony\.txt",
    r"tests/test_laws\.py",
    r"docs/index\.md",
    r"CONTRIBUTING\.md",
    r"Makefile",
)
DIALECT = re.compile(r"isogloss/dialects/([a-z]\w*)\.py")


class DistributionError(Exception):
    """A distribution is not what it should be."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder.resolve()
    try:
        check(folder)
    except DistributionError as error:
        sys.exit(f"{error}")


def check(folder: Path) -> None:
    wheel, archive = only(folder, "*.whl"), only(folder, "*.tar.gz")
    tracked = tracked_files()
    check_wheel(names_in_wheel(wheel), tracked)
    check_archive(names_in_archive(archive), tracked)
    for path in (wheel, archive):
        print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB, contents as they should be")
    metadata = wheel_metadata(wheel)
    for version in supported_versions(metadata):
        python = find_python(version)
        if python is None:
            print(f"Python {version}: not installed here, skipped")
        else:
            try_install(wheel, python)
            print(f"Python {version}: installed and tried with the core dependencies alone")
    print(f"{write_bill(wheel, metadata).name}: written")


def only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise DistributionError(f"Expected one {pattern} in {folder}, got {[path.name for path in found]}")
    return found[0]


def tracked_files() -> set[str]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, check=True, capture_output=True, text=True)
    return set(listing.stdout.rstrip("\0").split("\0"))


def names_in_wheel(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as wheel:
        return {name for name in wheel.namelist() if not name.endswith("/")}


def names_in_archive(path: Path) -> set[str]:
    """Without the folder that all of them are in."""
    with tarfile.open(path) as archive:
        return {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}


def check_wheel(names: set[str], tracked: set[str]) -> None:
    """The package as git has it and its metadata, nothing else: no tests, nothing that lay about."""
    package = {name for name in names if not re.match(r"[^/]+\.dist-info/", name)}
    same("wheel", package, {name.removeprefix(SOURCES) for name in tracked if name.startswith(SOURCES)})
    present("wheel", names, NEEDED)
    dialects = sorted(match[1] for match in map(DIALECT.fullmatch, names) if match)
    present("wheel", names, [rf"isogloss/dialects/{name}\.md" for name in dialects])


def check_archive(names: set[str], tracked: set[str]) -> None:
    same("source archive", names - {"PKG-INFO"}, {name for name in tracked if not name.startswith(LEFT_OUT)})
    present("source archive", names, NEEDED_SOURCES)


def same(what: str, found: set[str], expected: set[str]) -> None:
    if found != expected:
        stray, missing = sorted(found - expected), sorted(expected - found)
        raise DistributionError(f"The {what} and git differ: stray {stray}, missing {missing}")


def present(what: str, names: set[str], patterns: Iterable[str]) -> None:
    missing = [pattern for pattern in patterns if not any(re.fullmatch(pattern, name) for name in names)]
    if missing:
        raise DistributionError(f"The {what} lacks {missing}")


def wheel_metadata(path: Path) -> Message:
    with zipfile.ZipFile(path) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        return BytesParser().parsebytes(wheel.read(name))


def supported_versions(metadata: Message) -> list[str]:
    """Those that the classifiers name, ``3.10`` say."""
    lines = metadata.get_all("Classifier", [])
    matches = (re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line) for line in lines)
    return [match[1] for match in matches if match]


def find_python(version: str) -> Path | None:
    """An interpreter of that version, on the path or among pyenv's."""
    return next((path for path in candidates(version) if runs(path, version)), None)


def candidates(version: str) -> Iterator[Path]:
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        yield Path(sys.executable)
    found = shutil.which(f"python{version}")
    if found:
        yield Path(found)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(pyenv.glob(f"versions/{version}.*/bin/python"))


def runs(python: Path, version: str) -> bool:
    """Whether it is there and of that version: a shim may be neither."""
    code = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", code], check=False, capture_output=True, text=True)
    return done.returncode == 0 and done.stdout.strip() == version


def try_install(wheel: Path, base: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        python = environment(Path(folder) / "environment", base, f"{wheel}")
        # From a folder without the sources, looking neither there nor at the user's packages: the wheel is tried.
        run([python, "-I", PROJECT / "scripts" / "try_install.py"], Path(folder))


def write_bill(wheel: Path, metadata: Message) -> Path:
    bill = wheel.with_name(f"{metadata['Name']}-{metadata['Version']}.cdx.json")
    with tempfile.TemporaryDirectory() as folder:
        python = environment(Path(folder) / "environment", Path(sys.executable), f"{wheel}[all]")
        # Where the wheel lay on this machine is nobody's business, and would be in the bill.
        for record in Path(folder).rglob("isogloss-*.dist-info/direct_url.json"):
            record.unlink()
        described = Path(folder) / "pyproject.toml"
        described.write_text(project_table(metadata), encoding="utf-8")
        command = [sys.executable, "-m", "cyclonedx_py", "environment", "--pyproject", f"{described}"]
        run([*command, "--mc-type", "library", "--output-reproducible", "--output-file", bill, python], Path(folder))
    return bill


def project_table(metadata: Message) -> str:
    """What the bill is of, as a ``pyproject.toml``. Our own has no version in it, and the tool cannot find it out."""
    fields = {"name": "Name", "version": "Version", "description": "Summary", "license": "License-Expression"}
    lines = [f"{key} = {json.dumps(metadata[header])}" for key, header in fields.items()]  # JSON's strings are TOML's
    dependencies = f"dependencies = {json.dumps(metadata.get_all('Requires-Dist', []))}"  # those of extras among them
    return "\n".join(["[project]", *lines, dependencies, ""])


def environment(folder: Path, base: Path, requirement: str) -> Path:
    """The interpreter of a fresh environment with that alone, without pip: this environment's pip installs into it."""
    run([base, "-m", "venv", "--without-pip", folder], folder.parent)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip = [sys.executable, "-m", "pip", "--python", f"{python}", "--disable-pip-version-check"]
    run([*pip, "install", "--quiet", requirement], folder.parent)
    return python


def run(command: Sequence[str | Path], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise DistributionError(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
