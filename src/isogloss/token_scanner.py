"""Scanning by token ids, in every dialect."""

from __future__ import annotations

from isogloss.dialects._token_scanner import DamagedOutputError, Snapshot, TokenScanner

__all__ = ["DamagedOutputError", "Snapshot", "TokenScanner"]
