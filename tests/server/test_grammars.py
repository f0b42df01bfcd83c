"""What a client asked for reaches the grammar as it was asked, or the request is refused: never an open answer."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from isogloss.engines.scripted import Script
from isogloss.tokenizers import byte_level

from .conftest import Serve, Served

MARKERS = ("<tool_call>", "</tool_call>", "<think>", "</think>", "<|im_start|>", "<|im_end|>")


def bound(serve: Serve, *outputs: str) -> Served:
    """A server over an engine that is held to the grammar, byte by byte."""
    scripts = [Script(output, control=MARKERS) for output in outputs]
    return serve(*scripts, takes_grammar=True, engine={"tokenizer": byte_level(MARKERS)})


def schema_of(names: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: properties.get(name, {"type": "string"}) for name in names},
        "required": list(names),
        "additionalProperties": False,
    }


def ask(served: Served, *, stream: bool = False, **fields: Any) -> httpx.Response:
    body = {"model": "default", "messages": [{"role": "user", "content": "As json."}], "stream": stream, **fields}
    return httpx.post(f"{served.url}/v1/chat/completions", content=json.dumps(body).encode(), trust_env=False)


def json_schema(schema: dict[str, Any], *, strict: bool = True) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "N", "strict": strict, "schema": schema}}


@pytest.mark.parametrize("strict", [True, False])
def test_keys_keep_the_order_of_the_schema(serve: Serve, strict: bool) -> None:
    form = json_schema(schema_of("za"), strict=strict)
    answer = ask(bound(serve, '{"z":"1","a":"2"}'), response_format=form)
    assert answer.json()["choices"][0]["message"]["content"] == '{"z":"1","a":"2"}'
    assert ask(bound(serve, '{"a":"2","z":"1"}'), response_format=form).status_code == 502


@pytest.mark.parametrize("strict", [True, False])
def test_a_function_without_parameters_takes_none(serve: Serve, strict: bool) -> None:
    tool = {"type": "function", "function": {"name": "now", "strict": strict}}
    call = '<tool_call>\n{"name": "now", "arguments": %s}\n</tool_call>'
    answer = ask(bound(serve, call % "{}"), tools=[tool], tool_choice="required")
    [made] = answer.json()["choices"][0]["message"]["tool_calls"]
    assert made["function"] == {"name": "now", "arguments": "{}"}
    assert ask(bound(serve, call % '{"KEY": 1}'), tools=[tool], tool_choice="required").status_code == 502


def test_white_space_is_bounded(serve: Serve) -> None:
    form = json_schema(schema_of("a"))
    assert ask(bound(serve, '{\n  "a": "1"\n}'), response_format=form).status_code == 200
    assert ask(bound(serve, '{"a":' + " " * 1000 + '"1"}'), response_format=form).status_code == 502


def test_nothing_follows_the_answer(serve: Serve) -> None:
    form = json_schema(schema_of("a"))
    answer = ask(bound(serve, '<think>\nHm.\n</think>\n\n{"a":"1"}'), response_format=form)
    assert answer.json()["choices"][0]["message"]["content"] == '{"a":"1"}'
    assert answer.json()["choices"][0]["message"]["reasoning_content"] == "Hm."
    assert ask(bound(serve, '{"a":"1"}{"a":"1"}'), response_format=form).status_code == 502


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "[z-a]"])
def test_a_pattern_that_is_none_is_a_400(serve: Serve, pattern: str, strict: bool, stream: bool) -> None:
    served = bound(serve, "never")
    form = json_schema(schema_of("s", s={"type": "string", "pattern": pattern}), strict=strict)
    answer = ask(served, stream=stream, response_format=form)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert served.engine.requests == []


def test_an_identity_escape_in_a_pattern_is_enforced(serve: Serve) -> None:
    form = json_schema(schema_of("s", s={"type": "string", "pattern": "^hello there indeed\\!$"}))
    assert ask(bound(serve, '{"s":"hello there indeed!"}'), response_format=form).status_code == 200
    assert ask(bound(serve, '{"s":"goodbye"}'), response_format=form).status_code == 502


def test_a_schema_that_nothing_satisfies_is_a_400(serve: Serve) -> None:
    schema = schema_of("n", n={"type": "integer", "minimum": 2, "maximum": 1})
    answer = ask(bound(serve, "never"), response_format=json_schema(schema, strict=False))
    assert answer.status_code == 400


def test_a_custom_tools_grammar_binds_its_text(serve: Serve) -> None:
    form: dict[str, Any] = {"type": "grammar", "grammar": {"syntax": "regex", "definition": "SELECT [0-9]+"}}
    fields: dict[str, Any] = {
        "tools": [{"type": "custom", "custom": {"name": "sql", "format": form}}],
        "tool_choice": {"type": "custom", "custom": {"name": "sql"}},
        "parallel_tool_calls": False,
    }

    def call(text: str) -> str:
        return f'<tool_call>\n{{"name": "sql", "arguments": {{"input": "{text}"}}}}\n</tool_call>'

    answer = ask(bound(serve, call("SELECT 1")), **fields)
    assert answer.json()["choices"][0]["message"]["tool_calls"][0]["custom"]["input"] == "SELECT 1"
    assert ask(bound(serve, call("DROP TABLE x")), **fields).status_code == 502
    form["grammar"]["definition"] = "SELECT ("
    refused = ask(bound(serve, call("SELECT 1")), **fields)
    assert refused.status_code == 400
    assert refused.json()["error"]["code"] == "invalid_grammar"
