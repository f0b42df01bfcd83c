"""A document as a model reads it: numbered lines, and links with numbers that it can open."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

import msgspec

WIDTH = 80
"""Characters of a line, so that a citation of lines is of some passage and not of half a page."""


class Link(msgspec.Struct, frozen=True):
    """A link in a document's text: it stands there as ``【number†text】``, or with the host behind a second dagger."""

    text: str
    url: str


class Document(msgspec.Struct, frozen=True):
    """What a backend found: its text, with the links in it, and its source where it has one."""

    url: str
    title: str
    text: str
    links: tuple[Link, ...] = ()
    source: str = ""


class Page(msgspec.Struct, frozen=True):
    """A document that was opened, cut into lines."""

    document: Document
    lines: tuple[str, ...]

    @classmethod
    def of(cls, document: Document) -> Page:
        return cls(document, tuple(_wrapped(document.text.splitlines())))

    @property
    def source(self) -> Page:
        """The page with its source for its text, and no links."""
        document = self.document
        raw = Document(document.url, f"Source of {document.title}", document.source or document.text)
        return Page(raw, tuple(raw.text.splitlines()) or ("",))

    def quote(self, first: int, last: int) -> str:
        """The text of lines ``first`` to ``last``, both included."""
        return "\n".join(self.lines[first : last + 1])

    def view(self, cursor: int, first: int, count: int) -> str:
        """``count`` lines from ``first`` on under a heading that says where they are from."""
        last = min(first + count, len(self.lines)) - 1
        heading = self.document.title or self.document.url
        where = f" ({self.document.url})" if self.document.title and self.document.url else ""
        shown = f"**viewing lines [{first} - {last}] of {len(self.lines) - 1}**"
        numbered = [f"L{number}: {self.lines[number]}" for number in range(first, last + 1)]
        return "\n".join([f"[{cursor}] {heading}{where}", shown, "", *numbered])

    def fitting(self, first: int, most: int) -> int:
        """How many lines from ``first`` on have no more than ``most`` characters together; at least one."""
        count = length = 0
        for line in self.lines[first:]:
            length += len(line) + 1
            if length > most:
                break
            count += 1
        return max(count, 1)


def _wrapped(lines: Iterable[str]) -> list[str]:
    wrapped: list[str] = []
    for line in lines:
        if len(line) <= WIDTH:
            wrapped.append(line)
        else:
            wrapped += textwrap.wrap(
                line, WIDTH, break_long_words=False, break_on_hyphens=False, replace_whitespace=False
            ) or [""]
    return wrapped or [""]
