"""The web to browse, over plain HTTP: pages by their address, and a search service that speaks SearXNG's JSON.

Needs the extra ``browser`` (httpx, selectolax).
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from isogloss.tools.backend import BackendError, Hit
from isogloss.tools.html_text import html_document
from isogloss.tools.page import Document

if TYPE_CHECKING:
    import httpx

AGENT = "isogloss"
LONGEST_BODY = 5_000_000
"""Bytes that are read of one page."""

_MOST_REDIRECTS = 5
_META_CHARSET = re.compile(rb"<meta[^>]{1,200}charset=[\"']?([\w-]{1,40})", re.IGNORECASE)
_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/xhtml+xml", "application/javascript")


class HttpBackend:
    """The web.

    ``search_url`` is the search address of a service that answers ``?q=QUERY&format=json`` as SearXNG does; without it
    there is no search. ``seconds`` is the limit of one request. Addresses of this machine and of private networks are
    refused, whatever name or redirection leads to them, unless ``allows_private``: the addresses are a model's choice.
    No proxy is used but that of a ``client`` of your own.
    """

    def __init__(
        self,
        search_url: str | None = None,
        *,
        seconds: float = 20.0,
        allows_private: bool = False,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        self.search_url = search_url
        self.allows_private = allows_private
        self._seconds = seconds
        self._client = client

    async def search(self, query: str, count: int) -> list[Hit]:
        if self.search_url is None:
            raise BackendError("This browser has no search service: open an address instead")
        body, _ = await self._get(self.search_url, params={"q": query, "format": "json"})
        return _hits(body, count)

    async def fetch(self, url: str) -> Document:
        if "://" not in url:
            url = f"https://{url}"
        for _ in range(_MOST_REDIRECTS + 1):
            if self.allows_private:
                body, response = await self._get(url)
            else:
                body, response = await self._get(**await _pinned(url))
            target = response.headers.get("location")
            if not response.is_redirect or target is None:
                return await asyncio.to_thread(_document, body, response, url)
            url = urljoin(url, target)
        raise BackendError(f"{url!r} leads from one address to the next without an end")

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _get(self, url: str, **options: Any) -> tuple[bytes, httpx.Response]:
        import httpx

        if self._client is None:
            headers = {"user-agent": AGENT}
            self._client = httpx.AsyncClient(timeout=self._seconds, headers=headers, trust_env=False)
        try:
            async with self._client.stream("GET", url, follow_redirects=False, **options) as response:
                if response.is_error:
                    raise BackendError(f"The address answers with status {response.status_code}")
                return await _body(response), response
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            raise BackendError(f"The address cannot be fetched: {error or type(error).__name__}") from error


async def _body(response: httpx.Response) -> bytes:
    """The beginning of it, where it is too long."""
    parts: list[bytes] = []
    length = 0
    async for part in response.aiter_bytes():
        parts.append(part)
        length += len(part)
        if length > LONGEST_BODY:
            break
    return b"".join(parts)[:LONGEST_BODY]


def _document(body: bytes, response: httpx.Response, url: str) -> Document:
    kind = response.headers.get("content-type", "text/html").lower()
    if not kind.startswith(_TEXT_TYPES):
        raise BackendError(f"{url!r} is no text but {kind.split(';')[0]}")
    text = _decoded(body, response.charset_encoding)
    if "html" in kind:
        return html_document(text, url)
    return Document(url, urlsplit(url).path.rpartition("/")[2] or url, text, (), text)


def _hits(body: bytes, count: int) -> list[Hit]:
    import msgspec

    try:
        results: list[dict[str, Any]] = msgspec.json.decode(body)["results"]
        found = [Hit(entry["url"], entry.get("title") or "", entry.get("content") or "") for entry in results[:count]]
        return msgspec.convert(msgspec.to_builtins(found), list[Hit])
    except (msgspec.MsgspecError, KeyError, TypeError, AttributeError) as error:
        raise BackendError(f"The search service does not answer as SearXNG does: {error}") from error


def _decoded(body: bytes, told: str | None) -> str:
    """By what the headers say, else what the page says of itself, else as UTF-8."""
    named = _META_CHARSET.search(body[:2048])
    try:
        return body.decode(told or (named[1].decode() if named else "utf-8"), "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


async def _pinned(url: str) -> dict[str, Any]:
    """A request to an address that was looked at: what its name leads to is asked once, and that is connected to.
    Raises `BackendError` for an address of this machine or of a private network."""
    import httpx

    try:
        address = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise BackendError(f"{url!r} is no address: {error}") from None
    if address.scheme not in ("http", "https") or not address.host:
        raise BackendError(f"{url!r} is no address of the web")
    try:
        found = await asyncio.get_running_loop().getaddrinfo(address.host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise BackendError(f"{address.host!r} is not known: {error}") from None
    places = [ipaddress.ip_address(str(place[4][0]).split("%")[0]) for place in found]
    if not all(place.is_global for place in places):
        raise BackendError(f"{address.host!r} is an address of this machine or of a private network; it is refused")
    return {
        "url": str(address.copy_with(host=str(places[0]))),
        "headers": {"host": address.netloc.decode()},
        "extensions": {"sni_hostname": address.host},
    }
