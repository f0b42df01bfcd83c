"""The header of a message, read to the letter as the package reads it: `isogloss.dialects` has the forgiving way."""

from __future__ import annotations

import re
from unicodedata import category

from isogloss.compat.openai_harmony.errors import HarmonyError
from isogloss.dialects._harmony_header import CHANNEL, CONSTRAIN, ROLES, Header

_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""White space as Unicode has it; Python's own methods count four separators more."""

_CHANNEL_END = re.compile(rf"[{_SPACE}<]")
_ASCII_SPACE = re.compile(r"[ \t\n\f\r]+")


def read_header_strictly(text: str, role: str | None) -> Header:
    """The header that ``text`` is; ``role`` where it was given beforehand. Raises `HarmonyError`."""
    text, channel = _take_channel(text)
    words = [word for word in _ASCII_SPACE.split(text.strip(_SPACE).replace(CONSTRAIN, f" {CONSTRAIN}")) if word]
    name = None
    if role is None:
        role, name = _take_role(words)
    if words and words[0] == role:
        del words[0]
    recipient = content_type = None
    if words:
        is_alone = len(words) == 1
        last = words.pop()
        if last.startswith("to="):
            recipient = last[3:]
        elif is_alone:
            recipient = last
        else:
            content_type = last
            recipient = words.pop().removeprefix("to=")
    if words:
        raise HarmonyError(f"unexpected tokens remaining in message header: Some({_quoted(' '.join(words))})")
    return Header(role, name, channel, recipient, content_type)


def _take_channel(text: str) -> tuple[str, str | None]:
    before, marker, behind = text.partition(CHANNEL)
    if not marker:
        return text, None
    channel = _CHANNEL_END.split(behind, 1)[0]
    if not channel:
        raise HarmonyError("channel marker present but no channel value found in header")
    return before + behind[len(channel) :], channel


def _take_role(words: list[str]) -> tuple[str, str | None]:
    """The role by the first word; an unknown one is the name of a tool that speaks to somebody."""
    if not words:
        raise HarmonyError("message header did not contain a role")
    first = words[0]
    if first in ROLES:
        return first, first if first == "tool" else None
    if len(words) == 1 and not first.startswith("to="):
        raise HarmonyError(f"Unknown role: {first}")
    del words[0]
    return "tool", first


def _quoted(text: str) -> str:
    """The text as Rust shows a string: what is not printable, and marks that combine, by number."""
    return '"' + "".join([_ESCAPES.get(char) or _shown(char) for char in text]) + '"'


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0"}


def _shown(char: str) -> str:
    is_plain = char.isprintable() and category(char) not in ("Mn", "Me")
    return char if is_plain else f"\\u{{{ord(char):x}}}"
