"""HTML as plain text: a line for each block, a mark for each link. Parsed by selectolax (the lexbor engine)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from isogloss.tools.page import Document, Link

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_UNSEEN = frozenset({"head", "script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "dialog"})
_BLOCK_NAMES = (
    "address article aside blockquote body center dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 "
    "h4 h5 h6 header hr html li main nav ol p pre section summary table tr ul"
)
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_SPACED = frozenset({"p", "pre", "blockquote", "table", "ul", "ol", "dl", "h1", "h2", "h3", "h4", "h5", "h6"})
_BEFORE = {**{f"h{level}": "#" * level + " " for level in range(1, 7)}, "li": "* ", "td": " | ", "th": " | "}
_BLANKS = re.compile(r"\s+")
DEEPEST = 512
"""Elements within one another, those left out that HTML closes by itself."""

_TAG = re.compile(r"<[^<>]*>")
_NESTING = re.compile(
    r"<(/?)(?!(?:p|li|dt|dd|t[dhr]|tbody|thead|option|a|br|hr|img|input|link|meta|source|wbr|col|area|base|embed)\b)[a-z]",
    re.IGNORECASE,
)
_CELLS = frozenset({"td", "th"})
_TEXT = "-text"


def html_document(html: str, url: str) -> Document:
    """The document that a page of HTML is. ``url`` is what its relative links are relative to.

    A page nested deeper than any browser would show it is its text without tags: parsing takes the square of the depth.
    """
    from selectolax.lexbor import LexborHTMLParser

    if _is_too_deep(html):
        return Document(url, _last_step(url), " ".join(_TAG.sub(" ", html).split()), (), html)
    tree = LexborHTMLParser(html)
    title = tree.css_first("title")
    base = tree.css_first("base[href]")
    writer = _Writer(urljoin(url, base.attributes.get("href") or "") if base is not None else url)
    if tree.root is not None:
        writer.walk(tree.root)
    heading = " ".join(title.text().split()) if title is not None else ""
    return Document(url, heading or _last_step(url), writer.text(), tuple(writer.links), html)


def _is_too_deep(html: str) -> bool:
    depth = 0
    for match in _NESTING.finditer(html):
        depth += -1 if match[1] else 1
        if depth > DEEPEST:
            return True
    return False


class _Writer:
    """Walks the tree without recursion, so that no page is nested too deeply."""

    def __init__(self, base: str) -> None:
        self.links: list[Link] = []
        self._base = base
        self._host = urlsplit(base).netloc
        self._out: list[str] = []
        self._line: list[str] = []
        self._is_blank = True
        self._preformatted = 0
        self._link: tuple[str, int] | None = None

    def text(self) -> str:
        self._end_line()
        return re.sub(r"\n{3,}", "\n\n", "\n".join(self._out)).strip("\n")

    def walk(self, root: LexborNode) -> None:
        stack: list[tuple[LexborNode, bool]] = [(root, False)]
        while stack:
            node, is_left = stack.pop()
            tag = node.tag or ""
            if is_left:
                self._leave(tag)
            elif tag == _TEXT:
                self._say(node.text_content or "")
            elif tag not in _UNSEEN and not tag.startswith("-") and "hidden" not in node.attributes:
                self._enter(node, tag)
                stack.append((node, True))
                children = list(node.iter(include_text=True))
                stack += [(child, False) for child in reversed(children)]

    def _enter(self, node: LexborNode, tag: str) -> None:
        if tag in _BLOCKS:
            self._end_line()
            if tag in _SPACED:
                self._out.append("")
        if tag == "br":
            self._end_line()
        elif tag == "a":
            self._open_link(node.attributes.get("href") or "")
        elif tag == "img":
            self._say(node.attributes.get("alt") or "")
        elif tag == "pre":
            self._preformatted += 1
        mark = _BEFORE.get(tag, "")
        if not (tag in _CELLS and self._is_blank):
            self._line.append(mark)

    def _leave(self, tag: str) -> None:
        if tag == "a":
            self._close_link()
        if tag in _BLOCKS:
            self._end_line()
            if tag in _SPACED:
                self._out.append("")
        if tag == "pre":
            self._preformatted -= 1

    def _say(self, text: str) -> None:
        self._is_blank = self._is_blank and not text.strip()
        if self._preformatted:
            first, *rest = text.split("\n")
            self._line.append(first)
            for line in rest:
                self._end_line()
                self._line.append(line)
        else:
            self._line.append(_BLANKS.sub(" ", text))

    def _open_link(self, target: str) -> None:
        url = _absolute(self._base, target)
        if url and self._link is None:
            self._link = (url, len(self._line))

    def _close_link(self) -> None:
        if self._link is None:
            return
        url, start = self._link
        self._link = None
        text = " ".join("".join(self._line[start:]).split())
        if not text:
            return
        host = urlsplit(url).netloc
        elsewhere = f"†{host}" if host != self._host else ""
        self._line[start:] = [f"【{len(self.links)}†{text}{elsewhere}】"]
        self.links.append(Link(text, url))

    def _end_line(self) -> None:
        if not self._is_blank:
            self._close_link()  # a link around blocks: the first line that says something is its text
        line = "".join(self._line)
        self._line.clear()
        self._is_blank = True
        if self._preformatted:
            self._out.append(line.rstrip())
        elif line.strip():
            self._out.append(re.sub(" +", " ", line).strip())


def _absolute(base: str, target: str) -> str:
    try:
        url = urljoin(base, target.strip())
        scheme = urlsplit(url).scheme
    except ValueError:
        return ""
    return url if target and not target.startswith("#") and scheme in ("http", "https", "file", "") else ""


def _last_step(url: str) -> str:
    return urlsplit(url).path.rstrip("/").rpartition("/")[2] or url
