"""Calls of the form ``<function=NAME><parameter=KEY>VALUE</parameter></function>``.

Qwen3-Coder and its descendants write them between ``<tool_call>`` tags with one line break around each value; others
have other wrappers. Markers of the kinds ``function`` and ``function_close`` interrupt text too, where the wrapper is
missing.
"""

from __future__ import annotations

from functools import lru_cache

import regex

from isogloss.dialects._lexicon import Found, Lexicon
from isogloss.dialects._tag_calls import TagCallScanner

NAME = r"[^<>\n]{1,256}"
"""A name or a key between ``=`` and ``>``."""

FUNCTION = rf"<function=(?P<name>{NAME})>"
BEGINNINGS = ("<f", "</")
PATTERNS = {"function": FUNCTION, "function_close": "</function>"}

_fits = regex.compile(NAME).fullmatch


@lru_cache(maxsize=16)
def _between() -> Lexicon:
    return Lexicon({}, patterns={"parameter": rf"<parameter=(?P<key>{NAME})>", "function_close": "</function>"})


@lru_cache(maxsize=16)
def value_end(call_close: str) -> Lexicon:
    """A value ends at its closer where a parameter or the end of the function follows, or, the closer forgotten, at
    the end of function and call together."""
    closers = {
        "parameter_close": r"</parameter>(?=\s{0,64}+(?:<parameter=|</function>))",
        "forgotten": rf"(?=</function>\s{{0,64}}+{regex.escape(call_close)})",
    }
    return Lexicon({}, patterns=closers, first=("</",))


class FunctionCallScanner(TagCallScanner):
    """Scans ``<function=...>`` calls. ``tails`` holds ``call_close`` alone."""

    tails: Lexicon
    framed = True

    def _set_function_lexicons(self, call_close: str) -> None:
        self.between = _between()
        self.value_end = value_end(call_close)

    def _on_function(self, found: Found) -> None:
        if self._raw is None:
            self._open(found.start)
        self._named(found.match["name"].strip(), found.end)

    def _on_function_close(self, found: Found) -> None:
        """A closer without an opener: markup that says nothing."""
        self._enter(self.text_prose)

    def _in_call_parameter(self, found: Found) -> None:
        self._parameter(found.match["key"].strip(), found.end)

    def _in_call_function_close(self, found: Found) -> None:
        self._call_closed(found.end)


def is_name(text: str) -> bool:
    """Whether the form can carry it as a name or a key."""
    return _fits(text) is not None and text == text.strip()
