"""Calls whose values follow the rules of XML: text with entities, or sections of CDATA."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar

import regex

from isogloss.dialects._invoke_calls import InvokeCallScanner, InvokeTags, unescape
from isogloss.dialects._lexicon import Found
from isogloss.notations.json import parse

CDATA, CDATA_CLOSE = "<![CDATA[", "]]>"
TAGS = InvokeTags(
    invoke="function",
    parameter="param",
    space=r"[\sĠ]",
    gap=r"[\sĠ]{0,8}+",
    section=regex.escape(CDATA),
)
_BEFORE_CDATA = regex.compile(rf"\s{{0,64}}+(?={regex.escape(CDATA)})").match
_BEHIND_CDATA = regex.compile(rf"\s{{0,64}}+(?={TAGS.closing(TAGS.parameter)})").match
_CUT_ENTITY = re.compile(r"&(?:#?\w{0,8})?\Z").search


class CdataCallScanner(InvokeCallScanner):
    """Scans one turn. A value is read section by section: text with entities, or CDATA."""

    framed: ClassVar[bool] = True

    def _begin_value(self) -> bool:
        self._as_spelled: list[str] = []
        self._as_meant: list[str] = []
        return self._skip(_BEFORE_CDATA)

    def _skip(self, space: Callable[..., regex.Match[str] | None]) -> bool:
        """Pass over white space between CDATA and a tag."""
        match = space(self._text, self._pos, partial=True)
        if match is not None and match.partial:
            return False
        if match is not None:
            self._pos = match.end()
        self._state = self._in_value
        return True

    def _in_value(self) -> bool:
        text = self._text
        found = self._find_value_end(text, self._pos)
        if isinstance(found, int):
            cut = None if self._final else _CUT_ENTITY(text, max(self._pos, found - 12), found)
            end = found if cut is None else cut.start()
            if not self._final:
                self._read(text[self._pos : end], unescape(text[self._pos : end]), end)
            return False
        self._read(text[self._pos : found.start], unescape(text[self._pos : found.start]), found.start)
        if found.kind == "section":
            self._pos = found.end
            self._state = self._in_cdata
        else:
            self._value_ended(found)
        return True

    def end_of_value(self, text: str, at: int, key: str) -> Found | int:
        if text.startswith(CDATA, at):
            close = text.find(CDATA_CLOSE, at)
            return self.value_end.find(text, close + len(CDATA_CLOSE), False) if close >= 0 else at
        found = super().end_of_value(text, at, key)
        return at if isinstance(found, int) or text.find("&", at, found.start) >= 0 else found

    def _in_cdata(self) -> bool:
        text = self._text
        end = text.find(CDATA_CLOSE, self._pos)
        if end < 0:
            end = len(text) - (2 if text.endswith("]]") else text.endswith("]"))
            if not self._final:
                self._read(text[self._pos : end], text[self._pos : end], end)
            return False
        self._read(text[self._pos : end], text[self._pos : end], end)
        self._pos = end + len(CDATA_CLOSE)
        self._state = self._behind_cdata
        return True

    def _behind_cdata(self) -> bool:
        return self._skip(_BEHIND_CDATA)

    def _read(self, spelled: str, meant: str, end: int) -> None:
        """A piece of the value, as it is spelled and with its entities decoded."""
        if not spelled:
            return
        self._pos = end
        if self._value.streams:
            self._delta(self._value.read(meant), end)
        else:
            self._as_spelled.append(spelled)
            self._as_meant.append(meant)

    def _value_ended(self, found: Found) -> None:
        if not self._value.streams:
            spelled = "".join(self._as_spelled)
            self._value.read(spelled if is_json(spelled) else "".join(self._as_meant))
        super()._value_ended(found)


def is_json(text: str) -> bool:
    """Whether text is one JSON value."""
    try:
        parse(text)
    except ValueError:
        return False
    return True
