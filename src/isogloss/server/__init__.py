"""An OpenAI-compatible server over any engine: needs ``isogloss[server]``."""

from __future__ import annotations

from isogloss.server.app import create_app

__all__ = ["create_app"]
