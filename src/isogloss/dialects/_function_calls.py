"""Calls of the form ``<function=NAME><parameter=KEY>VALUE</parameter></function>``.

Qwen3-Coder and its descendants write them between ``<tool_call>`` tags with one line break around each value; others
have other wrappers. Markers of the kinds ``function`` and ``function_close`` interrupt text too, where the wrapper is
missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import ClassVar

import regex

from isogloss._compiled import mypyc_attr
from isogloss.dialects._lexicon import Found, Lexicon, spell
from isogloss.dialects._markers import Markers
from isogloss.dialects._tag_calls import TagCallScanner
from isogloss.errors import UnrepresentableError
from isogloss.prompt import PromptWriter

NAME = r"[^<>\n]{1,256}"
"""A name or a key between ``=`` and ``>``."""

FUNCTION = rf"<function=(?P<name>{NAME})>"
BEGINNINGS = ("<f", "</")
PATTERNS = {"function": FUNCTION, "function_close": "</function>"}

_SPACE = r"\s{0,64}+"
_fits = regex.compile(NAME).fullmatch


class FunctionSyntax:
    """The lexicons of a call. ``call`` and ``call_close`` are patterns of the tags around it."""

    def __init__(self, call: str, call_close: str, first: str) -> None:
        self.between = Lexicon(
            {},
            patterns={
                "parameter": rf"<parameter=(?P<key>{NAME})>",
                "function_close": "</function>",
                "call_close": call_close,
                "next": rf"{call}|<function=",
                "parameter_close": "</parameter>",
            },
        )
        ends = rf"</function>{_SPACE}(?:{call_close}"
        goes_on = rf"<parameter=|</function>|{call_close}|{call}|<function="
        closers = {
            "parameter_close": rf"</parameter>(?={_SPACE}(?:{goes_on}))",
            "other_close": rf"</[^<>\s]{{1,64}}+>?(?={_SPACE}(?:<parameter=(?P<next>{NAME})>|{ends})))",
            "next_parameter": rf"(?=<parameter=(?P<key>{NAME})>)",
            "next_call": rf"(?=(?:{call}{_SPACE})?+{FUNCTION}{_SPACE}(?:<parameter=|</function>))",
        }
        first_look = (first, "<f", "<p", "</")
        self.value_end = Lexicon({}, patterns={**closers, "not_closed": f"(?={ends}))"}, first=first_look)
        self.final_value_end = Lexicon({}, patterns={**closers, "not_closed": rf"(?={ends}|\Z))"}, first=first_look)


_syntax = lru_cache(maxsize=32)(FunctionSyntax)


@mypyc_attr(allow_interpreted_subclasses=True)
class FunctionCallScanner(TagCallScanner):
    """Scans ``<function=...>`` calls."""

    framed: ClassVar[bool] = True

    def _set_function_lexicons(self, markers: Markers, control: frozenset[str]) -> None:
        call, call_close = (spell(markers[kind], control) for kind in ("call", "call_close"))
        lexicons = _syntax(regex.escape(call), regex.escape(call_close), call[:2])
        self.between = lexicons.between
        self.value_end, self.final_value_end = lexicons.value_end, lexicons.final_value_end

    def _on_function(self, found: Found) -> None:
        if self._raw is None:
            self._open(found.start)
        self._named(self.name_of(found), found.end)

    def _on_function_close(self, found: Found) -> None:
        """A closer without an opener: markup that says nothing."""
        self._enter(self.text_prose)

    def _in_call_parameter(self, found: Found) -> None:
        self._parameter(self.key_of(found), found.end)

    def _in_call_function_close(self, found: Found) -> None:
        self._call_closed(found.end)

    def _in_call_call_close(self, found: Found) -> None:
        """The end of the wrapper closes a call all of whose parameters are closed."""
        self._call_closed(found.end)

    def _in_call_next(self, found: Found) -> None:
        self._not_closed(found.start)

    def _in_call_parameter_close(self, found: Found) -> None:
        """A closing tag too many."""


def write_function(writer: PromptWriter, name: str, arguments: Mapping[str, str], frame: str = "") -> None:
    """One call, each of its tags on a line; ``frame`` is written on either side of a value."""
    writer.text(f"<function={name}>\n")
    for key, value in arguments.items():
        writer.text(f"<parameter={key}>{frame}{value}{frame}</parameter>\n")
    writer.text("</function>")


def written_name(text: str) -> str:
    """A name or a key as it stands in its tag. Raises `UnrepresentableError` for what such a tag cannot carry."""
    if _fits(text) is None or text != text.strip():
        raise UnrepresentableError(f"A <function=...> tag cannot carry the name {text!r}")
    return text
