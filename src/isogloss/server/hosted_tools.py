"""Tools that the server itself runs for the model, where they were enabled: Python, and a browser.

A request of the Responses API asks for them by type (``code_interpreter``, ``web_search``). Every response has tools of
its own: no variable and no page of one is seen by another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

import msgspec

from isogloss.errors import RequestError
from isogloss.json_fields import shown
from isogloss.messages import Tool, ToolCall, ToolMessage
from isogloss.tools import ToolKit

MakeKit = Callable[[], ToolKit]
"""Makes the tools of one response."""

KINDS: Mapping[str, str] = {
    "code_interpreter": "python",
    "web_search": "browser",
    "web_search_2025_08_26": "browser",
    "web_search_preview": "browser",
    "web_search_preview_2025_03_11": "browser",
}
"""The types of the API, and the names under which the server enables what they ask for."""

_ITEM_TYPES = {"python": "code_interpreter_call", "browser": "web_search_call"}


class HostedTool(msgspec.Struct, frozen=True):
    """A kind of tools that a response may use. ``entry`` is how the request asked for it."""

    name: str
    kit: ToolKit
    entry: dict[str, Any]

    @property
    def item_type(self) -> str:
        """The type of the items that its calls become."""
        return _ITEM_TYPES[self.name]


class HostedTools:
    """The tools of one response, by the names that the model calls."""

    def __init__(self, hosted: tuple[HostedTool, ...]) -> None:
        self._hosted = hosted
        self._by_name = {tool.name: one for one in hosted for tool in one.kit.tools}

    @classmethod
    def asked_for(cls, body: Mapping[str, Any], enabled: Mapping[str, MakeKit]) -> HostedTools:
        """What a request asks for of what is enabled."""
        entries: dict[str, dict[str, Any]] = {}
        given = body.get("tools")
        for entry in given if isinstance(given, list) else ():
            kind = entry.get("type") if isinstance(entry, dict) else None
            name = KINDS.get(kind) if isinstance(kind, str) else None
            if name is not None and name in enabled:
                entries[name] = entry
        return cls(tuple(HostedTool(name, enabled[name](), entry) for name, entry in entries.items()))

    @property
    def entries(self) -> list[dict[str, Any]]:
        """How the request asked for them."""
        return [one.entry for one in self._hosted]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._by_name)

    def by_type(self) -> dict[str, tuple[Tool, ...]]:
        """The tools that each type of the API stands for."""
        tools = {one.name: one.kit.tools for one in self._hosted}
        return {kind: tools[name] for kind, name in KINDS.items() if name in tools}

    def item_type(self, name: str) -> str | None:
        """The type of the item that a call of that name becomes; ``None`` for a tool that the client runs."""
        one = self._by_name.get(name)
        return None if one is None else one.item_type

    async def run(self, call: ToolCall) -> ToolMessage:
        return await self._by_name[call.name].kit.run(call)

    async def close(self) -> None:
        for one in self._hosted:
            await one.kit.close()


_NEEDED = {"python": ("ipykernel", "jupyter_client"), "browser": ("httpx", "selectolax")}
"""The packages of each tool."""


def check_installed(name: str) -> None:
    """Raises `RequestError` where a package is missing that the tool ``name`` needs."""
    for package in _NEEDED[name]:
        if find_spec(package) is None:
            raise RequestError(
                f"The tool `{name}` needs `{package}`, which is not installed: pip install 'isogloss[{name}]'"
            )


def python_kit() -> ToolKit:
    """A Python kernel: whatever code the model writes is run with this server's rights."""
    from isogloss.tools.python import PythonTool

    return PythonTool()


def browser_kit(search_url: str | None) -> MakeKit:
    """A browser of the web, with a search service if there is one. Raises `RequestError` for a URL that is none."""
    if search_url is not None:
        _check_url(search_url)

    def make() -> ToolKit:
        from isogloss.tools.browser import Browser
        from isogloss.tools.http_backend import HttpBackend

        return Browser(HttpBackend(search_url))

    return make


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_url = False
    if not is_url:
        raise RequestError(f"Expected an http or https URL for the search service, got {shown(url)}")
