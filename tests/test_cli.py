"""The command line, as a shell calls it."""

from __future__ import annotations

import io
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import isogloss
from isogloss._compiled import is_compiled
from isogloss.cli import main
from isogloss.dialects import dialect_names
from isogloss.tokenizers import o200k_harmony
from test_tokenizers import write_gguf

CALL = 'Hi.\n<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}


class Shell:
    """Runs commands in process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], folder: Path) -> None:
        self._monkeypatch = monkeypatch
        self._capfd = capfd
        self.folder = folder

    def file(self, name: str, content: Any) -> str:
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return str(path)

    def __call__(self, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        self._monkeypatch.setattr(sys, "argv", ["isogloss", *arguments])
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = 0
        try:
            main()
        except SystemExit as exit:
            code = exit.code if isinstance(exit.code, int) else int(exit.code is not None)
        captured = self._capfd.readouterr()
        return code, captured.out, captured.err


@pytest.fixture
def refusing() -> Iterator[str]:
    """The URL of a server that answers everything with a 400."""

    class Refusal(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"error": {"message": "no such thing"}}).encode()
            self.send_response(400)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusal) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Shell:
    return Shell(monkeypatch, capfd, tmp_path)


def test_scan_prints_the_turn(shell: Shell) -> None:
    code, out, _ = shell("scan", "--dialect", "hermes", stdin=CALL)
    turn = json.loads(out)
    assert (code, turn["text"], turn["finish"]) == (0, "Hi.", "tool_calls")
    assert [(call["name"], call["arguments"]) for call in turn["tool_calls"]] == [("f", {"a": 1})]


@pytest.mark.parametrize("cut", ["0", "1", "3"])
def test_scan_prints_events_wherever_the_output_is_cut(shell: Shell, cut: str) -> None:
    code, out, _ = shell("scan", "-d", "hermes", "--events", "--cut", cut, shell.file("output.txt", CALL))
    events = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert events[-1] == {"type": "finish", "reason": "tool_calls", "start": 52, "end": len(CALL)}
    assert "".join(event["arguments"] for event in events if event["type"] == "tool_call_delta") == '{"a":1}'


def test_scan_types_values_by_the_tools(shell: Shell) -> None:
    function = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}
    tools = shell.file("tools.json", [{"type": "function", "function": function}])
    output = "<tool_call>\n<function=f>\n<parameter=a>\n007\n</parameter>\n</function>\n</tool_call>"
    _, out, _ = shell("scan", "-d", "qwen3_coder", "--tools", tools, stdin=output)
    assert json.loads(out)["tool_calls"][0]["arguments"] == {"a": "007"}


def test_render_text_tokens_and_plain_messages(shell: Shell) -> None:
    request = shell.file("request.json", {"messages": [{"role": "user", "content": "Hello"}]})
    assert shell("render", "-d", "hermes", request)[:2] == (
        0,
        "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n",
    )
    assert json.loads(shell("render", "-d", "hermes", "--inband", request)[1]) == [{"role": "user", "content": "Hello"}]
    tokens = json.loads(shell("render", "-d", "harmony", "--tokens", request)[1])
    assert tokens[0] == 200006


def test_dialects_lists_them_all(shell: Shell) -> None:
    code, out, _ = shell("dialects")
    assert code == 0
    assert [name for name in dialect_names() if name not in out] == []


def test_check_schema_says_what_is_outside_the_subset(shell: Shell) -> None:
    assert shell("check-schema", shell.file("good.json", SCHEMA)) == (0, "", "")
    code, out, _ = shell("check-schema", shell.file("bad.json", {"type": "object", "properties": {}}))
    assert code == 1
    assert "'additionalProperties' is required to be supplied and to be false" in out


def test_constrain_prints_the_grammar_or_tries_an_instance(shell: Shell) -> None:
    schema = shell.file("schema.json", SCHEMA)
    code, out, _ = shell("constrain", "--schema", schema)
    assert code == 0
    assert out.startswith("%llguidance")
    assert shell("constrain", "--schema", schema, "--instance", shell.file("a.json", '{"a":1}'))[:2] == (
        0,
        "accepted\n",
    )
    code, out, _ = shell("constrain", "--schema", schema, "--instance", shell.file("b.json", '{"a":true}'))
    assert (code, out) == (1, "refused at 5, before 'true}'\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("scan", "-d", "nothing"), "Expected a dialect's name"),
        (("scan", "no-such-file"), "Cannot read `no-such-file`"),
        (("render",), "Expected JSON in `standard input`"),
        (("constrain",), "Expected either --schema or --dialect"),
        (("scan", "--cut", "-1"), "--cut"),
        (("frobnicate",), "No such command"),
        (("scan", "-d", "Qwen4"), "did you mean 'qwen3'?"),
        (("scan", "-d", "gpt-oss-20b"), "did you mean 'harmony'?"),
        (("scan", "--finish", "foo"), "'foo' is not one of 'stop'"),
        (("scan", "--starts-in", "foo"), "'foo' is not one of 'text'"),
        (("serve", "--dialect", "qwen33"), "did you mean 'qwen3'?"),
        (("serve", "--model", "http://127.0.0.1:9", "--dialect", "nothing"), "Expected a dialect's name"),
        (("chat", "--url", "localhost:8080"), "did you mean http://localhost:8080?"),
        (("chat", "--url", "htp://x/y"), "did you mean http://x/y?"),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_2(shell: Shell, arguments: tuple[str, ...], said: str) -> None:
    code, out, err = shell(*arguments)
    assert code == 2
    assert out == ""
    assert said in err
    assert "Traceback" not in err


def test_the_version_is_told(shell: Shell) -> None:
    compiled = " (compiled)" if is_compiled() else ""
    assert shell("--version") == (0, f"isogloss {isogloss.__version__}{compiled}\n", "")


@pytest.mark.parametrize("option", [("--choice", "required"), ("--tools", "tools.json"), ("--dialect", "hermes")])
def test_what_binds_a_turn_is_refused_beside_a_schema(shell: Shell, option: tuple[str, str]) -> None:
    code, out, err = shell("constrain", "--schema", shell.file("schema.json", SCHEMA), *option)
    assert (code, out) == (2, "")
    assert "--dialect" in err


def test_a_fault_in_a_file_of_tools_names_the_file_and_the_place(shell: Shell) -> None:
    good = {"type": "function", "function": {"name": "f"}}
    tools = shell.file("tools.json", [good, {"type": "function", "function": {"name": ""}}])
    code, _, err = shell("scan", "--tools", tools)
    assert code == 2
    assert f"(in `{tools}`) - at `/1/function/name`" in err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("hello", "Expected a JSON object in"),
        ([], "Expected `object`, got `array`"),
        ({"model": {"type": "BPE"}}, "missing required field `vocab` - at `$.model`"),
        ({"model": {"vocab": {"a": "x"}, "merges": []}}, "Expected `int`, got `str`"),
        ({"model": {"vocab": {"a": 0}, "merges": [5]}}, "at `$.model.merges[0]`"),
        ({"model": {"type": "WordPiece", "vocab": {}}}, "got `WordPiece`"),
    ],
)
def test_what_is_wrong_with_a_vocabulary_is_said(shell: Shell, content: Any, said: str) -> None:
    vocabulary = shell.file("tokenizer.json", content)
    code, _, err = shell("render", "--tokens", "--tokenizer", vocabulary, stdin='[{"role": "user", "content": "Hi"}]')
    assert code == 2
    assert said in err
    assert vocabulary in err
    assert "Error" not in err


def test_half_a_surrogate_pair_does_no_harm(shell: Shell) -> None:
    output = '<tool_call>{"name": "f", "arguments": {"a": "\\ud800"}}</tool_call>'
    for options in ((), ("--events",)):
        code, out, err = shell("scan", "-d", "hermes", *options, stdin=output)
        assert (code, err) == (0, "")
        assert all(json.loads(line) for line in (out.splitlines() if options else [out]))


def test_convert_refuses_to_write_what_it_reads(shell: Shell) -> None:
    line = json.dumps({"output": "Hi."})
    path = shell.file("data.jsonl", line)
    code, _, err = shell("convert", "--from", "hermes", "--to", "glm", path, "-o", path)
    assert (code, "three different files" in err) == (2, True)
    assert Path(path).read_text(encoding="utf-8") == line


def test_convert_goes_on_behind_a_line_that_is_no_transcript(shell: Shell) -> None:
    lines = ["nonsense", json.dumps({"output": "Hi."}), json.dumps({"foo": 1})]
    path, rejects = shell.file("data.jsonl", "\n".join(lines) + "\n"), str(shell.folder / "rejects.jsonl")
    code, out, err = shell("convert", "--from", "hermes", "--to", "qwen3", path, "--rejects", rejects)
    assert (code, json.loads(out)) == (1, {"output": "Hi."})
    assert Path(rejects).read_text(encoding="utf-8").splitlines() == [lines[0], lines[2]]
    assert "1 of 3 transcripts converted" in err


def test_token_ids_need_a_vocabulary_that_knows_the_dialect(shell: Shell) -> None:
    request = shell.file("request.json", {"messages": [{"role": "user", "content": "Hello"}]})
    code, out, err = shell("render", "-d", "hermes", "--tokens", request)
    assert (code, out) == (2, "")
    assert "--tokenizer" in err


@pytest.mark.parametrize("engine", ["chat", "llamacpp", "vllm"])
def test_serve_before_an_endpoint_that_refuses(shell: Shell, refusing: str, engine: str) -> None:
    arguments = ("--model", refusing, "--engine", engine, "--dialect", "hermes", "--port", "0", "--store", "memory")
    code, out, err = shell("serve", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("isogloss: ")
    assert err.endswith(" answered 400: no such thing\n")
    assert err.count("\n") == 1


def test_chat_with_a_server_that_refuses(shell: Shell, refusing: str) -> None:
    assert shell("chat", "--url", refusing, stdin="Hi\n") == (2, "", "isogloss: no such thing\n")


@pytest.mark.parametrize(
    "command", ["scan", "render", "constrain", "check-schema", "dialects", "serve", "chat", "demo"]
)
def test_every_command_has_help_with_an_example(shell: Shell, command: str) -> None:
    code, out, _ = shell(command, "--help")
    assert code == 0
    assert "Example: isogloss" in out


def test_render_by_a_template(shell: Shell) -> None:
    request = shell.file("request.json", [{"role": "user", "content": "Hi <|a|>"}])
    template = shell.file("t.jinja", "<|a|>{{ messages[0].content }}{{ ' ' + mood if mood }}{{ ' on' if not off }}")
    assert shell("render", "--template", template, request)[:2] == (0, "<|a|>Hi <|a|> on")
    arguments = ("--argument", "mood=glad", "--argument", "off=true")
    assert shell("render", "--template", template, *arguments, request)[:2] == (0, "<|a|>Hi <|a|> glad")
    config = {"chat_template": "{{ bos_token }}{{ messages[0].content }}", "bos_token": "<|b|>"}
    shell.file("tokenizer_config.json", config)
    (shell.folder / "t.jinja").rename(shell.folder / "other.jinja")
    assert shell("render", "--template", str(shell.folder), request)[:2] == (0, "<|b|>Hi <|a|>")


def test_render_tokens_by_a_template(shell: Shell) -> None:
    request = shell.file("request.json", [{"role": "user", "content": "<|end|>"}])
    template = shell.file("t.jinja", "<|end|>{{ messages[0].content }}")
    code, out, _ = shell("render", "--template", template, "--tokens", request)
    vocabulary = o200k_harmony()
    assert code == 0
    assert json.loads(out) == [vocabulary.special_tokens["<|end|>"], *vocabulary.encode("<|end|>")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--template", "t.jinja", "--inband"], "no plain messages"),
        (["--argument", "a=1"], "give --template"),
        (["--template", "none.jinja"], "Cannot read the chat template `none.jinja`: No such file"),
        (["--template", __file__], "Expected a .gguf, .jinja or tokenizer_config.json file"),
        (["--template", "none.gguf"], "Cannot read"),
    ],
)
def test_render_by_what_is_no_template(shell: Shell, options: list[str], message: str) -> None:
    code, _, err = shell("render", *options, stdin='[{"role": "user", "content": "Hi"}]')
    assert code == 2
    assert message in err


def test_models_lists_what_is_there(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(shell.folder / "hub"))
    monkeypatch.setenv("ISOGLOSS_CACHE", str(shell.folder / "own"))
    path = shell.folder / "hub" / "models--o--r" / "snapshots" / "a" / "Qwen3-8B.gguf"
    assert shell("models") == (0, "", "")
    path.parent.mkdir(parents=True)
    write_gguf(path, tokens=["a"])
    code, out, _ = shell("models")
    assert code == 0
    assert [json.loads(line) for line in out.splitlines()] == [
        {
            "target": "hf:o/r/Qwen3-8B.gguf",
            "path": str(path),
            "size": path.stat().st_size,
            "dialect": "qwen3",
            "context_length": None,
        }
    ]
