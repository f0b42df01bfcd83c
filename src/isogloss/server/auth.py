"""Who may use the server: those who send one of its keys, or everybody when it has none."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from pathlib import Path

import msgspec

from isogloss.errors import RequestError
from isogloss.server.errors import AuthenticationError

ANYBODY = "anybody"
"""The name of those who use a server without keys."""

_FALLBACK_NAME = "default"


class ApiKey(msgspec.Struct, frozen=True):
    """A key and the name of who has it. Keys of one name share what they stored, and their limits."""

    name: str
    value: str


class Keys:
    """The keys of a server."""

    def __init__(self, keys: Sequence[ApiKey]) -> None:
        self._keys = [(key.name, key.value.encode()) for key in keys]

    def holder(self, authorization: str) -> str:
        """The name of who sent an ``Authorization`` header. Raises `AuthenticationError`.

        All keys are compared, each in constant time: how long it takes tells nothing.
        """
        if not self._keys:
            return ANYBODY
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() != "bearer" or not given:
            raise AuthenticationError(
                "You didn't provide an API key. You need to provide your API key in an Authorization header using "
                "Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
                code="missing_api_key",
            )
        sent = given.strip().encode()
        holders = [name for name, key in self._keys if hmac.compare_digest(sent, key)]
        if not holders:
            raise AuthenticationError("Incorrect API key provided.")
        return holders[0]


def parse_keys(text: str) -> tuple[ApiKey, ...]:
    """Keys, one a line: ``NAME KEY`` or the key alone. Empty lines, and those that begin with ``#``, are skipped.

    Raises `RequestError`.
    """
    keys = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) > 2:
            raise RequestError(f"Expected `NAME KEY` in line {number} of the keys, got {len(words)} words")
        keys.append(ApiKey(words[0] if len(words) == 2 else _FALLBACK_NAME, words[-1]))
    if not keys:
        raise RequestError("Expected at least one key")
    return tuple(keys)


def read_keys(path: Path) -> tuple[ApiKey, ...]:
    """The keys in a file. Raises `RequestError`."""
    try:
        return parse_keys(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RequestError(f"Cannot read the keys in `{path}`: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise RequestError(f"Cannot read the keys in `{path}`: {error}") from error
