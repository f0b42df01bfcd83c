"""Content that a client keeps for the server: encrypted, so that it cannot be read, forged or changed on the way.

``reasoning.encrypted_content`` and compacted conversations are sealed, and opened again when they come back.
"""

from __future__ import annotations

from typing import Any

import msgspec
from cryptography.fernet import Fernet, InvalidToken

from isogloss.errors import RequestError


class Seal:
    """Seals JSON for an owner: nobody else can use it."""

    def __init__(self) -> None:
        self.key = Fernet.generate_key()

    def close(self, owner: str, value: object) -> str:
        return Fernet(self.key).encrypt(msgspec.json.encode([owner, value])).decode()

    def open(self, owner: str, sealed: str, pointer: str) -> Any:
        """Raises `RequestError` for what was not sealed here, or for somebody else."""
        try:
            sealed_for, value = msgspec.json.decode(Fernet(self.key).decrypt(sealed.encode()))
        except (InvalidToken, UnicodeEncodeError):
            sealed_for, value = None, None
        if sealed_for != owner:
            raise RequestError(
                "The encrypted content could not be verified.", pointer=pointer, code="invalid_encrypted_content"
            )
        return value
