"""Models that are on this machine already: the demo model, and GGUF files in the hub's cache.

The hub's cache keeps a repository's files under ``models--OWNER--REPOSITORY/snapshots/REVISION``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from isogloss.demo_model import DIALECT, FILE_NAME, cache_directory
from isogloss.dialects import detect_dialect
from isogloss.errors import TokenizerError, UnknownDialectError
from isogloss.tokenizers.gguf_metadata import read_metadata

PROJECTOR = "clip"
"""The architecture of files that hold the eyes of a model, not a model."""

_PART = re.compile(r"-(\d{5})-of-\d{5}\.gguf$")


class CachedModel(msgspec.Struct, frozen=True):
    """A model's file. ``target`` is what `isogloss.engines.open_engine` takes; ``size`` is in bytes, all parts of a
    file that was split together. ``None``: not told by the file, or no dialect is known for it."""

    target: str
    path: Path
    size: int
    dialect: str | None
    context_length: int | None


def cached_models() -> list[CachedModel]:
    """All that are there, by name. Files that cannot be read are left out."""
    files = [*_in_hub_cache(hub_cache()), *_in_own_cache(cache_directory())]
    return [model for target, path in sorted(files) if (model := _read(target, path)) is not None]


def hub_cache() -> Path:
    """``$HF_HUB_CACHE``, else ``hub`` in ``$HF_HOME``, else in ``huggingface`` in the user's cache directory."""
    own = os.environ.get("HF_HUB_CACHE")
    if own:
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("HF_HOME") or Path(base) / "huggingface").expanduser() / "hub"


def _in_own_cache(folder: Path) -> Iterator[tuple[str, Path]]:
    path = folder / FILE_NAME
    if path.is_file():
        yield str(path), path


def _in_hub_cache(folder: Path) -> Iterator[tuple[str, Path]]:
    """Of a file in several revisions the one that was fetched last."""
    for repository in folder.glob("models--*--*"):
        name = "/".join(repository.name.split("--", 2)[1:])
        latest: dict[str, Path] = {}
        for path in repository.glob("snapshots/*/**/*.gguf"):
            part = _PART.search(path.name)
            if path.is_file() and (part is None or int(part[1]) == 1):
                file = "/".join(path.relative_to(repository).parts[2:])
                if file not in latest or path.stat().st_mtime > latest[file].stat().st_mtime:
                    latest[file] = path
        for file, path in latest.items():
            yield f"hf:{name}/{file}", path


def _read(target: str, path: Path) -> CachedModel | None:
    try:
        metadata = read_metadata(path)
        size = sum(part.stat().st_size for part in _parts(path))
    except (TokenizerError, OSError):
        return None
    architecture = metadata.get("general.architecture")
    if architecture == PROJECTOR:
        return None
    context_length = metadata.get(f"{architecture}.context_length")
    return CachedModel(target, path, size, _dialect(path, metadata), context_length)


def _parts(path: Path) -> list[Path]:
    if _PART.search(path.name) is None:
        return [path]
    stem, of = path.name.split("-00001-of-", 1)
    return sorted(path.parent.glob(f"{_escaped(stem)}-[0-9][0-9][0-9][0-9][0-9]-of-{_escaped(of)}"))


def _escaped(text: str) -> str:
    """Text that a pattern for file names takes as it stands."""
    return re.sub(r"[*?[]", r"[\g<0>]", text)


def _dialect(path: Path, metadata: Mapping[str, Any]) -> str | None:
    if path.name == FILE_NAME:
        return DIALECT
    for known in (path.stem, metadata.get("tokenizer.chat_template")):
        try:
            if isinstance(known, str):
                return detect_dialect(known).name
        except UnknownDialectError:
            continue
    return None
