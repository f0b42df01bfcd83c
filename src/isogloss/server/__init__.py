"""An OpenAI-compatible server over any engine: needs ``isogloss[server]``."""

from __future__ import annotations

from isogloss.server.app import create_app
from isogloss.server.auth import ApiKey
from isogloss.server.options import ServerOptions

__all__ = ["ApiKey", "ServerOptions", "create_app"]
