"""A vocabulary from Hugging Face's ``tokenizer.json``, its end tokens and width from the files beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from isogloss.errors import TokenizerError
from isogloss.tokenizers._definition import define_vocabulary, is_marker
from isogloss.tokenizers._vocabulary import Vocabulary, end_tokens_by_name

_lock = Lock()


def from_tokenizer_json(
    path: str | PathLike[str],
    *,
    end_tokens: Iterable[int] | None = None,
    vocabulary_size: int | None = None,
) -> Vocabulary:
    """The vocabulary of a ``tokenizer.json`` file (or of the folder that holds one). Loaded once a file.

    Text is encoded as it stands: no Unicode normalisation, no blank put before it. Special tokens are the added tokens,
    except those that are ordinary text by their look (see `is_marker`).
    ``end_tokens`` defaults to those in ``generation_config.json`` and ``tokenizer_config.json`` beside it and those
    with well-known names; ``vocabulary_size`` to what ``config.json`` beside it says, or the number of tokens.
    Raises `TokenizerError`.
    """
    path = Path(path)
    if path.is_dir():
        path /= "tokenizer.json"
    try:
        state = path.stat()
    except OSError as error:
        raise TokenizerError(f"Cannot read `{path}`: {error.strerror}") from error
    chosen = None if end_tokens is None else frozenset(end_tokens)
    with _lock:  # links are not followed: in the hub's cache the files beside it are beside the link
        return _load(path.absolute(), state.st_mtime_ns, state.st_size, chosen, vocabulary_size)


@lru_cache(maxsize=8)
def _load(
    path: Path, modified: int, size: int, end_tokens: frozenset[int] | None, vocabulary_size: int | None
) -> Vocabulary:
    definition = _read_object(path)
    _check(definition, path)
    try:
        added = definition.get("added_tokens", ())
        declared = {entry["content"]: entry["id"] for entry in added if entry["special"]}
        by_look = {entry["content"]: entry["id"] for entry in added if is_marker(entry["content"])}
        special_tokens = declared | by_look
        if end_tokens is None:
            end_tokens = frozenset(end_tokens_by_name(declared)) | _end_tokens(path.parent, special_tokens)
        return define_vocabulary(
            path.parent.name or path.stem,
            definition,
            special_tokens,
            is_byte_level=_has_type(definition.get("decoder"), "ByteLevel"),
            end_tokens=end_tokens,
            vocabulary_size=vocabulary_size or _width(path.parent),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TokenizerError(f"`{path}` is not a `tokenizer.json`: {type(error).__name__} {error}") from error


class _Kind(msgspec.Struct):
    type: str = "BPE"


class _Encoding(msgspec.Struct):
    vocab: dict[str, int]
    merges: list[str | tuple[str, str]]


class _AddedToken(msgspec.Struct):
    id: int
    content: str
    special: bool


class _AnyDefinition(msgspec.Struct):
    model: _Kind


class _Definition(msgspec.Struct):
    """What is read of the file here; the engine that encodes reads the rest."""

    model: _Encoding
    added_tokens: list[_AddedToken] = []


def _check(definition: dict[str, Any], path: Path) -> None:
    """Raise `TokenizerError`, which says what is wrong and where, unless it is the definition of such an encoding."""
    try:
        kind = msgspec.convert(definition, _AnyDefinition).model.type
        if kind != "BPE":
            raise TokenizerError(f"Expected a byte-pair encoding (`BPE`) in `{path}`, got `{kind}`")
        msgspec.convert(definition, _Definition)
    except msgspec.ValidationError as error:
        raise TokenizerError(f"`{path}` is no `tokenizer.json`: {error}") from None


def _has_type(part: Any, name: str) -> bool:
    """Whether a part of the definition is of that type, or is a sequence that has one."""
    if not isinstance(part, dict):
        return False
    return part.get("type") == name or any(_has_type(entry, name) for entry in part.get("decoders", ()))


def _end_tokens(folder: Path, special_tokens: Mapping[str, int]) -> set[int]:
    """Those that the files beside the vocabulary name."""
    listed = _read_beside(folder, "generation_config.json").get("eos_token_id")
    found = {token for token in (listed if isinstance(listed, list) else [listed]) if isinstance(token, int)}
    named = _read_beside(folder, "tokenizer_config.json").get("eos_token")
    text = named.get("content") if isinstance(named, dict) else named
    if isinstance(text, str) and text in special_tokens:
        found.add(special_tokens[text])
    return found


def _width(folder: Path) -> int | None:
    config = _read_beside(folder, "config.json")
    width = config.get("vocab_size", (config.get("text_config") or {}).get("vocab_size"))
    return width if isinstance(width, int) else None


def _read_beside(folder: Path, name: str) -> dict[str, Any]:
    path = folder / name
    return _read_object(path) if path.is_file() else {}


def _read_object(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except OSError as error:
        raise TokenizerError(f"Cannot read `{path}`: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise TokenizerError(f"Expected a JSON object in `{path}`: {error}") from error
