"""The lines of a server-sent event stream, whose bytes arrive cut anywhere."""

from __future__ import annotations


class EventLines:
    """Only a newline ends a line: the JSON of an event may hold other characters that Python takes for a line's end."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that these bytes complete, without their ends."""
        *whole, rest = data.split(b"\n")
        if whole and self._begun:
            whole[0] = b"".join([*self._begun, whole[0]])
            self._begun.clear()
        if rest:
            self._begun.append(rest)
        return whole


def event_data(line: bytes) -> bytes:
    """What a ``data:`` line carries; nothing for comments, other fields and blank lines."""
    return line[len(b"data:") :].strip() if line.startswith(b"data:") else b""
