"""A folder of texts to browse: Markdown, plain text and HTML, searched by their words. No network."""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from os import PathLike
from pathlib import Path
from urllib.parse import quote, unquote, urljoin, urlsplit

from isogloss.tools.backend import BackendError, Hit
from isogloss.tools.html_text import html_document
from isogloss.tools.page import Document, Link

_HTML = frozenset({".html", ".htm"})
_TEXT = frozenset({".md", ".markdown", ".rst", ".txt"})
_WORD = re.compile(r"\w+")
_MARKDOWN_LINK = re.compile(r"\[([^\[\]\n]{1,200})\]\(([^()\s]{1,500})\)")
_LINK_MARK = re.compile(r"【\d+†([^†】]*)(?:†[^】]*)?】")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.+?)\s*#*\s*$", re.MULTILINE)
_SUMMARY = 200
"""Characters of a summary."""


class FolderBackend:
    """The texts below a folder. An address is a path relative to it; a link out of it is refused.

    The texts are read again by every search: an index would have to be kept up to date.
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.folder = Path(folder).resolve()

    async def search(self, query: str, count: int) -> list[Hit]:
        return await asyncio.to_thread(self._search, query, count)

    async def fetch(self, url: str) -> Document:
        return await asyncio.to_thread(self._fetch, url)

    async def close(self) -> None:
        """Nothing is held."""

    def _search(self, query: str, count: int) -> list[Hit]:
        """Ranked by Okapi BM25: how often a text has the words, rare words counting more, against its length."""
        words = set(_words(query))
        paths = sorted(filter(self._is_readable, self.folder.rglob("*")))
        found: list[tuple[Document, Counter[str]]] = []
        length = 0
        for path in paths:
            document = self._fetch(path.relative_to(self.folder).as_posix())
            counted = Counter(_words(f"{document.title} {document.text}"))
            length += counted.total()
            if not words.isdisjoint(counted):
                found.append((document, counted))
        having = Counter(word for _, counted in found for word in words if counted[word])
        rarity = {word: math.log(1 + (len(paths) - n + 0.5) / (n + 0.5)) for word, n in having.items()}

        def score(counted: Counter[str]) -> float:
            damping = 1.2 * (0.25 + 0.75 * counted.total() * len(paths) / length)
            return sum(rare * counted[word] / (counted[word] + damping) for word, rare in rarity.items())

        found.sort(key=lambda entry: -score(entry[1]))
        return [Hit(document.url, document.title, _summary(document.text, words)) for document, _ in found[:count]]

    def _is_readable(self, path: Path) -> bool:
        return path.suffix.lower() in _HTML | _TEXT and path.is_file() and path.resolve().is_relative_to(self.folder)

    def _fetch(self, url: str) -> Document:
        address = urlsplit(url)
        if address.scheme or address.netloc:
            raise BackendError(f"{url!r} is not in this folder: an address is a relative path")
        path = (self.folder / unquote(address.path).lstrip("/")).resolve()
        if not path.is_relative_to(self.folder) or not path.is_file():
            raise BackendError(f"There is no document {url!r}")
        text = path.read_text(encoding="utf-8", errors="replace")
        name = quote(path.relative_to(self.folder).as_posix())
        if path.suffix.lower() in _HTML:
            return html_document(text, name)
        return _text_document(text, name)


def _text_document(text: str, url: str) -> Document:
    links: list[Link] = []

    def numbered(match: re.Match[str]) -> str:
        links.append(Link(match[1], urljoin(url, match[2])))
        return f"【{len(links) - 1}†{match[1]}】"

    heading = _HEADING.search(text)
    title = heading[1] if heading else Path(unquote(url)).name
    return Document(url, title, _MARKDOWN_LINK.sub(numbered, text), tuple(links), text)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _summary(text: str, words: set[str]) -> str:
    """The passage around the first line that has one of the words, its links without their marks."""
    lines = _LINK_MARK.sub(r"\1", text).splitlines()
    first = next((number for number, line in enumerate(lines) if not words.isdisjoint(_words(line))), 0)
    passage = " ".join(" ".join(lines[first : first + 4]).split())
    return passage if len(passage) <= _SUMMARY else passage[: _SUMMARY - 1].rstrip() + "…"
