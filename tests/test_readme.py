"""The README's Python runs as it stands, block after block."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

README = Path(__file__).parents[1] / "README.md"


def test_every_python_block_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 3
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)
    assert names["ids"][0] == 200006
    assert names["matcher"].mask().any()
