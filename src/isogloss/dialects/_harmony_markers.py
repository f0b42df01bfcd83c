"""The control tokens of harmony, and what is searched for between them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec
import regex

from isogloss.dialects._lexicon import Lexicon, spell
from isogloss.dialects._markers import REFUSALS, Markers
from isogloss.dialects._scanner import Prose
from isogloss.events import ReasoningDelta, RefusalDelta, TextDelta

START, CHANNEL, MESSAGE, CONSTRAIN = "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>"
END, RETURN, CALL, END_OF_TEXT = "<|end|>", "<|return|>", "<|call|>", "<|endoftext|>"

FRAME: dict[str, str | tuple[str, ...]] = {
    "start": START,
    "channel": CHANNEL,
    "message": MESSAGE,
    "constrain": CONSTRAIN,
    "end": END,
    "call": CALL,
    "turn_end": (RETURN, END_OF_TEXT),
}

MARKERS = Markers({**FRAME, **REFUSALS}, special=(START, CHANNEL, MESSAGE, CONSTRAIN, END, CALL, RETURN, END_OF_TEXT))


class Lexicons(msgspec.Struct, frozen=True):
    """All that a scanner searches for, given which markers arrive as control tokens."""

    text: Prose
    reasoning: Prose
    refusal: Prose
    frame: Lexicon
    ends: Lexicon
    """What ends a message."""
    opening: Callable[..., Any]
    """What may stand where a message begins: its start, one more stop, or a header whose start is missing."""


@lru_cache(maxsize=16)
def lexicons(control: frozenset[str]) -> Lexicons:
    """The lexicons where ``control`` are the markers that arrive as control tokens."""
    return Lexicons(
        Prose(TextDelta, _prose(control, "refusal")),
        Prose(ReasoningDelta, _prose(control)),
        Prose(RefusalDelta, _prose(control, "refusal_close")),
        MARKERS.lexicon(tuple(FRAME), control),
        MARKERS.lexicon(("end", "call", "turn_end", "start"), control),
        _opening(control),
    )


def _prose(control: frozenset[str], *more: str) -> Lexicon:
    """The markers that interrupt a body. As text, one between backticks is only mentioned."""
    literals = {kind: MARKERS.kinds[kind] for kind in (*FRAME, *more)}
    as_text = [regex.escape(marker) for kind in FRAME for marker in MARKERS.kinds[kind] if marker not in control]
    mention = {"mention": f"`(?:{'|'.join(as_text)})`"} if as_text else {}
    return Lexicon(literals, control, patterns=mention, first="`")


def _opening(control: frozenset[str]) -> Callable[..., Any]:
    def any_of(*markers: str) -> str:
        return "|".join([regex.escape(spell(marker, control)) for marker in markers])

    opening = "|".join(
        [
            f"(?P<start>{any_of(START)})",
            f"(?P<end>{any_of(END, CALL)})",
            f"(?P<turn_end>{any_of(RETURN, END_OF_TEXT)})",
            r"(?P<header>(?:assistant(?!\w))?\s{0,8}+(?:to=[^\s<]{0,256}+)?\s{0,8}+"
            r"(?:(?:analysis|commentary|final)(?!\w))?\s{0,8}+"
            f"(?:{any_of(CHANNEL, MESSAGE, CONSTRAIN)}))",
        ]
    )
    match: Callable[..., Any] = regex.compile(rf"\s{{0,64}}+(?:{opening})").match
    return match
