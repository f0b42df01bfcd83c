"""Text of models on a terminal."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def harmless(text: str) -> str:
    """The text with what would steer a terminal spelled out: colours, the cursor, the clipboard are not the model's."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
