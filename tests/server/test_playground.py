"""What the page is told: the endpoints under ``/playground/api``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from isogloss.dialects import dialect_names, get_dialect
from isogloss.engines.scripted import Script
from isogloss.errors import EngineUnavailableError
from isogloss.events import Malformed, ToolCallDelta
from isogloss.messages import AssistantMessage, ToolCall
from isogloss.server.dialect_guess import guess_dialects
from isogloss.server.output_runs import runs_of
from isogloss.testing import read_corpus
from isogloss.tokenizers import o200k_harmony

from .conftest import Serve, Served

CORPUS = Path(__file__).parents[1] / "corpus"
CALL = '<tool_call>\n{"name":"f","arguments":{"a":1}}\n</tool_call>'
TOOL = {
    "type": "function",
    "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}},
}
TURN = AssistantMessage(text="Let me see.", tool_calls=(ToolCall("", "search", {"query": "x y", "limit": 3}),))


def ask(served: Served, name: str, body: dict[str, Any] | None = None) -> httpx.Response:
    url = f"{served.url}/playground/api/{name}"
    if body is None:
        return httpx.get(url, trust_env=False, timeout=60)
    return httpx.post(url, json=body, trust_env=False, timeout=60)


def stream(served: Served, body: dict[str, Any]) -> list[dict[str, Any]]:
    answer = ask(served, "chat", body)
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line]
    assert lines[-1] == "[DONE]" or "error" in lines[-1]
    return [json.loads(line) for line in lines if line != "[DONE]"]


# --- runs and guesses


@pytest.mark.parametrize("name", dialect_names())
def test_runs_tile_every_output_of_the_corpus(name: str) -> None:
    dialect = get_dialect(name)
    for case in read_corpus(CORPUS / f"{name}.txt"):
        if case.output is None:
            continue
        for output in (case.output, case.output[: len(case.output) // 2]):
            end = 0
            for event in dialect.events(output, case.tools, starts_in=case.starts_in):
                runs = runs_of(event, output[event.start : event.end])
                for run in runs:
                    assert run.start == end < run.end
                    end = run.end
                if isinstance(event, Malformed):
                    assert {run.kind for run in runs} <= {"malformed"}
            assert end == len(output)


@pytest.mark.parametrize(
    ("arguments", "raw", "said"),
    [
        ('{"a":"x', "<parameter=a>\nx", ["a", "x"]),
        (',"b":5', "\n</parameter>\n<parameter=b>\n5\n</parameter>", ["b", "5"]),
        ('{"b":"say \\"hi\\"\\n', '<parameter=b>\nsay "hi"\n', ["b", 'say "hi"\n']),
        ('"', "\n</parameter>", []),
        ('{"a": 1}', ', "arguments": {"a": 1}', ['{"a": 1}']),
        ('{"a":"x","b":3}', '{"a": "x", "b": 3}', ['{"a": "x", "b": 3}']),
        ('"b":3', ', "b": 3', [', "b": 3']),
        ('{"a":"x","b":3}', "(a='x', b=3)", ["a", "x", "b", "3"]),
        ('{"a":"p"}', "<parameter=a>p</parameter>", ["a", "p"]),
        ('{"a":"\\u00e9"}', "<a>é</a>", ["a", "é"]),
        ('{"a":1,"missing":2}', "<a>1</a><b>2</b>", ["2"]),
    ],
)
def test_values_are_found_in_what_the_model_wrote(arguments: str, raw: str, said: list[str]) -> None:
    runs = runs_of(ToolCallDelta(0, arguments, 0, len(raw)), raw)
    assert [raw[run.start : run.end] for run in runs if run.kind == "arguments"] == said


@pytest.mark.parametrize("name", dialect_names())
def test_a_turn_is_known_by_the_dialect_that_wrote_it(name: str) -> None:
    guesses = guess_dialects(get_dialect(name).render_output(TURN), ())
    likely = [guess.dialect.name for guess in guesses if guess.rank == guesses[0].rank]
    assert name in likely


def test_plain_text_is_in_no_dialect() -> None:
    assert guess_dialects("The answer is 5 < 6.", ()) == []


# --- endpoints


def test_about_lists_the_dialects_without_the_engine_too(serve: Serve) -> None:
    served = serve("Hi")
    about = ask(served, "about").json()
    assert (about["model"], about["dialect"], about["fault"]) == ("scripted", "hermes", None)
    assert [dialect["name"] for dialect in about["dialects"]] == dialect_names()
    served.chat.forget_model()
    served.engine.failure = EngineUnavailableError("It is down")
    about = ask(served, "about").json()
    assert (about["model"], about["fault"]) == (None, "It is down")
    assert ask(served, "scan", {"output": CALL}).json()["turn"]["tool_calls"][0]["name"] == "f"


@pytest.mark.parametrize("name", dialect_names())
def test_every_dialect_has_a_sample_that_its_grammar_accepts(serve: Serve, name: str) -> None:
    served = serve("Hi")
    sample = ask(served, "sample", {"dialect": name}).json()
    scan = ask(served, "scan", sample).json()
    assert [call["arguments"] for call in scan["turn"]["tool_calls"]] == [{"city": "Paris", "days": 3}]
    assert scan["turn"]["reasoning"] == "They want a forecast for Paris."
    place = ask(served, "constraint", {**sample, "text": sample["output"]}).json()
    assert (place["offset"], place["is_complete"]) == (len(sample["output"]), True)


def test_scan_tells_with_how_many_characters_each_event_came(serve: Serve) -> None:
    served = serve("Hi")
    whole = ask(served, "scan", {"output": CALL, "dialect": "hermes", "cut": 1}).json()
    places = [event["at"] for event in whole["events"]]
    assert places[-1] is None
    assert all(event["end"] <= event["at"] for event in whole["events"][:-1])
    assert sorted(places[:-1]) == places[:-1]


def test_a_long_output_is_cut_into_larger_pieces_and_a_longer_one_refused(serve: Serve) -> None:
    served = serve("Hi")
    assert ask(served, "scan", {"output": "word " * 10_000, "cut": 1}).json()["cut"] == 25
    refused = ask(served, "scan", {"output": "x" * 200_001})
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "output"


def test_convert_says_what_is_dropped_lost_and_cannot_be_written(serve: Serve) -> None:
    served = serve("Hi")
    body = {"output": CALL.replace('"f"', '"f g"') + '\n<tool_call>{"na', "dialect": "hermes"}
    converted = ask(served, "convert", body).json()
    assert converted["dropped"][0]["reason"] == "the call was cut short"
    by_name = {entry["name"]: entry for entry in converted["dialects"]}
    assert list(by_name) == dialect_names()
    assert by_name["hermes"]["output"] == CALL.replace('"f"', '"f g"')
    assert by_name["pythonic"]["output"] is None
    assert "f g" in by_name["pythonic"]["reason"]
    spoken = ask(served, "convert", {"output": f"Like {CALL}", "dialect": "mistral"}).json()
    hermes = next(entry for entry in spoken["dialects"] if entry["name"] == "hermes")
    assert "the calls are not the same" in hermes["losses"]


def test_a_schema_is_checked_and_made_strict(serve: Serve) -> None:
    served = serve("Hi")
    loose = ask(served, "schema", {"schema": {"type": "object", "properties": {"a": {"type": "string"}}}}).json()
    assert loose["violations"][0]["pointer"] == ""
    assert ask(served, "schema", {"schema": loose["strict"]}).json()["violations"] == []
    none = ask(served, "schema", {"schema": {"enum": []}})
    assert none.json()["strict"] is None
    assert none.json()["reason"]


def test_a_prompt_tells_control_tokens_from_content(serve: Serve) -> None:
    body = {"messages": [{"role": "user", "content": "<|im_end|>"}]}
    segments = ask(serve("Hi"), "prompt", body).json()["segments"]
    assert ("<|im_end|>", "content") in [(segment["text"], segment["kind"]) for segment in segments]
    assert ("<|im_end|>", "control") in [(segment["text"], segment["kind"]) for segment in segments]
    counted = ask(serve("Hi", dialect="harmony", engine={"tokenizer": o200k_harmony()}), "prompt", body).json()
    assert counted["tokens"] > 10
    plain = ask(serve("Hi", engine={"takes_messages": True}), "prompt", {**body, "tools": [TOOL]}).json()
    assert [message["role"] for message in plain["messages"]] == ["system", "user"]


@pytest.mark.parametrize("cut", [1, 4, None])
def test_a_chat_streams_pieces_and_the_events_that_they_settle(serve: Serve, cut: int | None) -> None:
    served = serve(Script(f"Look: {CALL}", cut=cut))
    body = {"messages": [{"role": "user", "content": "Hi"}], "tools": [TOOL]}
    parts = stream(served, body)
    assert "".join(part.get("piece", "") for part in parts) == f"Look: {CALL}"
    events = [part["event"] for part in parts if "event" in part]
    runs = [run for part in parts for run in part.get("runs", ())]
    assert [run[0] for run in runs] == [0, *[run[1] for run in runs[:-1]]]
    assert runs[-1][1] == len(f"Look: {CALL}")
    assert [f"Look: {CALL}"[start:end] for start, end, kind in runs if kind == "name"] == ["f"]
    assert events[-1]["reason"] == "tool_calls"
    assert parts[-1]["usage"]["completion_tokens"] > 0


def test_a_chat_that_fails_says_so_in_its_stream(serve: Serve) -> None:
    served = serve(Script("Once upon", cut=4, dies_after=1))
    *_, last = stream(served, {"messages": [{"role": "user", "content": "Hi"}]})
    assert last["error"]["code"] == "engine_unavailable"


@pytest.mark.parametrize(
    ("name", "body", "param"),
    [
        ("scan", {"output": 5}, "output"),
        ("scan", {"output": "x", "dialect": "nothing"}, None),
        ("scan", {"output": "x", "starts_in": "middle"}, "starts_in"),
        ("convert", {"output": "x", "tools": {}}, "tools"),
        ("constraint", {"is_bare": True}, "response_format"),
        ("constraint", {"text": "x" * 20_001}, "text"),
        ("schema", {}, None),
        ("prompt", {"messages": []}, "messages"),
        ("chat", {}, None),
    ],
)
def test_a_mistake_is_told_where_it_is(serve: Serve, name: str, body: dict[str, Any], param: str | None) -> None:
    answer = ask(serve("Hi"), name, body)
    assert answer.status_code == 400
    assert (answer.json()["error"]["param"] or None) == param
