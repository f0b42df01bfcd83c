"""The form of a call: what calls of one name, with the same keys, have around their values.

A form is read back once, with stand-ins for the values. A call of that form reads back as well where the scanner's own
search for the end of a value finds nothing in any of them, and behind each the tag that closed the stand-in: nothing
else that the scanner looks at differs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from isogloss.dialects._base import Dialect
from isogloss.dialects._lexicon import Found
from isogloss.dialects._tag_calls import TagCallScanner
from isogloss.messages import ToolCall
from isogloss.prompt import PromptWriter, Segment

WriteCall = Callable[[PromptWriter, ToolCall, Mapping[str, str]], None]
"""Writes one call with its tags, given the text of each argument by key, in their order. What it writes around the
texts depends on the call's name, its keys and the types of its values, and on nothing else."""

KINDS = frozenset({str, int, float, bool, type(None), list, dict})
"""The types of values that calls have forms for."""

_LONGEST_NAMES = 2048
"""Characters of a name and its keys, beyond which a form is not kept."""

_STAND_IN = re.compile(r"\n x(\d+) \n")


class _End(NamedTuple):
    """What ends a value: ``margin`` is how far behind it."""

    margin: int
    kind: str
    text: str


class CallForm:
    """``segments`` are those of a call with stand-ins, ``ends`` what ends the value of each key for ``scanner``."""

    def __init__(self, segments: Sequence[Segment], ends: Mapping[str, _End], scanner: TagCallScanner) -> None:
        self._segments = [(segment.is_marker, _STAND_IN.split(segment.text)[::2]) for segment in segments]
        self._around = _STAND_IN.split("".join([segment.text for segment in segments]))[::2]
        self._ends = ends
        self._end_of_value = scanner.end_of_value

    def write(self, writer: PromptWriter, texts: Sequence[str]) -> bool:
        """Write the call with these values. False, with nothing written, where it may read back as something else."""
        if not self._reads_back(texts):
            return False
        values = iter(texts)
        for is_marker, parts in self._segments:
            text = parts[0]
            for part in parts[1:]:
                text += next(values) + part
            if is_marker:
                writer.marker(text)
            else:
                writer.text(text)
        return True

    def _reads_back(self, texts: Sequence[str]) -> bool:
        around = self._around
        whole = around[0] + "".join([text + behind for text, behind in zip(texts, around[1:], strict=True)])
        at = 0
        for before, text, (key, end) in zip(around, texts, self._ends.items(), strict=False):
            at += len(before)
            found = self._end_of_value(whole, at, key)
            at += len(text)
            if isinstance(found, int) or found.start != at + end.margin:
                return False
            if found.kind != end.kind or found.match[0] != end.text:
                return False
        return True


def call_form(dialect: Dialect, write: WriteCall, call: ToolCall) -> CallForm | None:
    """The form of a call; ``None`` where it has none that reads back, or that is kept."""
    kinds = tuple(map(type, call.arguments.values()))
    if not KINDS.issuperset(kinds) or len(call.name) + sum(map(len, call.arguments)) > _LONGEST_NAMES:
        return None
    return _call_form(dialect, write, call.name, tuple(call.arguments), kinds)


@lru_cache(maxsize=512)
def _call_form(
    dialect: Dialect, write: WriteCall, name: str, keys: tuple[str, ...], kinds: tuple[type, ...]
) -> CallForm | None:
    scanner = dialect.scanner()
    if not isinstance(scanner, TagCallScanner):
        return None
    stand_ins = {key: f"\n x{number} \n" for number, key in enumerate(keys)}
    draft = PromptWriter()
    write(draft, ToolCall("", name, {key: kind() for key, kind in zip(keys, kinds, strict=True)}), stand_ins)
    prompt = draft.prompt()
    places = list(_STAND_IN.finditer(prompt.text))
    found = dialect.parse(prompt.text)
    if found.text or found.reasoning or found.malformed or len(found.tool_calls) != 1:
        return None
    read = found.tool_calls[0]
    if read.name != name or read.arguments != stand_ins or [place[0] for place in places] != [*stand_ins.values()]:
        return None
    ends = {}
    for key, place in zip(keys, places, strict=True):
        end = scanner.end_of_value(prompt.text, place.start(), key)
        if not isinstance(end, Found) or end.start < place.end():
            return None
        ends[key] = _End(end.start - place.end(), end.kind, end.match[0])
    return CallForm(prompt.segments, ends, scanner)
