"""Scans harmony: a turn is a run of messages, each with a header, a body and a control token that ends it.

Models leave out or double every part of the frame. All of it is read; what was put right is listed in ``repairs``, and
``messages`` says how each message was framed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from isogloss.dialects._harmony_calls import HarmonyCallScanner
from isogloss.dialects._harmony_header import Header, header_length, read_header
from isogloss.dialects._harmony_markers import END, MESSAGE, START, lexicons
from isogloss.dialects._lexicon import Found, without_stand_ins
from isogloss.dialects._repairs import Repair
from isogloss.dialects._scanner import AFTER_THE_TURN, MADE_UP_RESULT, Prose
from isogloss.events import CUT_SHORT, Event
from isogloss.messages import Tool

LONGEST_HEADER: Final = 512
"""What goes on longer without a ``<|message|>`` is no header."""

OTHER_ROLE: Final = "the model spoke for somebody else"

_NOT_TOOLS = frozenset({"assistant", "all", "user"})


class ScannedMessage(msgspec.Struct, frozen=True):
    """How one message was framed. ``stop`` is the marker that ended it, ``None`` where none did; ``start`` and ``end``
    are offsets into the output, in characters."""

    role: str
    channel: str | None
    recipient: str | None
    content_type: str | None
    stop: str | None
    start: int
    end: int


class HarmonyScanner(HarmonyCallScanner):
    """Scans one turn."""

    def __init__(self, tools: Iterable[Tool], starts_in: str, control: frozenset[str]) -> None:
        found = lexicons(control)
        self.text_prose, self.reasoning_prose, self.refusal_prose = found.text, found.reasoning, found.refusal
        self.frame, self.ends, self._opening = found.frame, found.ends, found.opening
        self.has_control = bool(control)
        super().__init__(tools, starts_in)
        self.repairs: list[Repair] = []
        self.messages: list[ScannedMessage] = []
        self._trim = False
        self._is_first = True
        self._implied = "assistant"
        self._searched = 0
        self._message: Header | None = None
        self._message_start = 0
        self._speech_mark = 0
        self._spoken: set[type[Event]] = set()
        self._state = self._before_message
        if starts_in == "reasoning":
            self._is_first = False
            self._begin(Header("assistant", None, "analysis"))

    # -- between messages

    def _before_message(self) -> bool:
        text, pos = self._text, self._pos
        found = self._opening(text, pos, partial=True)
        if found is not None and found.partial:
            if not self._final:
                return False
            found = None
        if found is not None:
            self._open_message(found)
        elif self._final and not self._is_first and not text[pos:].strip():
            self._pos = len(text)
            return False
        else:
            if not self._is_first:
                self._repair("text without a header was read as part of the answer", "")
            self._speak(self.text_prose)
        self._is_first = False
        return True

    def _open_message(self, found: Any) -> None:
        kind = found.lastgroup
        begin, end = found.span(kind)
        if kind == "start":
            self._open_header(begin, end, "")
        elif kind == "header":
            if not self._is_first:
                self._repair(f"{START} is missing", "")
            self._open_header(begin, begin, "assistant")
        else:
            self._skip_stop(kind, begin, end)

    def _skip_stop(self, kind: str | None, begin: int, end: int) -> None:
        self._pos = begin
        self._repair("one more stop after the end of a message was skipped", self._text[begin:end])
        self._pos = end
        if kind == "turn_end":
            self._state = self._after_turn

    def _after_turn(self) -> bool:
        text = self._text
        found = self._opening(text, self._pos, partial=True)
        if found is not None and found.partial and not self._final:
            return False
        if found is not None and not found.partial and found.lastgroup in ("end", "turn_end"):
            self._skip_stop(found.lastgroup, *found.span(found.lastgroup))
            return True
        self._pos = len(text) - len(text[self._pos :].lstrip())
        if self._pos == len(text):
            return False
        self._open(self._pos)
        self._discard(AFTER_THE_TURN, None)
        return True

    # -- headers

    def _open_header(self, begin: int, end: int, implied: str) -> None:
        """A message begins at ``begin`` of the buffer, what its header says at ``end``. ``implied`` is the role where
        the header need not give one."""
        self._open(begin)
        self._message_start = self._base + begin
        self._pos = end
        self._searched = 0
        self._implied = implied
        self._state = self._in_header

    def _in_header(self) -> bool:
        text, pos = self._text, self._pos
        found = self.frame.find(text, pos + self._searched, self._final)
        start = found if isinstance(found, int) else found.start
        if start - pos > LONGEST_HEADER:
            self._recover(pos + LONGEST_HEADER)
            return True
        if isinstance(found, int):
            self._searched = found - pos
            if not self._final:
                return False
            self._recover(len(text))
            return True
        kind, end = found.kind, found.end
        if kind in ("channel", "constrain"):
            self._searched = end - pos
        elif kind == "message":
            header = self._read_header(text[pos:start])
            self._pos = end
            self._begin(header)
        elif kind == "start" and text[pos:start].strip() in ("", "assistant"):
            self._repair(f"one {START} too many was skipped", text[pos:end])
            self._open_header(pos, end, "")
        else:
            self._recover(start)
        return True

    def _read_header(self, text: str) -> Header:
        text = without_stand_ins(text)
        header, repairs = read_header(text, self._implied)
        for reason in repairs:
            self._repair(reason, text)
        return header

    def _recover(self, limit: int) -> None:
        """``<|message|>`` is missing: what begins like a header is one, the rest is what it heads."""
        text = without_stand_ins(self._text[self._pos : limit])
        length = header_length(text)
        self._repair(f"{MESSAGE} is missing", text)
        header = self._read_header(text[:length])
        self._pos += length
        if self._is_call(header) and not self._text.startswith("{", self._pos):
            self._message = header
            self._discard(CUT_SHORT, self.ends)
        else:
            self._begin(header)

    # -- bodies

    def _begin(self, header: Header) -> None:
        """The header is read: go on with the body."""
        self._message = header
        if header.role != "assistant":
            self._discard(MADE_UP_RESULT if header.role == "tool" else OTHER_ROLE, self.ends)
        elif self._is_call(header):
            self._begin_call(header)
        else:
            self._raw = None
            is_reasoning = (header.channel or "").startswith("analysis")
            self._speak(self.reasoning_prose if is_reasoning else self.text_prose)

    def _is_call(self, header: Header) -> bool:
        return header.role == "assistant" and header.recipient is not None and header.recipient not in _NOT_TOOLS

    def _speak(self, prose: Prose) -> None:
        self._enter(prose, trim=False)
        self._speech_mark = self._mark
        if self._message is not None and prose.event in self._spoken:
            self._state = self._next_paragraph

    def _next_paragraph(self) -> bool:
        """A second message of one kind is a paragraph of its own, as soon as it says something."""
        if self._pos == len(self._text):
            return False
        found = self._mode.lexicon.match(self._text, self._pos)
        if found is not None and found.partial and not self._final:
            return False
        if found is None or found.partial or found.lastgroup == "mention":
            self._out.append(self._mode.event("\n\n", self._mark, self._mark))
        self._state = self._prose
        return True

    def _is_mention(self, found: Found) -> bool:
        return False  # the lexicon has a kind for it

    def _on_mention(self, found: Found) -> None:
        self._emit_prose(self._text[found.start : found.end], found.end)

    def _on_end(self, found: Found) -> None:
        if self._mark > self._speech_mark:
            self._spoken.add(self._mode.event)
        self._end_message(found.kind, found.start, found.end)

    def _on_call(self, found: Found) -> None:
        self._on_end(found)

    def _on_turn_end(self, found: Found) -> None:
        self._on_end(found)

    def _on_start(self, found: Found) -> None:
        self._on_end(found)

    def _on_channel(self, found: Found) -> None:
        self._on_end(found)

    def _on_message(self, found: Found) -> None:
        self._misplaced(found.start, found.end)

    def _on_constrain(self, found: Found) -> None:
        self._on_message(found)

    def _misplaced(self, start: int, end: int) -> None:
        self._repair("a marker that has no place in a message was skipped", self._text[start:end])

    def _end_message(self, kind: str, start: int, end: int) -> None:
        if kind in ("start", "channel"):
            if self._message is not None:
                self._pos = start
                self._repair(f"{END} is missing", "")
            self._record(None, start)
            self._open_header(start, end if kind == "start" else start, "" if kind == "start" else "assistant")
            return
        self._record(without_stand_ins(self._text[start:end]), end)
        self._message_start = self._base + end
        self._pos = end
        self._state = self._after_turn if kind == "turn_end" else self._before_message

    def _record(self, stop: str | None, end: int) -> None:
        header = self._message or Header("assistant")
        frame = (header.role, header.channel, header.recipient, header.content_type)
        if self._message is not None or stop is not None:
            self.messages.append(ScannedMessage(*frame, stop, self._message_start, self._base + end))
        self._message = None

    def _discarding(self) -> bool:
        """Up to the marker that ends the message."""
        found = self._resync.find(self._text, self._pos, self._final)
        if isinstance(found, int):
            self._pos = found
            return False
        kind, start, end = found.kind, found.start, found.end
        self._malformed(self._reason, start if kind == "start" else end)
        self._end_message(kind, start, end)
        return True

    def _end_of_output(self) -> None:
        super()._end_of_output()
        self._record(None, len(self._text))

    # -- what was put right

    def _repair(self, reason: str, raw: str) -> None:
        self.repairs.append(Repair(reason, without_stand_ins(raw), self._base + self._pos))
