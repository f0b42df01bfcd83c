"""Files and standard input, with errors that name the file and what was expected in it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from isogloss.errors import ConversationError, RequestError
from isogloss.messages import Tool


def read_text(path: Path | None) -> str:
    """The text of a file, or of standard input without one (or for ``-``). Raises `RequestError`."""
    try:
        if path is None or str(path) == "-":
            return sys.stdin.buffer.read().decode("utf-8-sig")
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise RequestError(f"Cannot read `{path}`: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise not_utf8(f"`{path or 'standard input'}`", error) from None


def not_utf8(where: str, error: UnicodeDecodeError) -> RequestError:
    """What to raise for bytes that are no text."""
    return RequestError(f"Expected UTF-8 in {where}, got 0x{error.object[error.start]:02x} as byte {error.start}")


def read_json(path: Path | None) -> Any:
    """The JSON value in a file. Raises `RequestError`."""
    text = read_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"Expected JSON in `{path or 'standard input'}`: {error}") from None


def read_object(path: Path | None) -> dict[str, Any]:
    """The JSON object in a file. Raises `RequestError`."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise RequestError(f"Expected `object` in `{path or 'standard input'}`, got `{type(value).__name__}`")
    return value


def read_tools(path: Path | None) -> list[Tool]:
    """Tools from a file: an array of them, or a request with ``tools``, as OpenAI's APIs write them."""
    if path is None:
        return []
    value = read_json(path)
    if isinstance(value, dict):
        value = value.get("tools")
    if not isinstance(value, list):
        raise ConversationError(f"Expected an array of tools in `{path}`")
    return [_tool(tool, f"/{position}", path) for position, tool in enumerate(value)]


def _tool(tool: Any, pointer: str, path: Path) -> Tool:
    try:
        return Tool.from_openai(tool)
    except ConversationError as error:
        raise ConversationError(f"{error.message} (in `{path}`)", pointer=f"{pointer}{error.pointer or ''}") from None
