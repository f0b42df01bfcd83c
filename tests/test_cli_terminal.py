"""The command line on a real terminal, and `isogloss chat` in a pipe, against a server on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pexpect
import pytest

from isogloss.chat import Chat
from isogloss.dialects import get_dialect
from isogloss.engines import GenerationRequest
from isogloss.engines.scripted import Script, ScriptedEngine
from isogloss.server import ApiKey
from server.conftest import Served, serving
from server.hold import Hold

CALL = '<tool_call>\n{"name":"get_weather","arguments":{"city":"Paris"}}\n</tool_call>'
OUTPUT = f"<think>\nParis, then.\n</think>\n\nI will look.\n{CALL}"
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]
DIM, CYAN, RED, RESET = "\x1b[2m", "\x1b[36m", "\x1b[31m", "\x1b[0m"

ROOT = Path(__file__).parents[1]

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Terminal = Callable[..., "pexpect.spawn[str]"]


def answer(request: GenerationRequest) -> Script:
    return Script("It is sunny.\x1b]0;mine\x07" if "21 degrees" in request.prompt else OUTPUT, cut=4)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving(Chat(ScriptedEngine(answer, takes_grammar=False), get_dialect("hermes"))) as served:
        yield served


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(TOOLS), encoding="utf-8")
    return path


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    return {**kept, "TERM": "xterm-256color", "COLUMNS": "100", "PYTHONUTF8": "1"}


def piped(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "isogloss", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, encoding="utf-8", env=environment(), timeout=120)


@pytest.mark.parametrize(
    "arguments", [["dialects"], ["models"], ["scan", "README.md"], ["--help"], ["scan", "--help"], ["--version"]]
)
def test_a_reader_that_leaves_is_no_failure(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "isogloss", *arguments]
    with os.fdopen(writer, "wb") as output:
        done = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, env=environment(), timeout=120, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    """``terminal("chat", ...)``: the command on a terminal of its own."""
    with ExitStack() as stack:

        def start(*arguments: str) -> pexpect.spawn[str]:
            child = pexpect.spawn(
                sys.executable,
                ["-m", "isogloss", *arguments],
                env=environment(),
                encoding="utf-8",
                timeout=60,
                dimensions=(40, 100),
            )
            stack.callback(child.close, force=True)
            return child

        yield start


# --- in a pipe


def test_a_pipe_carries_the_answer_without_colour(served: Served, tools: Path, tmp_path: Path) -> None:
    saved = tmp_path / "saved.json"
    lines = [f"/tools {tools}", "Weather?", "21 degrees", f"/save {saved}"]
    done = piped("chat", "--url", served.url, stdin="\n".join(lines))
    assert done.returncode == 0
    assert done.stdout == ('I will look.\n╭─ get_weather\n│ {"city":"Paris"}\n╰─\nIt is sunny.\\x1b]0;mine\\x07\n')
    assert "Paris, then.\n" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    request = json.loads(saved.read_text(encoding="utf-8"))
    assert [message["role"] for message in request["messages"]] == ["user", "assistant", "tool", "assistant"]
    rendered = piped("render", "-d", "hermes", str(saved))
    assert rendered.returncode == 0
    assert "21 degrees" in rendered.stdout


def test_raw_shows_the_chunks(served: Served) -> None:
    done = piped("chat", "--url", f"{served.url}/v1/", stdin="/raw\nWeather?\n/quit\nnever asked\n")
    chunks = [json.loads(line) for line in done.stdout.splitlines()]
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks) == "I will look."


def test_a_schema_is_asked_for_until_it_is_taken_away(served: Served, tmp_path: Path) -> None:
    schema, saved = tmp_path / "schema.json", tmp_path / "saved.json"
    schema.write_text(json.dumps({"type": "object", "properties": {}, "required": [], "additionalProperties": False}))
    done = piped("chat", "--url", served.url, stdin=f"/schema {schema}\n/save {saved}\n/schema\n/help\n")
    form = json.loads(saved.read_text(encoding="utf-8"))["response_format"]
    assert (form["type"], form["json_schema"]["strict"]) == ("json_schema", True)
    assert "The answer may be any text" in done.stderr
    assert "/reset" in done.stderr


@pytest.mark.parametrize(
    ("stdin", "code", "said"),
    [
        ("/frobnicate\n", 2, "No command '/frobnicate'"),
        ("/save\n", 2, "Expected /save FILE"),
        ("/tools no-such-file\n", 2, "Cannot read `no-such-file`"),
        ("/save /no/such/folder/x\n", 2, "Cannot write"),
        ("", 0, ""),
    ],
)
def test_a_mistake_in_a_pipe_ends_it(served: Served, stdin: str, code: int, said: str) -> None:
    done = piped("chat", "--url", served.url, stdin=stdin)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_server_that_is_not_there_or_fails_is_exit_code_3() -> None:
    done = piped("chat", "--url", "http://127.0.0.1:9", stdin="Hi\n")
    assert done.returncode == 3
    assert done.stderr.startswith("isogloss: Cannot reach `http://127.0.0.1:9/v1`")
    engine = ScriptedEngine(Script("Once upon", cut=4, dies_after=1), takes_grammar=False)
    with serving(Chat(engine, get_dialect("hermes"))) as other:
        done = piped("chat", "--url", other.url, stdin="Hi\n")
    assert done.returncode == 3
    assert done.stdout == "Once\n"
    assert "died" in done.stderr


def test_a_line_that_is_no_text_is_told() -> None:
    with serving(Chat(ScriptedEngine("Hello.", takes_grammar=False), get_dialect("hermes"))) as other:
        command = [sys.executable, "-m", "isogloss", "chat", "--url", other.url]
        done = subprocess.run(command, input=b"Hi\n\xff\xfe\n", capture_output=True, env=environment(), timeout=120)
    assert done.returncode == 2
    assert done.stdout == b"Hello.\n"
    assert done.stderr == b"isogloss: Expected UTF-8 in line 2 of standard input, got 0xff as byte 0\n"


@pytest.mark.parametrize("answer", ["not JSON", "[]", '{"data": {}}', '{"data": [{"name": "x"}]}', '{"data": []}'])
def test_a_server_of_another_kind_is_told(answer: str) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer.encode())

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing: standard error is what is looked at."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        done = piped("chat", "--url", f"http://127.0.0.1:{server.server_port}", stdin="Hi\n")
        server.shutdown()
        thread.join()
    assert done.returncode == 3
    assert "model" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_key_is_sent_and_a_wrong_model_told(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ScriptedEngine("Hello.", takes_grammar=False)
    with serving(Chat(engine, get_dialect("hermes")), keys=(ApiKey("me", "secret"),)) as other:
        monkeypatch.setenv("CHAT_KEY", "secret")
        assert piped("chat", "--url", other.url, stdin="Hi\n").returncode == 2
        assert piped("chat", "--url", other.url, "--api-key-env", "CHAT_KEY", stdin="Hi\n").stdout == "Hello.\n"
        wrong = piped("chat", "--url", other.url, "--api-key-env", "CHAT_KEY", "--model", "other", stdin="Hi\n")
        assert wrong.returncode == 2
        assert "other" in wrong.stderr
    assert "CHAT_KEY2" in piped("chat", "--api-key-env", "CHAT_KEY2").stderr


# --- on a terminal


def test_a_talk_on_a_terminal(terminal: Terminal, served: Served, tools: Path) -> None:
    child = terminal("chat", "--url", served.url, "--system", "Be brief")
    child.expect_exact("/help lists the commands")
    child.expect_exact("> ")
    child.sendline(f"/tools {tools}")
    child.expect_exact("Tools: get_weather")
    child.sendline("Weather?")
    child.expect_exact("\x1b[2;3mPari")
    child.expect_exact("I wi")
    child.expect_exact(f"{CYAN}╭─ {RESET}")
    child.expect_exact("get_weather")
    child.expect_exact("╰─")
    child.expect_exact("result of get_weather> ")
    child.sendline("21 degrees")
    child.expect_exact("It i")
    child.expect_exact("\\x1b]0;mi")
    child.expect_exact("> ")
    child.sendline("/nothing")
    child.expect_exact(f"{RED}isogloss: No command '/nothing'")
    child.sendline("/quit")
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 0
    assert served.engine.requests[-1].prompt.startswith("<|im_start|>system\nBe brief")


def test_an_answer_is_interrupted_and_the_talk_goes_on(terminal: Terminal) -> None:
    hold = Hold(3)
    engine = ScriptedEngine(Script("Once upon a time", cut=4), takes_grammar=False, before_piece=hold)
    with serving(Chat(engine, get_dialect("hermes"))) as other:
        child = terminal("chat", "--url", other.url)
        child.expect_exact("> ")
        child.sendline("Tell me")
        child.expect_exact("n a")
        child.sendintr()
        child.expect_exact("(stopped)")
        child.expect_exact("> ")
        assert hold.left.wait(30)
        child.sendeof()
        child.expect(pexpect.EOF)
        child.wait()
    assert child.exitstatus == 0


def test_a_failure_on_a_terminal_is_told_and_the_talk_goes_on(terminal: Terminal) -> None:
    scripts = [Script("never", dies_after=0), Script("Here I am.")]
    with serving(Chat(ScriptedEngine(scripts, takes_grammar=False), get_dialect("hermes"))) as other:
        child = terminal("chat", "--url", other.url)
        child.expect_exact("> ")
        child.sendline("Hi")
        child.expect_exact(f"{RED}isogloss: ")
        child.expect_exact("> ")
        child.sendline("Hi")
        child.expect_exact("Here I am.")


def test_events_are_coloured_on_a_terminal_and_json_in_a_pipe(terminal: Terminal, tmp_path: Path) -> None:
    path = tmp_path / "output.txt"
    path.write_text(OUTPUT + '\n<tool_call>{"na\x1b[2J', encoding="utf-8")
    child = terminal("scan", "--events", str(path))
    child.expect_exact("\x1b[3;35mreasoning")
    child.expect_exact("Paris, then.")
    child.expect_exact("\x1b[1;36mcall")
    child.expect_exact("\x1b[33marguments")
    child.expect_exact("\x1b[31mmalformed")
    child.expect_exact("\\x1b[2J")
    child.expect(pexpect.EOF)
    lines = piped("scan", "--events", str(path)).stdout.splitlines()
    assert json.loads(lines[0])["type"] == "reasoning"
    assert "\\u001b" in lines[-2]


def completions(*words: str) -> list[str]:
    """What bash is told for the last of the words."""
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv[0] = 'isogloss'; from isogloss.cli import main; main()"],
        env={
            **environment(),
            "_ISOGLOSS_COMPLETE": "complete_bash",
            "COMP_WORDS": "\n".join(["isogloss", *words]),
            "COMP_CWORD": str(len(words)),
        },
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_the_shell_completes_names_and_leaves_files_to_itself() -> None:
    assert completions("sca") == ["scan"]
    assert completions("scan", "--dialect", "qwen3") == ["qwen3", "qwen3_coder"]
    assert completions("convert", "--from", "harm") == ["harmony"]
    assert completions("serve", "--engine", "ll") == ["llamacpp"]
    assert completions("scan", "--finish", "") == ["stop", "length"]
    for command, options in {
        "scan": ["", "--tools"],
        "render": ["", "--tokenizer", "--template"],
        "constrain": ["--schema", "--instance", "--tools"],
        "check-schema": [""],
        "convert": ["", "--output", "--rejects"],
        "serve": ["--model"],
    }.items():
        for option in options:
            assert completions(command, *filter(None, [option]), "da") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes_commands(shell: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "isogloss", "--show-completion", shell],
        # Typer goes by the shell that runs the tests otherwise, and refuses one that it does not know.
        env={**environment(), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"complete_{shell}" in done.stdout
