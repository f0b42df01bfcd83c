"""The header of a harmony message: who speaks, to whom, on which channel, and what kind of content.

    header    = role [ ":" name ] [ " to=" recipient ] [ "<|channel|>" channel [ " to=" recipient ] ] [ " " type ]
    type      = word | "<|constrain|>" word

Models depart from this in every part, so reading never fails: what is understood becomes a `Header`, and what had to be
put right is said in words.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from isogloss.notations.runs import run

CHANNEL: Final = "<|channel|>"
CONSTRAIN: Final = "<|constrain|>"

ROLES = ("assistant", "user", "system", "developer", "tool")
CHANNELS = ("analysis", "commentary", "final")

_RECIPIENT = re.compile(r"(?<!\S)to=\s*([^\s<]*)")
_CONSTRAINED = re.compile(r"<\|constrain\|>\s*((?:(?!\sto=).)*)", re.DOTALL)
_TYPE = re.compile(r"[A-Za-z][\w.+/-]*").fullmatch
_WORD = run(r"[^\s<]*")
_SIGNS = ("start", "message", "end", "return", "call", "endoftext")
_STRAY = re.compile(r"<\|(?:" + "|".join(_SIGNS) + r")\|>")


class Header(NamedTuple):
    """What a header says. ``content_type`` keeps the marker: ``<|constrain|>json``. Absent parts are ``None``."""

    role: str
    name: str | None = None
    channel: str | None = None
    recipient: str | None = None
    content_type: str | None = None


def read_header(text: str, role: str = "") -> tuple[Header, list[str]]:
    """The header that ``text`` is, and what had to be put right. ``role`` is whose turn it is where the text need not
    say it: right behind ``<|start|>assistant``."""
    reader = _HeaderReader(role)
    return reader.read(text), reader.repairs


class _HeaderReader:
    def __init__(self, role: str) -> None:
        self.repairs: list[str] = []
        self._implied = role
        self._role = role
        self._name: str | None = None
        self._channel: str | None = None
        self._recipient: str | None = None
        self._type: str | None = None

    def read(self, text: str) -> Header:
        if _STRAY.search(text):
            self.repairs.append("a marker that has no place in a header was skipped")
            text = _STRAY.sub(" ", text)
        who, *channels = text.split(CHANNEL)
        self._read_who(self._take_type(self._take_recipient(who)).split())
        for part in channels:
            self._read_channel(self._take_type(self._take_recipient(part)))
        return Header(self._role, self._name, self._channel, self._recipient, self._type)

    def _take_recipient(self, part: str) -> str:
        for recipient in _RECIPIENT.findall(part):
            if self._recipient is not None:
                agree = "twice" if recipient == self._recipient else "twice, the last one counts"
                self.repairs.append(f"the recipient was given {agree}")
            self._recipient = recipient
        return _RECIPIENT.sub(" ", part)

    def _take_type(self, part: str) -> str:
        found = _CONSTRAINED.search(part)
        if found is None:
            return part
        self._type = CONSTRAIN + found[1].strip()
        return part[: found.start()] + " " + part[found.end() :]

    def _read_who(self, words: list[str]) -> None:
        if words and self._is_role(words[0]):
            words = words[1:]
        elif words and not self._implied:
            self._role, self._name = "tool", words.pop(0)
            if self._recipient is None:
                self.repairs.append(f"{self._name!r} is no role, so it was read as a tool")
        elif not self._role:
            self._role = "assistant"
            self.repairs.append("the header does not say who speaks")
        for word in words:
            self._read_other(word)

    def _is_role(self, word: str) -> bool:
        role, _, name = word.partition(":")
        doubled = next((known for known in ROLES if role == known * 2), None)
        if role not in ROLES and doubled is None:
            return False
        if doubled is not None or self._implied:
            self.repairs.append("the role was given twice")
        self._role = doubled or role
        self._name = name or None
        return True

    def _read_channel(self, part: str) -> None:
        part = part.lstrip()
        channel = _WORD(part, 0)[0]
        if not channel:
            self.repairs.append("a channel marker without a channel was skipped")
            return
        if self._channel is not None:
            self.repairs.append("the channel was given twice, the last one counts")
        if channel not in CHANNELS:
            self.repairs.append(f"{channel!r} is not one of the channels")
        self._channel = channel
        for word in part[len(channel) :].split():
            self._read_other(word)

    def _read_other(self, word: str) -> None:
        """A word that is neither role nor channel nor recipient: the type of the content, or nothing known."""
        if word in CHANNELS and self._channel is None:
            self._channel = word
            self.repairs.append("the channel was written as a word, without its marker")
        elif _TYPE(word) and self._type is None and word not in CHANNELS:
            self._type = word
        else:
            self.repairs.append(f"{word!r} in the header was skipped")


_KNOWN = "|".join(CHANNELS)
_PREFIX = run(
    r"\s*(?:(?:" + "|".join(ROLES) + r")(?::[^\s<]+)?(?![^\s<]))?"
    rf"(?:\s*(?:<\|channel\|>\s*(?:(?:{_KNOWN})(?![^\s<]))?|to=\s*[^\s<]+|<\|constrain\|>\s*(?:json|code)?|\bjson\b))*\s*"
)


def header_length(text: str) -> int:
    """How much of ``text`` is a header, where the marker between header and content is missing."""
    return _PREFIX(text, 0).end()
