"""A browser for models: search, open, find, with numbered lines, numbered links and citations.

Every display has a cursor, ``[0]``, ``[1]`` and so on; its lines are numbered, its links are ``【NUMBER†TEXT】``. A
model cites what it read as ``【CURSOR†L3-L5】``, which `Browser.citations` resolves.

The HTML of pages needs the extra ``browser`` (selectolax, and httpx for `isogloss.tools.http_backend`).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import msgspec

from isogloss.messages import Tool, ToolCall, ToolMessage
from isogloss.tools.backend import Backend, BackendError
from isogloss.tools.page import Document, Link, Page
from isogloss.tools.toolbox import done, failed

_INTEGER = {"type": "integer", "default": -1}

TOOLS = (
    Tool(
        "browser.search",
        "Searches for `query` and displays `topn` results.",
        {
            "type": "object",
            "properties": {"query": {"type": "string"}, "topn": {"type": "integer", "default": 10}},
            "required": ["query"],
        },
    ),
    Tool(
        "browser.open",
        "Opens the link with the number `id` of the page at `cursor`, or the address `id`, from line `loc` on. Without "
        "`id` it shows the page at `cursor` from line `loc` on. Without `cursor` the latest page is meant.",
        {
            "type": "object",
            "properties": {
                "id": {"type": ["integer", "string"], "default": -1},
                "cursor": _INTEGER,
                "loc": _INTEGER,
                "num_lines": _INTEGER,
                "view_source": {"type": "boolean", "default": False},
            },
        },
    ),
    Tool(
        "browser.find",
        "Finds exact matches of `pattern` in the page at `cursor`, or in the latest one.",
        {
            "type": "object",
            "properties": {"pattern": {"type": "string"}, "cursor": _INTEGER},
            "required": ["pattern"],
        },
    ),
)

VIEW = 4_000
"""Characters that one display shows where the model does not say how many lines."""

_MOST_LINES = 500
_MOST_HITS = 50
_AROUND = 1
"""Lines shown before and behind a match."""

_CITATION = re.compile(r"【(\d{1,6})†L(\d{1,9})(?:-L?(\d{1,9}))?】")


class Citation(msgspec.Struct, frozen=True):
    """A passage that a text refers to. ``start`` and ``end`` are the offsets of the reference in the text; ``first``
    and ``last`` are lines of the document, ``quote`` what they say."""

    start: int
    end: int
    url: str
    title: str
    first: int
    last: int
    quote: str


class ToolUseError(ValueError):
    """The call asks for what there is not; the message is for the model."""


class Browser:
    """One session: the pages that were displayed, by cursor."""

    def __init__(self, backend: Backend, *, view: int = VIEW) -> None:
        self.tools = TOOLS
        self.backend = backend
        self._view = view
        self._pages: list[Page] = []
        self._actions: dict[str, Callable[[dict[str, Any]], Awaitable[str]]] = {
            "browser.search": self._search,
            "browser.open": self._open,
            "browser.find": self._find,
        }

    async def run(self, call: ToolCall) -> ToolMessage:
        """Search, open or find."""
        action = self._actions.get(call.name)
        if action is None:
            return failed(call, f"There is no tool {call.name!r}")
        try:
            return done(call, await action(call.arguments))
        except (BackendError, ToolUseError) as error:
            return failed(call, str(error))

    async def close(self) -> None:
        """Close the backend. What was displayed can still be cited."""
        await self.backend.close()

    def citations(self, text: str) -> list[Citation]:
        """The passages that ``text`` refers to, in its order. References to what was never displayed are left out."""
        found = []
        for match in _CITATION.finditer(text):
            cursor, first = int(match[1]), int(match[2])
            last = int(match[3]) if match[3] else first
            if cursor < len(self._pages) and first <= last and first < len(self._pages[cursor].lines):
                page = self._pages[cursor]
                last = min(last, len(page.lines) - 1)
                found.append(
                    Citation(
                        *match.span(),
                        page.document.url,
                        page.document.title,
                        first,
                        last,
                        page.quote(first, last),
                    )
                )
        return found

    # -- what a call can ask for

    async def _search(self, arguments: dict[str, Any]) -> str:
        query = _text(arguments, "query")
        count = min(max(_number(arguments, "topn", 10), 1), _MOST_HITS)
        hits = await self.backend.search(query, count)
        if not hits:
            raise ToolUseError(f"Nothing was found for {query!r}")
        links = tuple(Link(hit.title or hit.url, hit.url) for hit in hits)
        lines = []
        for number, (hit, link) in enumerate(zip(hits, links, strict=True)):
            host = urlsplit(hit.url).netloc
            lines += [f"* 【{number}†{link.text}{f'†{host}' if host else ''}】", f"  {hit.summary}".rstrip(), ""]
        return self._show(Page.of(Document("", f"Results for {query}", "\n".join(lines), links)), 0, -1)

    async def _open(self, arguments: dict[str, Any]) -> str:
        target = arguments.get("id", -1)
        first, count = _number(arguments, "loc", -1), _number(arguments, "num_lines", -1)
        if isinstance(target, str) and not target.lstrip("-").isdigit():
            page = Page.of(await self.backend.fetch(target))
        else:
            page = self._page(arguments)
            number = _number(arguments, "id", -1)
            if number >= 0:
                page = Page.of(await self.backend.fetch(self._link(page, number)))
        if arguments.get("view_source") is True:
            page = page.source
        return self._show(page, max(first, 0), count)

    async def _find(self, arguments: dict[str, Any]) -> str:
        pattern = _text(arguments, "pattern")
        page = self._page(arguments)
        wanted = pattern.lower()
        matches = [number for number, line in enumerate(page.lines) if wanted in line.lower()][:_MOST_HITS]
        if not matches:
            raise ToolUseError(f"{pattern!r} is not in {page.document.title or page.document.url!r}")
        lines: list[str] = []
        for number in matches:
            around = range(max(number - _AROUND, 0), min(number + _AROUND + 1, len(page.lines)))
            lines += [f"# match at L{number}", *[page.lines[line] for line in around], ""]
        document = page.document
        found = Document(document.url, f"Matches of {pattern} in {document.title}", "\n".join(lines))
        return self._show(Page.of(found), 0, -1)

    # -- pages

    def _show(self, page: Page, first: int, count: int) -> str:
        if first >= len(page.lines):
            raise ToolUseError(f"Line {first} is behind the last one, which is {len(page.lines) - 1}")
        count = min(count, _MOST_LINES) if count > 0 else page.fitting(first, self._view)
        self._pages.append(page)
        return page.view(len(self._pages) - 1, first, count)

    def _page(self, arguments: dict[str, Any]) -> Page:
        cursor = _number(arguments, "cursor", -1)
        if not self._pages:
            raise ToolUseError("No page has been opened yet: search, or open an address")
        if cursor >= len(self._pages):
            raise ToolUseError(f"There is no cursor {cursor}; the latest is {len(self._pages) - 1}")
        return self._pages[cursor if cursor >= 0 else -1]

    def _link(self, page: Page, number: int) -> str:
        links = page.document.links
        if number >= len(links):
            raise ToolUseError(f"The page has no link {number}; it has {len(links)}")
        return links[number].url


def _text(arguments: dict[str, Any], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ToolUseError(f"Expected a text for `{name}`")
    return value.strip()


def _number(arguments: dict[str, Any], name: str, default: int) -> int:
    """A whole number; models write it as a float or as a string now and then."""
    value = arguments.get(name, default)
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise ToolUseError(f"Expected a whole number for `{name}`, got {str(value)[:40]!r}") from None
