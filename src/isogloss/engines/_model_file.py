"""Where a model's file is: a path, or a file in a repository of the Hugging Face hub."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from isogloss.errors import EngineCapabilityError, EngineUnavailableError

HUB_PREFIX = "hf:"
_PART = re.compile(r"-00001-of-(\d{5})\.gguf$")
"""The end of the name of the first file of a model that was split; the others are fetched with it."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_BLOCK = 1 << 20


def model_file(target: str) -> Path:
    """The GGUF file that ``target`` names: a path, or ``hf:OWNER/REPOSITORY/FILE``, which is fetched when it is not yet
    in the hub's cache and then held against its checksum. Raises `EngineCapabilityError` when there is none, or it is
    no GGUF file, and `EngineUnavailableError` when it cannot be fetched."""
    path = _from_hub(target) if target.startswith(HUB_PREFIX) else Path(target).expanduser()
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise EngineCapabilityError(f"Cannot read the model `{path}`: {error.strerror}") from error
    if magic != b"GGUF":
        raise EngineCapabilityError(f"Expected a GGUF file, got one that begins with {magic!r}: `{path}`")
    return (
        path.absolute()
    )  # links are not followed: in the hub's cache they have the names, and other parts beside them


def _from_hub(target: str) -> Path:
    owner, _, rest = target.removeprefix(HUB_PREFIX).partition("/")
    repository, _, file = rest.partition("/")
    if not (owner and repository and file):
        raise EngineCapabilityError(f"Expected `hf:OWNER/REPOSITORY/FILE`, got `{target}`")
    try:
        import huggingface_hub  # noqa: F401 - to say what is missing
    except ImportError as error:
        raise EngineUnavailableError(
            "Fetching from the hub needs huggingface-hub: pip install 'isogloss[hf]'"
        ) from error
    try:
        first, *_ = [_fetched(f"{owner}/{repository}", part) for part in _parts(file)]
    except EngineUnavailableError:
        raise
    except Exception as error:  # the hub's client raises errors of its own, of httpx and of the file system
        raise EngineUnavailableError(f"Cannot fetch `{target}`: {error}") from error
    return first


def _parts(file: str) -> list[str]:
    split = _PART.search(file)
    if split is None:
        return [file]
    return [f"{file[: split.start()]}-{part:05}-of-{split[1]}.gguf" for part in range(1, int(split[1]) + 1)]


def _fetched(repository: str, file: str) -> Path:
    """Where the file is in the cache. The hub's client shows its progress and goes on where a connection broke, but
    compares no more than lengths."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url, try_to_load_from_cache

    cached = try_to_load_from_cache(repository, file)
    path = Path(hf_hub_download(repository, file))
    if str(path) == cached:
        return path
    revision = path.parents[file.count("/")].name
    expected = get_hf_file_metadata(hf_hub_url(repository, file, revision=revision)).etag or ""
    if _SHA256.fullmatch(expected) and (digest := _digest(path)) != expected:
        path.resolve().unlink()
        path.unlink(missing_ok=True)
        raise EngineUnavailableError(
            f"`{HUB_PREFIX}{repository}/{file}` arrived damaged and was removed: "
            f"expected SHA-256 {expected}, got {digest}"
        )
    return path


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
