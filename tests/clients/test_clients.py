"""The clients that people use, each in an environment of its own: a structured answer, a tool loop of two turns, a
stream. `make clients` installs them and runs this; without them there is nothing to run.

A client's program is told the server's address and prints what it got as JSON.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from isogloss.chat import Chat
from isogloss.dialects import get_dialect
from isogloss.engines import GenerationRequest
from isogloss.engines.scripted import Script, ScriptedEngine
from server.conftest import Served, serving

HERE = Path(__file__).parent
ROOT = Path(os.environ.get("ISOGLOSS_CLIENTS", HERE.parents[1] / ".clients"))
PROGRAMS = sorted((HERE / "python").glob("*/*.py"))
NODE_MODULES = ROOT / "javascript" / "node_modules"

ANSWER = '{"name": "Ada", "age": 36}'
CALL = '<tool_call>\n{{"name": "{}", "arguments": {}}}\n</tool_call>'
EXPECTED = {
    "structured": {"name": "Ada", "age": 36},
    "tools": "It is 4 degrees in Oslo.",
    "called": ["Oslo"],
    "stream": "Hello, my friend.",
}


def answer(request: GenerationRequest) -> Script:
    """What a model would say to the programs' questions."""
    asked = request.prompt.rpartition("<|im_start|>user")[2]
    if "<tool_response>" in asked:
        return Script(EXPECTED["tools"], cut=5)  # type: ignore[arg-type]
    if "weather" in asked:
        return Script(CALL.format("get_weather", '{"city": "Oslo"}'), cut=5)
    if "Who" in asked:
        tool = re.search(r'"name": ?"(final_result|Person)"', request.prompt)
        return Script(ANSWER if tool is None else CALL.format(tool[1], ANSWER), cut=5)
    return Script(str(EXPECTED["stream"]), cut=3)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    engine = ScriptedEngine(answer, takes_grammar=False)
    with serving(Chat(engine, get_dialect("hermes"))) as running:
        yield running


def told(served: Served, *command: str | Path, **environment: str) -> Any:
    """What the program printed."""
    url = f"{served.url}/v1"
    done = subprocess.run(
        command,
        env={**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none", "NO_PROXY": "*", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_python(served: Served, program: Path) -> None:
    python = ROOT / program.parent.name / "bin" / "python"
    if not python.exists():
        pytest.skip("the clients are not installed: make clients")
    assert told(served, python, program) == EXPECTED


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("name", sorted(path.stem for path in (HERE / "javascript").glob("*.mjs")))
def test_javascript(served: Served, name: str, api: str, tmp_path: Path) -> None:
    if not NODE_MODULES.exists():
        pytest.skip("the clients are not installed: make clients")
    program = tmp_path / f"{name}.mjs"  # modules are looked for beside the program
    program.write_text((HERE / "javascript" / f"{name}.mjs").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "node_modules").symlink_to(NODE_MODULES)
    assert told(served, "node", program, api) == EXPECTED
