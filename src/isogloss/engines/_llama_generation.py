"""One generation of llama.cpp's server: from the bytes of its event stream to the chunks that go out."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from isogloss.engines._event_lines import EventLines
from isogloss.engines._grammar_guard import GrammarGuard, Role
from isogloss.engines._llama_stream import CompletionStream
from isogloss.engines._protocol import Chunk
from isogloss.engines._stops import Stops
from isogloss.events import Piece


class LlamaGeneration:
    """Reads the stream, holds it against the grammar and ends it at a stop string."""

    def __init__(self, stream: CompletionStream, stops: Stops, guard: GrammarGuard | None) -> None:
        self.is_over = False
        """Whether the last chunk has gone out; what the server sends afterwards is of no use."""
        self._lines = EventLines()
        self._stream = stream
        self._stops = stops
        self._guard = guard

    def feed(self, data: bytes) -> Iterator[Chunk]:
        """The chunks that these bytes settle. Raises `EngineError`."""
        for event in filter(None, map(_event, self._lines.feed(data))):
            chunk = self._stream.read(event)
            if chunk is not None and not self.is_over:
                yield from self._pass_on(chunk)

    def _pass_on(self, chunk: Chunk) -> Iterator[Chunk]:
        if chunk.finish is not None:
            self.is_over = True
            yield from self._stops.finish()
            yield chunk
            return
        if self._guard is not None and self._stream.knows_every_token:
            chunk = _guarded(chunk, self._guard)
        if chunk.token_ids:
            yield from self._stops.feed(chunk)
        if self._stops.found:
            self.is_over = True
            yield Chunk(finish="stop", usage=self._stream.usage)


def _event(line: bytes) -> bytes:
    """The JSON in a line, nothing where there is none. Older servers tell an error by the name of the field."""
    if line.startswith(b"error: {"):
        return b'{"error":' + line.removeprefix(b"error: ") + b"}"
    return line.removeprefix(b"data: ") if line.startswith(b"data: {") else b""


def _guarded(chunk: Chunk, guard: GrammarGuard) -> Chunk:
    """The chunk as the grammar sees it: without the token by which the engine closed a turn that was complete, and with
    a special token that is only text to the grammar as text."""
    roles = [guard.take(token) for token in chunk.token_ids]
    if roles[-1] is Role.CLOSING:
        return Chunk(chunk.pieces[:-1], chunk.token_ids[:-1], chunk.logprobs[:-1])
    if roles[-1] is Role.TEXT and chunk.pieces and chunk.pieces[-1].is_control:
        return msgspec.structs.replace(chunk, pieces=(*chunk.pieces[:-1], Piece(chunk.pieces[-1].text)))
    return chunk
