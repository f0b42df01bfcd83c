"""XTML, Kimi K3's markup: ``<|open|>tag key="value"<|sep|>``, text, ``<|close|>tag<|sep|>``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import regex

from isogloss.dialects._lexicon import spell
from isogloss.grammar import Literal, Marker, Term, sequence
from isogloss.prompt import PromptWriter

OPEN, CLOSE, SEP, END = "<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>"
_ATTRIBUTES = {"call": "tool", "argument": "key"}


class XtmlTags(NamedTuple):
    """How the tags are spelled, as regular expressions of their three control tokens."""

    opens: str
    closes: str
    end: str
    invoke: str = "call"
    parameter: str = "argument"
    blocks: str = "tools"
    space: str = r"\s"
    section: str = ""
    whole: str = ""

    def beginning(self, *others: str) -> str:
        return "|".join([rf"{first}(?=\||\Z)" for first in sorted({self.opens[0], self.closes[0]})])

    def closing(self, name: str) -> str:
        return rf"{self.closes}\s{{0,8}}+{name}\s{{0,8}}+{self.end}"

    def any_closing(self) -> str:
        return rf"{self.closes}[^<>\s]{{1,64}}+{self.end}"

    def block(self) -> str:
        return rf"{self.opens}\s{{0,8}}+{self.blocks}\s{{0,8}}+{self.end}"

    def begun(self, name: str) -> str:
        return rf"{self.opens}\s{{0,8}}+{name}\s"

    def opening(self, name: str, group: str) -> str:
        other = r'\s{1,8}+[a-z]{1,16}+="[^"]{0,32}+"'
        named = rf'\s{{1,8}}+{_ATTRIBUTES[name]}=(?P<{group}>"[^"]{{0,256}}+")'
        return rf"{self.opens}\s{{0,8}}+{name}(?:{other}){{0,2}}?{named}(?:{other}){{0,2}}\s{{0,8}}+{self.end}"


@lru_cache(maxsize=16)
def tags_of(control: frozenset[str]) -> XtmlTags:
    """The tags of a stream in which ``control`` arrive as control tokens."""
    opens, closes, end = [regex.escape(spell(token, control)) for token in (OPEN, CLOSE, SEP)]
    return XtmlTags(opens, closes, end, whole=rf'{opens}json(?: type="object")?+{end}')


def write_open(writer: PromptWriter, tag: str, attributes: Mapping[str, str] | None = None) -> None:
    writer.marker(OPEN)
    writer.text(tag + "".join([f' {key}="{escaped(value)}"' for key, value in (attributes or {}).items()]))
    writer.marker(SEP)


def write_close(writer: PromptWriter, tag: str) -> None:
    writer.marker(CLOSE)
    writer.text(tag)
    writer.marker(SEP)


def write_block(writer: PromptWriter, tag: str, text: str) -> None:
    write_open(writer, tag)
    writer.text(text)
    write_close(writer, tag)


def escaped(text: str) -> str:
    """The text as an attribute's value."""
    return text.replace("&", "&amp;").replace('"', "&quot;")


def opening(tag: str) -> Term:
    """The grammar of an opening tag."""
    return sequence(Marker(OPEN), Literal(tag), Marker(SEP))


def closing(tag: str) -> Term:
    """The grammar of a closing tag."""
    return sequence(Marker(CLOSE), end_of(tag))


def end_of(tag: str) -> Term:
    """The grammar of a tag behind its first token."""
    return sequence(Literal(tag), Marker(SEP))
