"""Where a model's file is: a path, or a file in a repository of the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path

from isogloss.errors import EngineUnavailableError

HUB_PREFIX = "hf:"


def model_file(target: str) -> Path:
    """The GGUF file that ``target`` names: a path, or ``hf:OWNER/REPOSITORY/FILE``, which is fetched when it is not yet
    in the hub's cache. Raises `EngineUnavailableError` when there is none, or it is no GGUF file."""
    path = _from_hub(target) if target.startswith(HUB_PREFIX) else Path(target).expanduser()
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise EngineUnavailableError(f"Cannot read the model `{path}`: {error.strerror}") from error
    if magic != b"GGUF":
        raise EngineUnavailableError(f"Expected a GGUF file, got one that begins with {magic!r}: `{path}`")
    return path.resolve()


def _from_hub(target: str) -> Path:
    owner, _, rest = target.removeprefix(HUB_PREFIX).partition("/")
    repository, _, file = rest.partition("/")
    if not (owner and repository and file):
        raise EngineUnavailableError(f"Expected `hf:OWNER/REPOSITORY/FILE`, got `{target}`")
    try:
        from huggingface_hub import hf_hub_download
    except ImportError as error:
        raise EngineUnavailableError(
            "Fetching from the hub needs huggingface-hub: pip install 'isogloss[hf]'"
        ) from error
    try:
        return Path(hf_hub_download(f"{owner}/{repository}", file))
    except Exception as error:  # the hub's client raises errors of its own, of httpx and of the file system
        raise EngineUnavailableError(f"Cannot fetch `{target}`: {error}") from error
