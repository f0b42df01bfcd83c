"""Where an engine's output ends because the request says so, wherever it is cut."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Sequence

import msgspec

from isogloss.engines._protocol import Chunk
from isogloss.events import Piece
from isogloss.stop_strings import StringSearch


class Stops:
    """Passes chunks through up to the first stop string.

    A stop string that spells a control token (one of ``control``, or a piece that is one) is matched by the token only,
    not by text that spells it too. A chunk whose text could be the beginning of a stop string is held back whole, so
    that what was reported of its tokens always matches the text. Time is linear in the text, whatever the strings.
    """

    def __init__(self, strings: Iterable[str], control: Container[str] = ()) -> None:
        self._strings = frozenset(string for string in strings if string)
        self._searches = [StringSearch(string) for string in self._strings if string not in control]
        self._first = frozenset(search.stop[0] for search in self._searches)
        self._held: deque[tuple[int, int, Chunk]] = deque()
        self._position = 0
        self.found = False
        """Whether a stop string came. Nothing that is fed afterwards counts."""

    def feed(self, chunk: Chunk) -> list[Chunk]:
        """The chunks that may go out now."""
        if not self._held and self._is_plain(chunk.pieces):  # by far the most
            self._position += len(chunk.pieces[0].text)
            return [chunk]
        start = self._position
        end = start + sum([len(piece.text) for piece in chunk.pieces])
        self._held.append((start, end, chunk))
        cut = self._find(chunk.pieces)
        if cut is not None:
            self.found = True
            return self._cut(cut)
        return self._release(end - max([search.matched for search in self._searches], default=0))

    def finish(self) -> list[Chunk]:
        """What was held back, when the stream ended without a stop string."""
        return self._release(self._position)

    def _is_plain(self, pieces: Sequence[Piece]) -> bool:
        """Whether it is one piece in which no stop string begins, nor, as nothing is held back, goes on."""
        return len(pieces) == 1 and not pieces[0].is_control and self._first.isdisjoint(pieces[0].text)

    def _find(self, pieces: Iterable[Piece]) -> int | None:
        """Where a stop string starts that ends in these pieces."""
        for piece in pieces:
            if piece.is_control:
                for search in self._searches:
                    search.matched = 0
                if piece.text in self._strings:
                    return self._position
            elif self._is_of_interest(piece.text):
                for index, character in enumerate(piece.text):
                    ended = [len(search.stop) for search in self._searches if search.step(character)]
                    if ended:
                        return self._position + index + 1 - max(ended)
            self._position += len(piece.text)
        return None

    def _is_of_interest(self, text: str) -> bool:
        return any(search.matched for search in self._searches) or not self._first.isdisjoint(text)

    def _release(self, end: int) -> list[Chunk]:
        free = []
        while self._held and self._held[0][1] <= end:
            free.append(self._held.popleft()[2])
        return free

    def _cut(self, end: int) -> list[Chunk]:
        free = [
            chunk if stop <= end else msgspec.structs.replace(chunk, pieces=_shorten(chunk.pieces, end - start))
            for start, stop, chunk in self._held
            if start < end
        ]
        self._held.clear()
        return free


def _shorten(pieces: tuple[Piece, ...], length: int) -> tuple[Piece, ...]:
    """The first ``length`` characters, which do not end inside a control token."""
    kept = []
    for piece in pieces:
        if length <= 0:
            break
        kept.append(piece if len(piece.text) <= length else Piece(piece.text[:length]))
        length -= len(piece.text)
    return tuple(kept)
