"""schemathesis asks what `/openapi.json` says can be asked, and checks that the answers are as described."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from isogloss.chat import Chat
from isogloss.dialects import get_dialect
from isogloss.engines.scripted import ScriptedEngine
from server.conftest import serving
from server.postgres import postgres

from .test_clients import ROOT

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


def test_the_description_holds(tmp_path: Path) -> None:
    program = ROOT / "schemathesis" / "bin" / "schemathesis"
    if not program.exists():
        pytest.skip("schemathesis is not installed: make clients")
    with postgres() as store, serving(Chat(ScriptedEngine("Hi"), get_dialect("hermes")), store=store) as served:
        command = [program, "run", f"{served.url}/openapi.json", "--max-examples", "10", "--seed", "1", "--no-color"]
        command += ["--phases", "coverage,fuzzing", "--checks", CHECKS]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    sys.stdout.write(done.stdout[-8000:])
    assert done.returncode == 0
