"""Runs of characters that may be empty: patterns that match wherever they are tried."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast

Run = Callable[[str, int], re.Match[str]]
"""The match at an offset of a text; there always is one."""


def run(pattern: str) -> Run:
    """Matches a pattern that matches the empty string, too."""
    return cast(Run, re.compile(pattern).match)
