"""Scanning by token ids: what an engine samples, one id at a time or many, to the events of a dialect.

    scanner = TokenScanner(get_dialect("kimi"), tokenizer, tools)
    for token in sampled:
        events = scanner.feed(token)
    events = scanner.finish()

Control tokens are known by their ids, so that text which spells one stays text. Bytes that are no whole character yet
wait for the next token.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from isogloss.dialects._base import Dialect
from isogloss.dialects._repairs import NotesRepairs, Repair
from isogloss.dialects._scanner_state import set_state, state_of
from isogloss.errors import OutputError, TokenizerError
from isogloss.events import Event, Malformed, Piece
from isogloss.messages import Tool
from isogloss.tokenizers import Tokenizer

_REPLACEMENT = "\ufffd"
_DAMAGE = "\udfff"
"""Stands for bytes that are no UTF-8 while they are decoded, since the text itself may hold `_REPLACEMENT`."""

codecs.register_error("isogloss.damage", lambda error: (_DAMAGE, getattr(error, "end", 0)))


class DamagedOutputError(OutputError):
    """A strict scanner met output that departs from the format. ``events`` are those of the call that raised."""

    code = "damaged_output"

    def __init__(self, message: str, events: Iterable[Event], *, span: tuple[int, int]) -> None:
        super().__init__(message, span=span)
        self.events = tuple(events)


class _TokenTexts(dict[int, str | None]):
    """The text of each ordinary token that is text by itself, ``None`` for all others; filled as it is asked."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__()
        self._token_bytes = tokenizer.token_bytes
        self._control = frozenset(tokenizer.special_tokens.values())

    def __missing__(self, token: int) -> str | None:
        self[token] = text = None if token in self._control else self._text(token)
        return text

    def _text(self, token: int) -> str | None:
        try:
            return self._token_bytes(token).decode() or None
        except (TokenizerError, UnicodeDecodeError):
            return None


@lru_cache(maxsize=8)
def _texts_of(tokenizer: Any) -> _TokenTexts:
    return _TokenTexts(tokenizer)


class Snapshot(NamedTuple):
    """The state of a scanner at one moment, for `TokenScanner.restore`."""

    scanner: dict[str, Any]
    decoder: tuple[bytes, int]
    position: int
    repairs: tuple[Repair, ...]


class TokenScanner:
    """Scans the ids of one assistant turn.

    A forgiving scanner, the default, reads on through any damage and lists in ``repairs`` what it put right. A strict
    one raises `DamagedOutputError` there, and for output that is no call after all. ``starts_in`` is as for
    `Dialect.scanner`, which ``scanner`` holds.
    """

    def __init__(
        self,
        dialect: Dialect,
        tokenizer: Tokenizer,
        tools: Iterable[Tool] = (),
        *,
        starts_in: str = "text",
        strict: bool = False,
    ) -> None:
        self.scanner = dialect.scanner(tools, starts_in=starts_in, control=tokenizer.special_tokens)
        self.strict = strict
        vocabulary: Any = tokenizer
        self._texts = _texts_of(vocabulary)
        self._token_bytes = tokenizer.token_bytes
        self._control = {token: Piece(text, True) for text, token in tokenizer.special_tokens.items()}
        self._decoder = codecs.getincrementaldecoder("utf-8")("isogloss.damage")
        self._is_cut = False
        self._own_repairs: list[Repair] = []
        self._position = 0

    @property
    def repairs(self) -> list[Repair]:
        """What was put right so far, in the order in which it was found."""
        return self.scanner.repairs if isinstance(self.scanner, NotesRepairs) else self._own_repairs

    def feed(self, tokens: int | Iterable[int]) -> list[Event]:
        """The events that these ids settle: one id, or any number of them. Raises `DamagedOutputError` if strict."""
        if isinstance(tokens, int):
            text = self._texts[tokens]
            if text is not None and not self.strict and not self._is_cut:  # by far the most tokens
                self._position += len(text)
                return self.scanner.feed(text)
            tokens = (tokens,)
        noted = len(self.repairs)
        events: list[Event] = []
        for piece in self._pieces(tokens):
            events += self._scan(piece)
        self._check(events, noted)
        return events

    def finish(self, reason: str = "stop") -> list[Event]:
        """The events that the end of the output settles. ``reason`` is why the engine stopped."""
        noted = len(self.repairs)
        events = [event for piece in self._flushed() for event in self._scan(piece)]
        events += self.scanner.finish(reason)
        self._check(events, noted)
        return events

    def snapshot(self) -> Snapshot:
        """The present state, to go back to when what was fed since is taken back.

        It costs time and memory for the pieces of the call that is open, not for the output so far.
        """
        return Snapshot(state_of(self.scanner), self._decoder.getstate(), self._position, tuple(self._own_repairs))

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to that state, any number of times."""
        set_state(self.scanner, snapshot.scanner)
        self._decoder.setstate(snapshot.decoder)
        self._is_cut = snapshot.decoder[0] != b""
        self._position = snapshot.position
        self._own_repairs = list(snapshot.repairs)

    def _scan(self, piece: Piece) -> list[Event]:
        self._position += len(piece.text)
        return self.scanner.feed(piece if piece.is_control else piece.text)

    def _pieces(self, tokens: Iterable[int]) -> Iterator[Piece]:
        """Control tokens one by one, the text between them joined."""
        run: list[bytes] = []
        for token in tokens:
            control = self._control.get(token)
            if control is not None:
                yield from self._decoded(run)
                yield from self._flushed()
                yield control
                run.clear()
                continue
            try:
                data = self._token_bytes(token)
            except TokenizerError:
                data = b""
            if not data:
                yield from self._decoded(run)
                yield from self._flushed()
                run.clear()
                self._note(f"the id {token} is outside the vocabulary")
                yield Piece(_REPLACEMENT)
                continue
            run.append(data)
        yield from self._decoded(run)

    def _decoded(self, run: list[bytes]) -> Iterator[Piece]:
        text = self._decoder.decode(b"".join(run))
        self._is_cut = self._decoder.getstate()[0] != b""
        yield from self._mended(text, "bytes that are no UTF-8 were replaced")

    def _flushed(self) -> Iterator[Piece]:
        """What is left of a character that was cut."""
        text = self._decoder.decode(b"", True)
        self._decoder.reset()
        self._is_cut = False
        yield from self._mended(text, "a character that was cut short was replaced")

    def _mended(self, text: str, reason: str) -> Iterator[Piece]:
        place = text.find(_DAMAGE)
        while place >= 0:
            self._note(reason, place)
            place = text.find(_DAMAGE, place + 1)
        if text:
            yield Piece(text.replace(_DAMAGE, _REPLACEMENT))

    def _note(self, reason: str, offset: int = 0) -> None:
        self.repairs.append(Repair(reason, _REPLACEMENT, self._position + offset))

    def _check(self, events: list[Event], noted: int) -> None:
        if not self.strict:
            return
        for event in events:
            if isinstance(event, Malformed):
                raise DamagedOutputError(event.reason, events, span=event.span)
        for repair in self.repairs[noted:]:
            span = (repair.start, repair.start + len(repair.raw))
            raise DamagedOutputError(repair.reason, events, span=span)
