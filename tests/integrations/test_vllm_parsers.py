"""The dialects' scanners as vLLM's parsers, driven as its server drives them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
import vllm_stand_in
from vllm_stand_in import Manager, ServerParser, ToolParam

from isogloss.dialects import dialect_names, get_dialect
from isogloss.integrations import vllm
from isogloss.messages import AssistantMessage, Tool, ToolCall

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
TOOL = Tool("get_weather", "The weather.", SCHEMA)
PARAMS = [
    ToolParam(type="function", function={"name": "get_weather", "description": "The weather.", "parameters": SCHEMA})
]
CALLS = [
    ToolCall("call_1", "get_weather", {"city": "São <b>Paulo</b>", "days": 2}),
    ToolCall("call_2", "get_weather", {"city": "Oslo"}),
]
THINKING = "<think>\nHm.\n</think>\n\n"
CALLED = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


@pytest.fixture
def managers(monkeypatch: pytest.MonkeyPatch) -> tuple[Manager, Manager]:
    installed = vllm_stand_in.install(monkeypatch)
    for name in [name for name in vars(vllm) if name.startswith(("tool_parser_", "reasoning_parser_"))]:
        monkeypatch.delattr(vllm, name)  # made for an earlier test's stand-in
    vllm.register()
    return installed


def server(managers: tuple[Manager, Manager], name: str, *, tools: bool = True, reasoning: bool = True) -> ServerParser:
    return ServerParser(
        managers[0].get(f"isogloss_{name}") if tools else None,
        managers[1].get(f"isogloss_{name}") if reasoning else None,
        PARAMS,
    )


def streamed(parser: ServerParser, output: str, size: int, prompt: str = "") -> tuple[str, str, list[ToolCall]]:
    """Reasoning, content and calls, put together as a client would."""
    pieces = [output[start : start + size] for start in range(0, len(output), size)]
    deltas = [
        delta
        for position, piece in enumerate(pieces)
        for delta in parser.parse_delta(piece, prompt, position == len(pieces) - 1)
    ]
    calls: dict[int, list[Any]] = {}
    for delta in deltas:
        for call in delta.tool_calls:
            if call.id is not None:
                assert call.type == "function"
                calls[call.index] = [call.id, call.function.name, ""]
            calls[call.index][2] += call.function.arguments
    reasoning, content = ("".join(getattr(delta, name) or "" for delta in deltas) for name in ("reasoning", "content"))
    return reasoning, content, [ToolCall(each[0], each[1], json.loads(each[2])) for each in calls.values()]


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("name", dialect_names())
def test_turns_of_every_dialect(managers: tuple[Manager, Manager], name: str, size: int) -> None:
    dialect = get_dialect(name)
    output = dialect.render_reasoning("Let me see.") + dialect.render_calls(CALLS, [TOOL])
    expected = dialect.parse(output, [TOOL])
    assert [call.arguments for call in expected.tool_calls] == [call.arguments for call in CALLS]
    reasoning, content, calls = streamed(server(managers, name), output, size)
    assert (reasoning, content) == (expected.reasoning, expected.text)
    assert [(call.name, call.arguments) for call in calls] == [(call.name, call.arguments) for call in CALLS]
    reasoning, content, calls = server(managers, name).parse(output)
    assert (reasoning or "", content or "") == (expected.reasoning, expected.text)
    assert [(c.function.name, json.loads(c.function.arguments)) for c in calls] == [
        (call.name, call.arguments) for call in CALLS
    ]


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_text_around_calls(managers: tuple[Manager, Manager], size: int) -> None:
    output = f"{THINKING}Looking.\n{CALLED}\nDone."
    expected = get_dialect("hermes").parse(output, [TOOL])
    reasoning, content, calls = streamed(server(managers, "hermes"), output, size)
    assert (reasoning, content) == ("Hm.", expected.text)
    assert [call.arguments for call in calls] == [{"city": "Oslo"}]
    assert server(managers, "hermes").parse(output)[:2] == ("Hm.", expected.text)


@pytest.mark.parametrize("size", [1, 1000])
def test_a_turn_that_begins_in_reasoning(managers: tuple[Manager, Manager], size: int) -> None:
    output = "Hm.\n</think>\n\nYes."
    assert streamed(server(managers, "hermes"), output, size, "<|im_start|>assistant\n<think>\n") == ("Hm.", "Yes.", [])
    assert server(managers, "hermes").parse(output) == ("Hm.", "Yes.", [])


@pytest.mark.parametrize("size", [1, 1000])
def test_a_prompt_that_closed_reasoning(managers: tuple[Manager, Manager], size: int) -> None:
    prompt = "<|im_start|>assistant\n<think>\n\n</think>\n\n"
    assert streamed(server(managers, "hermes"), f"Yes.{CALLED}", size, prompt)[:2] == ("", "Yes.")


@pytest.mark.parametrize("size", [1, 1000])
def test_reasoning_that_never_ends(managers: tuple[Manager, Manager], size: int) -> None:
    assert streamed(server(managers, "hermes"), "<think>\nHm", size) == ("Hm", "", [])


@pytest.mark.parametrize("size", [1, 1000])
def test_each_parser_alone(managers: tuple[Manager, Manager], size: int) -> None:
    alone = server(managers, "hermes", tools=False)
    assert streamed(alone, "<think>\nHm.\n</think>\n\nYes.", size)[0] == "Hm."
    output = f"{THINKING}Yes.\n{CALLED}"
    reasoning, content, calls = streamed(server(managers, "hermes", reasoning=False), output, size)
    assert (reasoning, len(calls)) == ("", 1)
    assert "Hm." in content
    assert content.endswith("Yes.")
    assert "Hm." in str(server(managers, "hermes", reasoning=False).parse(output)[1])


@pytest.mark.parametrize("size", [1, 1000])
def test_what_is_no_call_is_not_lost(managers: tuple[Manager, Manager], size: int) -> None:
    output = "Well: <tool_call>\nnothing\n</tool_call>"
    reasoning, content, calls = streamed(server(managers, "hermes"), output, size)
    assert (reasoning, calls) == ("", [])
    assert content.startswith("Well:")
    assert content.endswith("<tool_call>\nnothing\n</tool_call>")
    assert server(managers, "hermes").parse(output)[1] == content


def test_a_call_that_was_cut_short_is_none(managers: tuple[Manager, Manager]) -> None:
    _, content, calls = server(managers, "hermes").parse(CALLED[:60])
    assert calls == []
    assert content is None


def test_control_tokens_are_asked_for(managers: tuple[Manager, Manager]) -> None:
    for manager in managers:
        parser = manager.get("isogloss_kimi")(vllm_stand_in.Tokenizer())
        request = SimpleNamespace(skip_special_tokens=True, spaces_between_special_tokens=True)
        assert parser.adjust_request(request) is request
        assert vars(request) == {"skip_special_tokens": False, "spaces_between_special_tokens": False}


def test_the_end_of_reasoning_by_ids(managers: tuple[Manager, Manager]) -> None:
    parser = managers[1].get("isogloss_hermes")(vllm_stand_in.Tokenizer())
    ids = [*map(ord, "<think>Hm.</think>Yes")]
    assert (parser.reasoning_start_str, parser.reasoning_end_str) == ("<think>", "</think>")
    assert parser.is_reasoning_end(ids)
    assert not parser.is_reasoning_end(ids[:10])
    assert not parser.is_reasoning_end_streaming(ids[:10], ids[9:10])
    assert parser.is_reasoning_end_streaming(ids, ids[12:])
    assert parser.extract_content_ids(ids) == [*map(ord, "Yes")]
    assert parser.extract_content_ids(ids[:5]) == ids[:5]


def test_unknown_names() -> None:
    with pytest.raises(AttributeError, match="no attribute 'tool_parser_nobody'"):
        _ = vllm.tool_parser_nobody


def test_a_message_is_what_the_dialect_says(managers: tuple[Manager, Manager]) -> None:
    message = AssistantMessage(text="Hello there.")
    output = get_dialect("xml").render_output(message)
    assert server(managers, "xml").parse(output) == (None, "Hello there.", [])
