"""How a server offers its model."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from isogloss.errors import RequestError
from isogloss.json_fields import shown
from isogloss.server.auth import ApiKey
from isogloss.server.database import MEMORY
from isogloss.server.hosted_tools import MakeKit

_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """All that can be set. The defaults suit one person on one machine."""

    aliases: tuple[str, ...] = ()
    """Further names of the model, beside its own id and ``default``."""
    keys: tuple[ApiKey, ...] = ()
    """Who may use the server; without any key, everybody who can reach it."""
    max_body_bytes: int = 32 * 1024 * 1024
    """Largest request that is read."""
    store: str = MEMORY
    """Where responses, conversations and stored completions are kept: ``memory``, ``sqlite:///PATH``,
    ``postgresql://...``."""
    keep_seconds: float = 30 * 86400.0
    """How long they are kept."""
    requests_per_minute: int | None = None
    """Of each key."""
    concurrent_requests: int | None = None
    """Of each key."""
    max_running: int = 256
    """Generations that the engine is asked for at once; the others wait."""
    max_waiting: int = 1024
    """Generations that may wait; beyond that, requests are answered with a 503."""
    timeout_seconds: float = 1800.0
    """How long one generation may take, slow clients included."""
    drain_seconds: float = 30.0
    """How long running requests may go on after the server was told to stop."""
    cors_origins: tuple[str, ...] = ()
    """Web pages that may use the server from a browser; ``*`` is every page."""
    hosted_tools: Mapping[str, MakeKit] = msgspec.field(default_factory=dict)
    """Tools that this server runs for the model, by name: ``python``, ``browser``."""
    log_content: bool = False
    """Whether requests and answers are written to the log."""

    def __post_init__(self) -> None:
        """Raises `RequestError`: a browser compares origins character by character, one of another form never fits."""
        for origin in self.cors_origins:
            if origin != "*" and not _ORIGIN.fullmatch(origin):
                raise RequestError(
                    f"Expected an origin such as `https://example.org` (scheme, host, port if any; no path), or `*`, "
                    f"got {shown(origin)}"
                )
