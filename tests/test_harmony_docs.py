"""The guide to harmony says what is so: its code runs, and prints what stands below it. The example agent works."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import io
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from isogloss.compat import openai_harmony as compat

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<printed>.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def test_every_example_of_the_guide_prints_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (ROOT / "docs" / "harmony.md").read_text(encoding="utf-8")
    monkeypatch.setitem(sys.modules, "openai_harmony", compat)  # the guide sets it too; this takes it back
    names: dict[str, Any] = {}
    blocks = list(BLOCK.finditer(guide))
    assert len(blocks) == guide.count("```python")
    for block in blocks:
        printed = io.StringIO()
        line = guide.count("\n", 0, block.start()) + 2
        code = compile("\n" * (line - 1) + block["code"], "docs/harmony.md", "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        assert printed.getvalue() == (block["printed"] or ""), f"docs/harmony.md:{line}"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_agent_searches_opens_computes_and_cites(capsys: pytest.CaptureFixture[str]) -> None:
    for needed in ("jupyter_client", "ipykernel", "selectolax"):
        pytest.importorskip(needed)
    answer = asyncio.run(example("agent").recorded_session())
    assert answer == (
        "It will be 98 years old: it was opened in 1932【1†L3】.\n  bridge.md L3-L3: It was opened on 19 March 1932."
    )
    shown = capsys.readouterr().out
    assert [line.split()[1] for line in shown.splitlines() if line.startswith("---")] == [
        "browser.search",
        "browser.open",
        "python",
    ]
    assert "\n98\n" in shown
