"""The metadata of a GGUF file (versions 2 and 3, little-endian): what precedes the tensors, as plain values.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import struct
from mmap import ACCESS_READ, mmap
from os import PathLike
from pathlib import Path
from typing import Any

from isogloss.errors import TokenizerError

STRING = 8
ARRAY = 9
SCALAR_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""How a value of each numbered type is laid out, in the letters of `struct`."""


def read_metadata(path: str | PathLike[str]) -> dict[str, Any]:
    """Every key with its value: numbers, booleans, strings (bytes that are no UTF-8 become U+FFFD) and lists of these.

    Reads nothing of the tensors. Raises `TokenizerError` when the file cannot be read or is not GGUF.
    """
    path = Path(path)
    try:
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as view:
            return _Reader(view).metadata()
    except (OSError, ValueError, struct.error, MemoryError, OverflowError) as error:
        raise TokenizerError(f"Cannot read `{path}` as GGUF: {error}") from error


class _Reader:
    def __init__(self, view: mmap) -> None:
        self._view = view
        self._at = 0

    def metadata(self) -> dict[str, Any]:
        magic, version, _, count = self._unpack("4sIQQ")
        if magic != b"GGUF":
            raise ValueError("it does not begin with the four letters `GGUF`")
        if version not in (2, 3):
            raise ValueError(f"expected version 2 or 3 in little-endian order, got {version}")
        return {self._string(): self._value(self._unpack("I")[0]) for _ in range(count)}

    def _value(self, kind: int) -> Any:
        if kind == STRING:
            return self._string()
        if kind == ARRAY:
            return self._array()
        return self._unpack(self._format(kind))[0]

    def _array(self) -> list[Any]:
        kind, count = self._unpack("IQ")
        if count > len(self._view):
            raise ValueError(f"a list claims {count} entries at byte {self._at}, more than the file holds")
        if kind == STRING:
            return [self._string() for _ in range(count)]
        return list(self._unpack(f"{count}{self._format(kind)}"))

    def _format(self, kind: int) -> str:
        try:
            return SCALAR_FORMATS[kind]
        except KeyError:
            raise ValueError(f"unknown type of value {kind} at byte {self._at}") from None

    def _string(self) -> str:
        (length,) = self._unpack("Q")
        return self._bytes(length).decode("utf-8", "replace")

    def _bytes(self, length: int) -> bytes:
        start, self._at = self._at, self._at + length
        self._require(start)
        return self._view[start : self._at]

    def _unpack(self, layout: str) -> tuple[Any, ...]:
        layout = "<" + layout
        start, self._at = self._at, self._at + struct.calcsize(layout)
        self._require(start)
        return struct.unpack_from(layout, self._view, start)

    def _require(self, start: int) -> None:
        if self._at > len(self._view):
            raise ValueError(f"it ends within a value at byte {start}")
