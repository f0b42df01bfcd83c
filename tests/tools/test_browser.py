"""Browsing: displays, links, finding, citations, a folder, and the web as far as this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx")
pytest.importorskip("selectolax")

from isogloss.messages import ToolCall
from isogloss.tools.backend import BackendError, Hit
from isogloss.tools.browser import TOOLS, Browser
from isogloss.tools.folder_backend import FolderBackend
from isogloss.tools.html_text import DEEPEST, html_document
from isogloss.tools.http_backend import HttpBackend
from isogloss.tools.page import Document, Link, Page

pytestmark = pytest.mark.anyio


# -- HTML


def test_html_becomes_lines_and_numbered_links() -> None:
    html = """<!doctype html><html><head><title> The
      title </title><style>p {}</style></head><body><!-- no --><nav hidden>no</nav>
      <h2>Head &amp; more</h2><p>One <b>two</b>
      three<br>four <a href="/a?b=1">here</a>, <a href="https://o.example/x">there</a>.</p>
      <ul><li>first<li>second</ul><table><tr><th>k<th>v<tr><td>1<td>2</table>
      <pre>def f():
    return 1</pre><img alt="A cat"><script>no()</script></body></html>"""
    document = html_document(html, "https://e.example/dir/page")
    assert document.title == "The title"
    assert document.text == (
        "## Head & more\n\nOne two three\nfour 【0†here】, 【1†there†o.example】.\n\n* first\n* second\n\n"
        "k | v\n1 | 2\n\ndef f():\n    return 1\n\nA cat"
    )
    assert document.links == (
        Link("here", "https://e.example/a?b=1"),
        Link("there", "https://o.example/x"),
    )
    assert document.source == html


def test_links_that_lead_nowhere_are_text() -> None:
    html = '<a href="#top">a</a> <a href="javascript:x()">b</a> <a>c</a> <a href="http://[">d</a> <a href="/e"> </a>f'
    document = html_document(html, "https://e.example/")
    assert (document.text, document.links) == ("a b c d f", ())


def test_a_base_and_a_link_around_blocks() -> None:
    html = '<base href="https://b.example/x/"><a href="y"><div>first</div><div>second</div></a>'
    document = html_document(html, "https://e.example/")
    assert document.text == "【0†first†b.example】\nsecond".replace("†b.example", "")
    assert document.links == (Link("first", "https://b.example/x/y"),)


def test_a_page_nested_without_end_is_its_text() -> None:
    document = html_document("<div>" * (DEEPEST + 1) + "deep", "https://e.example/a/b.html")
    assert (document.title, document.text, document.links) == ("b.html", "deep", ())
    assert html_document("<p>" * (2 * DEEPEST) + "flat", "x").text == "flat"


# -- pages


def test_a_page_is_viewed_in_numbered_lines() -> None:
    page = Page.of(Document("https://e.example/", "T", "a\n\n" + "word " * 40))
    assert len(page.lines) == 5
    assert all(len(line) <= 80 for line in page.lines)
    assert (
        page.view(3, 1, 2) == f"[3] T (https://e.example/)\n**viewing lines [1 - 2] of 4**\n\nL1: \nL2: {page.lines[2]}"
    )
    assert page.quote(0, 1) == "a\n"
    assert page.fitting(0, 3) == 2
    assert page.fitting(2, 3) == 1
    assert Page.of(Document("u", "", "")).view(0, 0, 9) == "[0] u\n**viewing lines [0 - 0] of 0**\n\nL0: "


# -- the browser, over a world in memory


class World:
    """Three documents; a search finds those that have the query in their title."""

    def __init__(self) -> None:
        self.is_closed = False
        self.documents = {
            "w/rome": Document(
                "w/rome", "Rome", "Rome is old.\nSee 【0†Paris】.\nIt is big.", (Link("Paris", "w/paris"),), "<b>"
            ),
            "w/paris": Document("w/paris", "Paris", "\n".join([f"line {number}" for number in range(2_000)])),
        }

    async def search(self, query: str, count: int) -> list[Hit]:
        found = [document for document in self.documents.values() if query in document.title]
        return [Hit(document.url, document.title, "A city.") for document in found][:count]

    async def fetch(self, url: str) -> Document:
        if url not in self.documents:
            raise BackendError(f"There is no {url!r}")
        return self.documents[url]

    async def close(self) -> None:
        self.is_closed = True


async def ask(browser: Browser, name: str, **arguments: Any) -> str:
    result = await browser.run(ToolCall("c", f"browser.{name}", arguments))
    assert result.call_id == "c"
    assert result.is_error == result.text.startswith("Error: ")
    return result.text


async def test_searching_opening_and_scrolling() -> None:
    browser = Browser(World())
    assert await ask(browser, "search", query="Rome") == (
        "[0] Results for Rome\n**viewing lines [0 - 1] of 1**\n\nL0: * 【0†Rome】\nL1:   A city."
    )
    opened = await ask(browser, "open", id=0)
    assert opened.startswith("[1] Rome (w/rome)\n**viewing lines [0 - 2] of 2**\n\nL0: Rome is old.\n")
    paris = await ask(browser, "open", id=0.0, cursor=1)
    assert paris.startswith("[2] Paris (w/paris)\n**viewing lines [0 - ")
    scrolled = await ask(browser, "open", loc=1990, num_lines=3)
    assert scrolled.splitlines()[3:] == ["L1990: line 1990", "L1991: line 1991", "L1992: line 1992"]
    assert (await ask(browser, "open", id="w/rome")).startswith("[4] Rome")
    assert (await ask(browser, "open", cursor="1", view_source=True)).endswith("\n\nL0: <b>")
    many = await ask(browser, "open", id="w/paris", num_lines=10_000)
    assert len(many.splitlines()) == 503


async def test_finding_shows_the_lines_around_each_match() -> None:
    browser = Browser(World())
    await ask(browser, "open", id="w/rome")
    assert (await ask(browser, "find", pattern="see")).splitlines()[2:] == [
        "",
        "L0: # match at L1",
        "L1: Rome is old.",
        "L2: See 【0†Paris】.",
        "L3: It is big.",
    ]
    assert await ask(browser, "find", pattern="nothing", cursor=0) == "Error: 'nothing' is not in 'Rome'"


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("open", {}, "No page has been opened yet: search, or open an address"),
        ("open", {"id": "w/nowhere"}, "There is no 'w/nowhere'"),
        ("search", {}, "Expected a text for `query`"),
        ("search", {"query": "Atlantis"}, "Nothing was found for 'Atlantis'"),
        ("search", {"query": "Rome", "topn": "many"}, "Expected a whole number for `topn`, got 'many'"),
        ("dance", {}, "There is no tool 'browser.dance'"),
    ],
)
async def test_what_cannot_be_done_is_said(name: str, arguments: dict[str, Any], reason: str) -> None:
    assert await ask(Browser(World()), name, **arguments) == f"Error: {reason}"


async def test_what_is_not_on_a_page_is_said() -> None:
    browser = Browser(World())
    await ask(browser, "open", id="w/rome")
    assert await ask(browser, "open", id=7) == "Error: The page has no link 7; it has 1"
    assert await ask(browser, "open", cursor=9) == "Error: There is no cursor 9; the latest is 0"
    assert await ask(browser, "open", loc=99) == "Error: Line 99 is behind the last one, which is 2"


async def test_citations_lead_back_to_what_was_read() -> None:
    world = World()
    browser = Browser(world)
    await ask(browser, "open", id="w/rome")
    text = "Old【0†L0】 and big【0†L1-L9】, not 【7†L0】 nor 【0†L99】 nor 【0†L2-1】, 【0†L1-2】."
    found = browser.citations(text)
    assert [(text[c.start : c.end], c.url, c.title, c.first, c.last, c.quote) for c in found] == [
        ("【0†L0】", "w/rome", "Rome", 0, 0, "Rome is old."),
        ("【0†L1-L9】", "w/rome", "Rome", 1, 2, "See 【0†Paris】.\nIt is big."),
        ("【0†L1-2】", "w/rome", "Rome", 1, 2, "See 【0†Paris】.\nIt is big."),
    ]
    await browser.close()
    assert world.is_closed
    assert browser.citations("【0†L0】")


def test_the_tools_are_those_that_models_were_trained_on() -> None:
    assert [tool.name for tool in TOOLS] == ["browser.search", "browser.open", "browser.find"]
    assert Browser(World()).tools == TOOLS


# -- a folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "docs"
    (root / "sub").mkdir(parents=True)
    (root / "rome.md").write_text("# Rome\n\nThe aqueduct. See [Paris](sub/paris.html).\n", encoding="utf-8")
    (root / "sub" / "paris.html").write_text(
        "<title>Paris</title><p>A tower. <a href='../rome.md'>Rome</a>", encoding="utf-8"
    )
    (root / "noise.txt").write_text("tower " + "of words " * 50, encoding="utf-8")
    (root / "picture.png").write_bytes(b"tower")
    (tmp_path / "secret.txt").write_text("tower")
    (root / "link.txt").symlink_to(tmp_path / "secret.txt")
    return root


async def test_a_folder_is_searched_and_followed(folder: Path) -> None:
    browser = Browser(FolderBackend(folder))
    results = await ask(browser, "search", query="Tower")
    assert results.splitlines()[3:7] == [
        "L0: * 【0†Paris】",
        "L1:   A tower. Rome",
        "L2: ",
        "L3: * 【1†noise.txt】",
    ]
    assert "picture" not in results
    assert "secret" not in results
    assert (await ask(browser, "open", id=0)).splitlines()[0] == "[1] Paris (sub/paris.html)"
    rome = await ask(browser, "open", id=0)
    assert rome.splitlines()[0] == "[2] Rome (rome.md)"
    assert rome.endswith("L2: The aqueduct. See 【0†Paris】.")
    assert (await ask(browser, "open", id=0)).splitlines()[0] == "[3] Paris (sub/paris.html)"
    await browser.close()


@pytest.mark.parametrize(
    "url", ["../secret.txt", "sub/../../secret.txt", "%2e%2e/secret.txt", "link.txt", "sub", "no.md", ""]
)
async def test_nothing_outside_of_the_folder_is_read(folder: Path, url: str) -> None:
    with pytest.raises(BackendError, match="There is no document"):
        await FolderBackend(folder).fetch(url)


async def test_an_address_of_the_web_is_not_in_a_folder(folder: Path) -> None:
    with pytest.raises(BackendError, match="is not in this folder"):
        await FolderBackend(folder).fetch("https://e.example/")


# -- the web


class Pages(BaseHTTPRequestHandler):
    """A few pages, one that moves on, one that goes in circles, and a search service."""

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path == "/search":
            hits = [{"url": "/page", "title": "A page", "content": "Of it."}, {"url": "/other", "title": None}]
            self._answer(json.dumps({"results": hits}) if "q=x+y" in query else '{"answers": []}', "application/json")
        elif path == "/moved":
            self._answer("", location="/page")
        elif path == "/circle":
            self._answer("", location="/circle")
        elif path == "/plain":
            self._answer("just text", "text/plain; charset=utf-8")
        elif path == "/latin":
            self._answer("<meta charset='iso-8859-1'><p>caf\xe9", encoding="iso-8859-1")
        elif path == "/odd":
            self._answer("<meta charset='no-such'><p>odd")
        elif path == "/picture":
            self._answer("PNG", "image/png")
        elif path == "/long":
            self._answer("x" * 6_000_000, "text/plain")
        elif path == "/page":
            self._answer(f"<title>Page</title><p>Host {self.headers['host']}")
        else:
            self.send_error(404)

    def _answer(self, body: str, kind: str = "text/html", *, location: str = "", encoding: str = "utf-8") -> None:
        data = body.encode(encoding)
        self.send_response(302 if location else 200)
        if location:
            self.send_header("location", location)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        try:
            self.wfile.write(data)
        except ConnectionError:
            self.close_connection = True

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


async def test_pages_are_fetched_and_moves_followed(site: str) -> None:
    backend = HttpBackend(allows_private=True)
    page = await backend.fetch(f"{site}/moved")
    assert (page.url, page.title, page.text) == (f"{site}/page", "Page", f"Host {site.removeprefix('http://')}")
    assert (await backend.fetch(f"{site}/plain")).text == "just text"
    assert (await backend.fetch(f"{site}/latin")).text == "café"
    assert (await backend.fetch(f"{site}/odd")).text == "odd"
    assert len((await backend.fetch(f"{site}/long")).text) == 5_000_000
    await backend.close()


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/nowhere", "answers with status 404"),
        ("/circle", "from one address to the next without an end"),
        ("/picture", "is no text but image/png"),
    ],
)
async def test_what_cannot_be_fetched_is_said(site: str, path: str, reason: str) -> None:
    backend = HttpBackend(allows_private=True)
    with pytest.raises(BackendError, match=reason):
        await backend.fetch(site + path)
    await backend.close()


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://127.0.0.1/", "is an address of this machine or of a private network"),
        ("http://[::1]/", "is an address of this machine or of a private network"),
        ("http://10.1.2.3/x", "is an address of this machine or of a private network"),
        ("http://169.254.169.254/latest", "is an address of this machine or of a private network"),
        ("localhost/x", "is an address of this machine or of a private network"),
        ("file:///etc/passwd", "is no address of the web"),
        ("http://a\x00b/", "is no address: Invalid non-printable"),
    ],
)
async def test_this_machine_and_private_networks_are_refused(url: str, reason: str) -> None:
    backend = HttpBackend()
    with pytest.raises(BackendError, match=reason):
        await backend.fetch(url)
    await backend.close()


async def test_a_connection_goes_to_the_address_that_was_looked_at(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import ipaddress

    monkeypatch.setattr(ipaddress.IPv4Address, "is_global", True)
    backend = HttpBackend()
    port = site.rpartition(":")[2]
    page = await backend.fetch(f"http://localhost:{port}/page")
    assert (page.url, page.text) == (f"http://localhost:{port}/page", f"Host localhost:{port}")
    await backend.close()


async def test_a_search_service_is_asked(site: str) -> None:
    backend = HttpBackend(f"{site}/search")
    assert await backend.search("x y", 5) == [Hit("/page", "A page", "Of it."), Hit("/other", "", "")]
    assert len(await backend.search("x y", 1)) == 1
    with pytest.raises(BackendError, match="does not answer as SearXNG does"):
        await backend.search("z", 5)
    await backend.close()
    with pytest.raises(BackendError, match="has no search service"):
        await HttpBackend().search("x", 5)
