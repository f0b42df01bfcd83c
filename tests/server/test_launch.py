from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import httpx
import openai
import pytest

from isogloss.cli import main
from isogloss.engines import ModelInfo
from isogloss.errors import UnknownDialectError
from isogloss.server import hosted_tools
from isogloss.server.launch import dialect_of

COMMAND = [sys.executable, "-m", "isogloss", "serve"]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.txt"
    path.write_text("It is 5.", encoding="utf-8")
    return path


@contextmanager
def running(*arguments: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`isogloss serve` in a process of its own, and what it says when it is ready."""
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate(timeout=30)


def test_a_served_script(script: Path, tmp_path: Path) -> None:
    arguments = ["--model", str(script), "--engine", "scripted", "--dialect", "hermes", "--port", "0"]
    arguments += ["--alias", "gpt-4o", "--api-key-env", "KEY", "--log-level", "info", "--log-format", "json"]
    with running(*arguments, KEY="me secret", ISOGLOSS_STATE_DIR=str(tmp_path)) as (process, line):
        told, _, url = line.rpartition(" at ")
        assert told == "Serving scripted (hermes on scripted)"
        assert url.startswith("http://127.0.0.1:")
        with openai.OpenAI(base_url=url, api_key="secret", max_retries=0) as client:
            completion = client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "x"}])
        assert completion.choices[0].message.content == "It is 5."
        assert httpx.get(f"{url}/models", trust_env=False).status_code == 401
        assert (tmp_path / "server.sqlite").exists()
        process.terminate()
        _, said = process.communicate(timeout=30)
    lines = [json.loads(text) for text in said.splitlines()]
    asked = [(one["path"], one["status"], one["key"]) for one in lines if one["logger"] == "isogloss.server.access"]
    assert asked == [("/v1/chat/completions", 200, "me"), ("/v1/models", 401, "")]
    assert all(one["request_id"].startswith("req_") for one in lines if "path" in one)
    assert "It is 5." not in said


Refused = Callable[..., tuple[int, str]]


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """``refused(*arguments)``: the exit code of `isogloss serve`, and what it says."""
    monkeypatch.setenv("ISOGLOSS_STATE_DIR", str(tmp_path))

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["isogloss", "serve", *arguments])
        with pytest.raises(SystemExit) as caught:
            main()
        told = capsys.readouterr()
        assert told.out == ""
        assert isinstance(caught.value.code, int)
        return caught.value.code, told.err

    return run


def test_a_port_that_is_taken(script: Path, refused: Refused) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, said = refused("--model", str(script), "--engine", "scripted", "--dialect", "hermes", "--port", str(port))
    assert code == 3
    assert said == f"isogloss: Cannot listen on port {port} of 127.0.0.1: Address already in use\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--model", "nowhere.gguf", "--port", "0"], 2, "Cannot read the model `nowhere.gguf`"),
        (["--model", "README.md", "--port", "0"], 2, "expected a .gguf file, `hf:OWNER/"),
        (["--model", "hf:nobody", "--port", "0"], 2, "Expected `hf:OWNER/REPOSITORY/FILE`, got `hf:nobody`"),
        (["--model", "http://a", "--port", "0"], 2, "(chat, llamacpp, vllm): name one"),
        (["--model", "m.gguf", "--engine", "warp", "--port", "0"], 2, "Unknown engine `warp`, expected one of: "),
        (["--model", "SCRIPT", "--engine", "scripted", "--port", "0"], 2, "No dialect is known for 'scripted'"),
        (
            ["--model", "SCRIPT", "--engine", "scripted", "--dialect", "x", "--port", "0"],
            2,
            "Expected a dialect's name",
        ),
        (["--model", "SCRIPT", "--engine", "scripted", "--api-key-env", "NO_SUCH_KEY"], 2, "NO_SUCH_KEY"),
        (["--model", "SCRIPT", "--engine-option", "threads"], 2, "Expected NAME=VALUE"),
        (["--model", "SCRIPT", "--port", "99999"], 2, "65535"),
        (["--model", "SCRIPT", "--log-format", "xml"], 2, "Expected text or json"),
        (
            ["--model", "SCRIPT", "--log-level", "loud"],
            2,
            "Expected critical, error, warning",
        ),
        (["--model", "SCRIPT", "--search-url", "http://a"], 2, "without --tool browser"),
        (["--model", "SCRIPT", "--tool", "browser", "--search-url", "tea"], 2, "Expected an http or https URL"),
        (["--model", "SCRIPT", "--cors-origin", "example.org"], 2, "Expected an origin such as `https://example.org`"),
        (["--model", "SCRIPT", "--cors-origin", "https://a.org/"], 2, "no path), or `*`, got 'https://a.org/'"),
        (["--model", "SCRIPT", "--tool", "shell"], 2, "Expected one of python, browser"),
        (["--model", "SCRIPT", "--store", "mysql://x", "--port", "0"], 2, "Expected `memory`"),
        (["--model", "SCRIPT", "--store", "sqlite:////proc/none/x", "--port", "0"], 3, "unable to open database file"),
        (["--model", "SCRIPT", "--api-key-file", "/none"], 2, "Cannot read the keys in `/none`: No such file"),
    ],
)
def test_what_cannot_be_served(script: Path, refused: Refused, arguments: list[str], code: int, message: str) -> None:
    found, said = refused(*[str(script) if argument == "SCRIPT" else argument for argument in arguments])
    assert found == code
    assert message in said


@pytest.mark.parametrize(("tool", "package"), [("python", "jupyter_client"), ("browser", "selectolax")])
def test_a_tool_needs_its_packages(
    script: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch, tool: str, package: str
) -> None:
    monkeypatch.setattr(hosted_tools, "find_spec", lambda name: None if name == package else find_spec(name))
    code, said = refused("--model", str(script), "--tool", tool)
    assert code == 2
    assert said == (
        f"isogloss: The tool `{tool}` needs `{package}`, which is not installed: pip install 'isogloss[{tool}]'\n"
    )


def test_the_dialect_is_found_by_the_id_or_else_by_the_template() -> None:
    assert dialect_of(ModelInfo("Qwen2.5-7B-Instruct")).name == "hermes"
    assert dialect_of(ModelInfo("mine", chat_template="{{ '<tool_call>' }}")).name == "hermes"
    with pytest.raises(UnknownDialectError):
        dialect_of(ModelInfo("mine"))
