"""The machinery that every scanner shares: one buffer, one state at a time, events that tile the output.

A state is a method that reads `_text` from `_pos` on. It returns true when it got somewhere and the (possibly new)
state should go on, false when it needs more of the output. What it has not consumed is held for the next piece and is
bounded: a marker that may be cut, white space that may belong to one, or a name or a number that is not finished.

An event's span starts where the last one ended, so markup belongs to the event that follows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import ClassVar, Final

from isogloss._compiled import mypyc_attr
from isogloss.dialects._code_marks import LONGEST_INDENT, CodeMarks
from isogloss.dialects._lexicon import Found, Lexicon, stand_in, without_forgeries, without_stand_ins
from isogloss.events import (
    CUT_SHORT,
    Event,
    Finish,
    Malformed,
    Piece,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from isogloss.messages import Tool, new_call_id
from isogloss.notations.json import parse_object
from isogloss.notations.runs import run

LONGEST_SPACE: Final = 64
"""White space in front of a marker belongs to it up to this length; a longer run is text."""

LONGEST_HELD: Final = 4096
"""No scanner holds back more of the output than this, but for values that are typed when complete."""

LONGEST_PIECE: Final = 4096
"""Longer pieces of output are taken in pieces of this length."""

MADE_UP_RESULT: Final = "the model made up a tool result"
AFTER_THE_TURN: Final = "text after the end of the turn"

_BYTE_ORDER_MARK: Final = "\ufeff"
_SPACE = run(r"\s*")
_NOT_SPACE = re.compile(r"\S").search


class Prose:
    """A state of running text: the event that carries it and the markers that may interrupt it.

    ``trims`` are the kinds of marker that own the white space in front of them.
    """

    def __init__(
        self,
        event: type[TextDelta] | type[ReasoningDelta] | type[RefusalDelta],
        lexicon: Lexicon,
        trims: Iterable[str] = (),
    ) -> None:
        self.event = event
        self.lexicon = lexicon
        self.lead = lexicon.lead
        self.candidate = lexicon.candidate
        self.trims = frozenset(trims)


@mypyc_attr(allow_interpreted_subclasses=True)
class StreamScanner:
    """Base of all scanners. A subclass names its prose states in ``text_prose`` and ``reasoning_prose`` and has one
    method ``_on_KIND`` for each kind of marker in them."""

    text_prose: Prose
    reasoning_prose: Prose
    refusal_prose: Prose
    results: Lexicon
    """What ends a tool result that the model made up."""

    control: frozenset[str]
    """The markers that arrive as control tokens; another control token is the text that it spells."""

    framed_by_tokens: ClassVar[bool] = False
    """Control tokens frame everything: no white space behind them is markup."""

    def __init__(self, tools: Iterable[Tool] = (), starts_in: str = "text") -> None:
        self.tools = {tool.name: tool for tool in tools}
        self.control = frozenset()
        self._text = ""
        self._pos = 0
        self._base = 0
        self._mark = 0
        self._out: list[Event] = []
        self._final = False
        self._ended_of_itself = False
        self._has_controls = False
        self._trim = starts_in == "reasoning" and not self.framed_by_tokens
        self._kept_space = False
        self._previous = ""
        self._code = CodeMarks()
        self._raw: list[str] | None = None
        self._raw_start = 0
        self._reason = ""
        self.makes_up_results = False
        """Whether the model wrote, or is writing, a result of a tool itself: what follows rests on nothing."""
        self._resync: Lexicon
        self._index = 0
        self._has_calls = False
        self._started = False
        self._json: list[str] = []
        self._mode = self.reasoning_prose if starts_in == "reasoning" else self.text_prose
        self._state: Callable[[], bool] = self._prose

    # -- what users call

    def feed(self, piece: str | Piece) -> list[Event]:
        """Every event that this piece of the output settles. Never raises on the model's text."""
        if type(piece) is not str:
            piece = self._admit(piece)
        elif self.control and not piece.isascii():
            piece = without_forgeries(piece)
        if len(piece) > LONGEST_PIECE:
            return self._feed_in_pieces(piece)
        pos = self._pos
        if pos == len(self._text):
            self._text = piece
        else:
            self._text = self._text[pos:] + piece
        self._base += pos
        self._pos = 0
        if self._raw is not None:
            self._raw.append(piece)
        out: list[Event] = []
        self._out = out
        while self._state():
            pass
        return out

    def _feed_in_pieces(self, text: str) -> list[Event]:
        """A state may look at the rest of its buffer: a bounded buffer keeps a whole output linear, too."""
        events: list[Event] = []
        for at in range(0, len(text), LONGEST_PIECE):
            events += self.feed(text[at : at + LONGEST_PIECE])
        return events

    def finish(self, reason: str = "stop") -> list[Event]:
        """The events that the end of the output settles, `Finish` last. ``reason`` is why the engine stopped."""
        self._final = True
        self._ended_of_itself = reason == "stop"
        events = self.feed("")
        self._end_of_output()
        end = self._base + len(self._text)
        if reason == "stop" and self._has_calls:
            reason = "tool_calls"
        self._out.append(Finish(reason, self._mark, end))
        self._mark = end
        return events

    @property
    def held(self) -> int:
        """How many characters of the output are held back."""
        return len(self._text) - self._pos

    def _admit(self, piece: object) -> str:
        """What goes into the buffer for a piece that is not plain text."""
        if isinstance(piece, str):
            piece = Piece(str.__str__(piece))
        elif not isinstance(piece, Piece):
            raise TypeError(f"Expected a piece of output as `str` or `Piece`, got `{type(piece).__name__}`")
        if not piece.is_control or piece.text not in self.control:
            return without_forgeries(piece.text) if self.control else piece.text
        self._has_controls = True
        return stand_in(piece.text)

    # -- running text

    def _prose(self) -> bool:
        text = self._text
        pos = self._pos
        if self._trim:
            pos = self._pos = _SPACE(text, pos).end()
            if pos == len(text):
                return False
            self._trim = False
        mode = self._mode
        if mode.lead not in text or mode.candidate(text, pos) is None:
            if self._has_controls or text[-1:].isspace() or pos == len(text):
                self._flow(len(text))
            else:  # by far the most pieces: nothing in them to look at
                end = self._base + len(text)
                self._out.append(mode.event(text[pos:] if pos else text, self._mark, end))
                self._mark = end
                self._pos = len(text)
                self._kept_space = False
                if "`" in text or self._code.pending:
                    self._code.read(text[pos:], self._previous)
                self._previous = text[-1]
            return False
        at = pos
        while True:
            found = mode.lexicon.find(text, at, self._final)
            if isinstance(found, int):
                self._flow(found)
                return False
            if self._is_mention(found):
                at = found.start + 1
                self._kept_space = False
                self._emit_prose(text[self._pos : at], at)
                self._code.quote()
                self._pos = at
                continue
            self._say(found.start, found.kind in mode.trims)
            self._pos = found.end
            getattr(self, "_on_" + found.kind)(found)
            return True

    def _is_mention(self, found: Found) -> bool:
        """Text that only talks of a marker: in a span of code that begins with one, or in a code fence. A fence around
        a call and nothing else is the model's way to write the call where `CodeMarks.wraps` says so."""
        text, start = self._text, found.start
        if not text[start].isascii():
            return False  # a control token is never a mention
        if not self._code.is_open and text.find("`", self._pos, start) < 0:
            return False
        code = self._code.after(text[self._pos : start], self._previous)
        previous = text[start - 1] if start > self._pos else self._previous[-1:]
        if code.in_span and (code.is_quote or previous == "`"):
            return True
        return self._mode is self.text_prose and self._is_shown_in_fence(found, code)

    def _is_shown_in_fence(self, found: Found, code: CodeMarks) -> bool:
        """Whether a marker is in a code fence that makes text of it. The end of the turn ends fences, too."""
        if found.kind == "turn_end" or not code.in_fence:
            return False
        return found.kind in ("think", "think_close") or not code.wraps

    def _begins_line(self, start: int) -> bool:
        """Whether there is only white space in front of ``start`` on its line (or in the turn)."""
        before = self._text[self._pos : start]
        solid = before.rstrip()
        if len(before) - len(solid) > LONGEST_SPACE:
            return False
        if "\n" in before[len(solid) :]:
            return True
        said = self._base + self._pos
        if (said == 0 and solid == _BYTE_ORDER_MARK) or (said == 1 and self._previous + solid == _BYTE_ORDER_MARK):
            return True
        return solid == "" and self._previous[-1:] in ("", "\n")

    def _flow(self, end: int) -> None:
        """Say the text up to ``end``, but hold back white space that a marker may yet claim."""
        text = self._text
        pos = self._pos
        if end == pos:
            return
        mode = self._mode
        if mode.trims and not self._final and text[end - 1].isspace():
            solid = pos + len(text[pos:end].rstrip())
            if solid > pos:
                self._kept_space = False
            if not self._kept_space:
                if end - solid <= LONGEST_SPACE:
                    end = solid
                else:
                    self._kept_space = True
        else:
            self._kept_space = False
        if end > pos:
            self._emit_prose(text[pos:end], end)
            self._pos = end

    def _say(self, end: int, trim: bool) -> None:
        """Say the text up to the marker at ``end``, without the white space that the marker owns."""
        said = self._text[self._pos : end]
        if trim:
            solid = said.rstrip()
            if solid:
                self._kept_space = False
            if not self._kept_space and len(said) - len(solid) <= LONGEST_SPACE:
                said = solid
        self._kept_space = False
        if said:
            self._emit_prose(said, self._pos + len(said))

    def _emit_prose(self, said: str, end: int) -> None:
        end += self._base
        if "`" in said or self._code.pending:
            self._code.read(said, self._previous)
        self._previous = (self._previous + said[-LONGEST_INDENT - 1 :])[-LONGEST_INDENT - 1 :]
        if self._has_controls:
            said = without_stand_ins(said)
        self._out.append(self._mode.event(said, self._mark, end))
        self._mark = end

    def _enter(self, prose: Prose, *, trim: bool = True) -> None:
        """Go on with running text. ``trim``: white space that follows belongs to the markup just read."""
        is_behind_call = prose is self._mode is self.text_prose
        self._code = self._code.behind_call() if is_behind_call else CodeMarks()
        self._mode = prose
        self._state = self._prose
        self._trim = trim and not self.framed_by_tokens
        self._kept_space = False
        self._previous = ""

    # -- markers that many dialects have

    def _on_think(self, found: Found) -> None:
        self._enter(self.reasoning_prose)

    def _on_think_close(self, found: Found) -> None:
        self._enter(self.text_prose)

    def _on_refusal(self, found: Found) -> None:
        self._enter(self.refusal_prose)

    def _on_refusal_close(self, found: Found) -> None:
        self._enter(self.text_prose)

    def _on_result(self, found: Found) -> None:
        self._open(found.start)
        self._discard(MADE_UP_RESULT, self.results)

    def _on_turn_end(self, found: Found) -> None:
        self._trim = True
        self._state = self._after_turn

    def _after_turn(self) -> bool:
        place = _NOT_SPACE(self._text, self._pos)
        if place is None:
            self._pos = len(self._text)
            return False
        self._pos = place.start()
        self._open(self._pos)
        self._discard(AFTER_THE_TURN, None)
        return True

    # -- calls

    def _open(self, start: int) -> None:
        """A call, or what may be one, begins at ``start`` of the buffer: keep its raw text from here on."""
        self._raw = [self._text[start:]]
        self._raw_start = self._base + start
        self._started = False
        self._json.clear()

    def _start(self, name: str, call_id: str, end: int) -> None:
        end += self._base
        if self._has_controls:
            name, call_id = without_stand_ins(name), without_stand_ins(call_id)
        self._out.append(ToolCallStart(self._index, call_id or self._new_id(name), name, self._mark, end))
        self._mark = end
        self._started = True

    def _new_id(self, name: str) -> str:
        return new_call_id()

    def _delta(self, arguments: str, end: int) -> None:
        """A piece of the arguments, as JSON text, settled by the buffer up to ``end``."""
        end += self._base
        if self._has_controls:
            arguments = without_stand_ins(arguments)
        self._json.append(arguments)
        self._out.append(ToolCallDelta(self._index, arguments, self._mark, end))
        self._mark = end

    def _end(self, end: int) -> bool:
        """The call is whole. False when its arguments are no JSON object after all; then it is `_fault`'s turn."""
        arguments = parse_object("".join(self._json))
        if arguments is None:
            return False
        end += self._base
        self._out.append(ToolCallEnd(self._index, arguments, self._mark, end))
        self._has_calls = True
        self._mark = end
        self._close()
        return True

    def _close(self) -> None:
        if self._started:
            self._index += 1
        self._raw = None
        self._started = False

    def _malformed(self, reason: str, end: int) -> None:
        """What was opened is no call: report its raw text up to ``end`` of the buffer, if there is any."""
        end += self._base
        raw = "".join(self._raw or ())[: end - self._raw_start]
        if raw:
            index = self._index if self._started else None
            if self._has_controls:
                raw, reason = without_stand_ins(raw), without_stand_ins(reason)
            self._out.append(Malformed(raw, reason, index, self._mark, end))
            self._mark = end
        self._close()

    def _discard(self, reason: str, until: Lexicon | None) -> None:
        """Read on to a marker of ``until`` (to the end of the output without one), then report it all as malformed.

        A kind whose name ends in ``close`` is part of what is discarded, any other is only where it stops.
        """
        self._reason = reason
        self.makes_up_results = self.makes_up_results or reason == MADE_UP_RESULT
        if until is None:
            self._state = self._discarding_all
        else:
            self._resync = until
            self._state = self._discarding

    def _discarding(self) -> bool:
        found = self._resync.find(self._text, self._pos, self._final)
        if isinstance(found, int):
            self._pos = found
            return False
        self._pos = found.end if found.kind.endswith("close") else found.start
        self._malformed(self._reason, self._pos)
        self._enter(self.text_prose)
        return True

    def _discarding_all(self) -> bool:
        self._pos = len(self._text)
        return False

    def _end_of_output(self) -> None:
        """Whatever is still open was cut short."""
        if self._raw is not None:
            discarding = self._state in (self._discarding, self._discarding_all)
            self._malformed(self._reason if discarding else CUT_SHORT, len(self._text))
