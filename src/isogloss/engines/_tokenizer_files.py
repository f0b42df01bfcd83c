"""Where a remote engine's vocabulary is: given by the caller, in the server's own folder, or in the hub's cache."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from isogloss.engines._model_file import HUB_PREFIX
from isogloss.errors import EngineUnavailableError, TokenizerError

if TYPE_CHECKING:
    from isogloss.tokenizers import Tokenizer

_FILES = ("tokenizer.json", "tokenizer_config.json", "generation_config.json", "config.json", "chat_template.jinja")


def find_tokenizer(given: Tokenizer | str | Path | None, root: str, is_here: bool) -> Tokenizer:
    """The tokenizer. ``given`` is one, or a folder, a ``tokenizer.json``, a GGUF file, ``hf:OWNER/REPOSITORY``.

    ``root`` is where the server has its model from: a folder, looked into if the server ``is_here`` on this machine, or
    a repository of the hub, looked for in the cache. Raises `EngineUnavailableError`.
    """
    if given is not None and not isinstance(given, (str, Path)):
        return given
    path = _given(given) if given is not None else _own(root, is_here)
    if path is None:
        raise EngineUnavailableError(
            f"The vocabulary of `{root}` is not on this machine, and vLLM's server does not tell it (its /tokenize "
            "makes control tokens of text that spells them, and no answer has the bytes of tokens): name it by the "
            "option tokenizer (a model's folder, a tokenizer.json, a GGUF file, or hf:OWNER/REPOSITORY)"
        )
    from isogloss.tokenizers import from_gguf, from_tokenizer_json

    try:
        return from_gguf(path) if path.suffix == ".gguf" else from_tokenizer_json(path)
    except TokenizerError as error:
        raise EngineUnavailableError(f"The tokenizer cannot be used: {error.message}") from error


def chat_template_beside(
    given: Tokenizer | str | Path | None, root: str, is_here: bool
) -> tuple[str | None, dict[str, str]]:
    """The model's own chat template, where its folder is at hand and has one, and the tokens that it knows by name."""
    path = _own(root, is_here) if not isinstance(given, (str, Path)) else _given(given)
    if path is None:
        return None, {}
    folder = path if path.is_dir() else path.parent
    file = folder / "tokenizer_config.json"
    config = msgspec.json.decode(file.read_bytes(), type=dict[str, Any]) if file.is_file() else {}
    own = folder / "chat_template.jinja"
    template = own.read_text(encoding="utf-8") if own.is_file() else config.get("chat_template")
    named = {name: config.get(name) for name in ("bos_token", "eos_token")}
    spelled = {name: token.get("content") if isinstance(token, dict) else token for name, token in named.items()}
    tokens = {name: text for name, text in spelled.items() if isinstance(text, str)}
    return template if isinstance(template, str) else None, tokens


def _given(given: str | Path) -> Path:
    text = str(given)
    if not text.startswith(HUB_PREFIX):
        return Path(given).expanduser()
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise EngineUnavailableError(
            "Fetching from the hub needs huggingface-hub: pip install 'isogloss[hf]'"
        ) from error
    try:
        return Path(snapshot_download(text.removeprefix(HUB_PREFIX), allow_patterns=list(_FILES)))
    except Exception as error:  # the hub's client raises errors of its own, of httpx and of the file system
        raise EngineUnavailableError(f"Cannot fetch `{text}`: {error}") from error


def _own(root: str, is_here: bool) -> Path | None:
    folder = Path(root)
    if is_here and folder.is_absolute() and (folder / "tokenizer.json").is_file():
        return folder
    try:
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError
    except ImportError:
        return None
    try:
        cached = try_to_load_from_cache(root, "tokenizer.json")
    except HFValidationError:  # a path
        return None
    return Path(cached).parent if isinstance(cached, str) else None
