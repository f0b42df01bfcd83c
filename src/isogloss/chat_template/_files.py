"""Where chat templates are kept: GGUF metadata, ``tokenizer_config.json`` and the Jinja files beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from isogloss.errors import TemplateError
from isogloss.tokenizers._definition import is_marker
from isogloss.tokenizers._gguf import special_tokens_of
from isogloss.tokenizers.gguf_metadata import read_metadata

DEFAULT = "default"

_GGUF_TEMPLATE = "tokenizer.chat_template"
_GGUF_TOKENS = "tokenizer.ggml.tokens"


class TemplateFiles(msgspec.Struct, frozen=True):
    """Templates by name, the tokens that they know by a name (``bos_token``), and all special tokens' spellings."""

    sources: Mapping[str, str]
    tokens: Mapping[str, str]
    special_tokens: frozenset[str]


def read_gguf(path: Path) -> TemplateFiles:
    """Raises `TokenizerError` for a file that is no GGUF, `TemplateError` for one without a template."""
    metadata = read_metadata(path)
    prefix = f"{_GGUF_TEMPLATE}."
    sources = {key.removeprefix(prefix): value for key, value in metadata.items() if key.startswith(prefix)}
    if _GGUF_TEMPLATE in metadata:
        sources[DEFAULT] = metadata[_GGUF_TEMPLATE]
    if not sources:
        raise TemplateError(f"`{path}` has no chat template")
    spellings: list[str] = metadata.get(_GGUF_TOKENS, [])
    tokens: dict[str, str] = {}
    for role in ("bos", "eos", "unknown", "separator", "padding"):
        token = metadata.get(f"tokenizer.ggml.{role}_token_id")
        if isinstance(token, int) and 0 <= token < len(spellings):
            name = {"unknown": "unk", "separator": "sep", "padding": "pad"}.get(role, role)
            tokens[f"{name}_token"] = spellings[token]
    return TemplateFiles(sources, tokens, frozenset(special_tokens_of(metadata) if spellings else ()))


def read_tokenizer_config(path: Path) -> TemplateFiles:
    """``path`` is the file or its folder. A ``chat_template.jinja`` beside it and the templates in
    ``additional_chat_templates`` go before those in the file. Raises `TemplateError`."""
    folder = path if path.is_dir() else path.parent
    file = folder / "tokenizer_config.json" if path.is_dir() else path
    beside = folder / "chat_template.jinja"
    config = _read_object(file) if file.is_file() or not beside.is_file() else {}
    sources = _listed(config.get("chat_template"), file)
    if beside.is_file():
        sources[DEFAULT] = read_template(beside)
    for more in sorted((folder / "additional_chat_templates").glob("*.jinja")):
        sources[more.stem] = read_template(more)
    if not sources:
        raise TemplateError(f"`{file}` has no chat template, and there is no `chat_template.jinja` beside it")
    tokens = {
        key: text for key, value in config.items() if key.endswith("_token") and (text := _content(value)) is not None
    }
    return TemplateFiles(sources, tokens, frozenset({*tokens.values(), *_added_tokens(config, folder)}))


def read_template(path: Path) -> str:
    """The text of a Jinja file. Raises `TemplateError`."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise TemplateError(f"Cannot read the chat template `{path}`: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise TemplateError(f"Expected UTF-8 in the chat template `{path}`: {error.reason}") from error


def _listed(value: Any, file: Path) -> dict[str, str]:
    """One template, or a list of named ones."""
    if value is None:
        return {}
    if isinstance(value, str):
        return {DEFAULT: value}
    try:
        return {entry["name"]: entry["template"] for entry in value}
    except (TypeError, KeyError):
        raise TemplateError(
            f"Expected a template or a list of objects with `name` and `template` in `{file}`", pointer="/chat_template"
        ) from None


def _added_tokens(config: Mapping[str, Any], folder: Path) -> list[str]:
    added = list((config.get("added_tokens_decoder") or {}).values())
    vocabulary = folder / "tokenizer.json"
    if not added and vocabulary.is_file():
        added = _read_object(vocabulary).get("added_tokens") or []
    return [entry["content"] for entry in added if entry.get("special") or is_marker(entry["content"])]


def _content(value: Any) -> str | None:
    """A token as these files write it: its text, or an object that has it."""
    text = value.get("content") if isinstance(value, dict) else value
    return text if isinstance(text, str) else None


def _read_object(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except OSError as error:
        raise TemplateError(f"Cannot read `{path}`: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise TemplateError(f"Expected a JSON object in `{path}`: {error}") from error
