"""The vocabulary that every side has, for workers in Python."""

from __future__ import annotations

import base64
from pathlib import Path

SIZE = 201_088
"""Of o200k with harmony's control tokens, reserved ones included."""
END = 200_002
"""The control token that ends a turn."""


def ordinary_tokens(folder: str) -> list[bytes]:
    """The bytes of every token that is none for control, by id."""
    lines = (Path(folder) / "o200k_base.tiktoken").read_bytes().splitlines()
    return [base64.b64decode(line.split()[0]) for line in lines]


def all_tokens(folder: str) -> list[bytes]:
    """As `ordinary_tokens`, with a name for each control token."""
    ordinary = ordinary_tokens(folder)
    return [*ordinary, *(b"<|control_%d|>" % number for number in range(len(ordinary), SIZE))]
