"""Calls of named arguments, ``<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>``, or of one JSON object.

GLM's models close a key or a value by the other's tag, leave out opening tags and double others: all of it is read
where it has one meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

import regex

from isogloss.dialects._lexicon import Found, Lexicon, spell
from isogloss.dialects._markers import Markers
from isogloss.dialects._tag_calls import TagCallScanner
from isogloss.messages import Tool

KINDS = ("call", "call_close", "key", "key_close", "value", "value_close")
"""The kinds of a call's tags."""

NAME = r"""[^\s<>{}\[\]()"'`]{1,256}"""
KEY = r"[^<>\n]{1,256}"

NO_CALL: Final = "neither a name with arguments nor a JSON object between the tags"


class Syntax:
    """The lexicons of a call. ``control`` are the tags that arrive as control tokens."""

    def __init__(self, markers: Markers, control: frozenset[str]) -> None:
        self._first = tuple({spell(markers[kind], control)[:2] for kind in KINDS})
        tags = self._tags = {kind: regex.escape(spell(markers[kind], control)) for kind in KINDS}
        value = rf"\s{{0,64}}+{tags['value']}"
        self.head = self._lexicon(
            named=rf"(?P<name>{NAME})\s{{0,64}}+(?={tags['key']}|{tags['call_close']})",
            opened_as_call=rf"(?P<called>{NAME})\s{{0,64}}+{tags['call']}(?P<key>{KEY}){tags['key_close']}{value}",
            not_opened=rf"(?P<both>{KEY}){tags['key_close']}{value}",
        )
        # A key whose closing tag is doubled, missing or that of a value; a value whose opening tag is missing.
        key_close = rf"(?:(?:{tags['key_close']}\s{{0,8}}+){{1,2}}+|{tags['value_close']}|(?={value}))"
        self.between = self._lexicon(
            argument=(
                rf"(?:{tags['key']}\s{{0,8}}+){{1,2}}+(?P<key>{KEY}){key_close}(?:{value}|\s{{0,64}}+(?=[^\s<]))"
            ),
            call_close=tags["call_close"],
            call=tags["call"],
            stray=rf"{tags['key_close']}|{tags['value_close']}",
        )
        turns = [regex.escape(spell(tag, control)) for tag in markers.kinds["turn_end"]]
        self.value_end = self._value_end([tags["call"], *turns])
        self.final_value_end = self._value_end([tags["call"], *turns, r"\Z"])

    def _value_end(self, behind_a_call: Sequence[str]) -> Lexicon:
        tags = self._tags
        space = r"\s{0,64}+"
        ends = rf"{tags['call_close']}{space}(?:{'|'.join(behind_a_call)})"
        return self._lexicon(
            value_close=rf"{tags['value_close']}(?={space}(?:{tags['key']}|{tags['call_close']}|{tags['call']}))",
            closed_as_key=(
                rf"{tags['key_close']}(?={space}(?:{tags['key']}|{tags['call_close']}|{tags['value_close']}))"
            ),
            other_close=rf"</[^<>\s]{{1,64}}+>?(?={space}(?:{self._argument('next')}|{ends}))",
            next_parameter=rf"(?={self._argument('key')})",
            next_call=rf"(?={tags['call']}{space}(?P<name>{NAME}){space}(?:{tags['key']}|{tags['call_close']}))",
            not_closed=f"(?={ends})",
        )

    def _argument(self, key: str) -> str:
        tags = self._tags
        return rf"{tags['key']}(?P<{key}>{KEY}){tags['key_close']}\s{{0,64}}+{tags['value']}"

    def _lexicon(self, **patterns: str) -> Lexicon:
        return Lexicon({}, patterns=patterns, first=self._first)


_syntax = lru_cache(maxsize=16)(Syntax)


class KeyValueCallScanner(TagCallScanner):
    """Scans one turn."""

    def __init__(self, markers: Markers, tools: Iterable[Tool], starts_in: str, control: frozenset[str]) -> None:
        self.text_prose, self.reasoning_prose, self.refusal_prose, self.results = markers.prose(control)
        self.faults = markers.lexicon(("call_close", "call", "turn_end"), control)
        self.tails = markers.lexicon(("call_close",), control)
        lexicons = _syntax(markers, control)
        self.head, self.between = lexicons.head, lexicons.between
        self.value_end, self.final_value_end = lexicons.value_end, lexicons.final_value_end
        super().__init__(tools, starts_in)

    def _body(self) -> bool:
        char = self._next_char()
        if char == "" or char in "{[`":
            return super()._body()
        match = self.head.match(self._text, self._pos)
        if match is not None and match.partial:
            return False
        if match is None or not self._begins(match):
            self._fault(NO_CALL)
        return True

    def _begins(self, match: regex.Match[str]) -> bool:
        """Begin the call that the text behind the opening tag names; false if it names none."""
        if match.lastgroup == "named":
            self._pos = match.end()
            self._named(match["name"], match.end())
            return True
        if match.lastgroup == "opened_as_call":
            name, key = match["called"], match["key"].strip()
        else:
            name, key = self._parted(match["both"])
        if name not in self.tools:
            return False
        self._pos = match.end()
        self._named(name, match.end())
        self._parameter(key, match.end())
        return True

    def _parted(self, both: str) -> tuple[str, str]:
        """A name and a key with no tag between them, told apart by the tools."""
        for name in sorted(self.tools, key=len, reverse=True):
            key = both[len(name) :].strip()
            if both.startswith(name) and key in self.view_of(name).properties:
                return name, key
        return "", ""

    def _in_call_argument(self, found: Found) -> None:
        self._parameter(self.key_of(found), found.end)

    def _in_call_call_close(self, found: Found) -> None:
        self._call_closed(found.end)

    def _in_call_call(self, found: Found) -> None:
        self._not_closed(found.start)

    def _in_call_stray(self, found: Found) -> None:
        """A closing tag too many."""
