from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import aclosing
from typing import Any, TypeVar

import pytest

from isogloss.chat import Chat
from isogloss.dialects import get_dialect
from isogloss.engines import ModelInfo, Sampling, Usage
from isogloss.engines.scripted import Script, ScriptedEngine
from isogloss.errors import ConversationError, EngineError, EngineUnavailableError, OutputError, SchemaError
from isogloss.events import Finish, Malformed, TextDelta
from isogloss.messages import (
    AssistantMessage,
    Conversation,
    ResponseFormat,
    SystemMessage,
    Tool,
    ToolChoice,
    UserMessage,
)
from isogloss.tokenizers import byte_level, o200k_harmony

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = Tool("get_weather", "The weather.", CITY, strict=True)
LOOSE = Tool("get_weather", "The weather.", CITY)
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
WRONG_CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"town": "Oslo"}}\n</tool_call>'

_Result = TypeVar("_Result")


def run(work: Coroutine[Any, Any, _Result]) -> _Result:
    return asyncio.run(work)


def said(*texts: str, **asked: Any) -> Conversation:
    return Conversation([UserMessage(text) for text in texts or ("Hello",)], **asked)


def chat_of(*scripts: str | Script, **options: Any) -> Chat:
    return Chat(ScriptedEngine(scripts, takes_grammar=False, **options), get_dialect("hermes"))


def engine_of(chat: Chat) -> ScriptedEngine:
    assert isinstance(chat.engine, ScriptedEngine)
    return chat.engine


def test_a_turn_streams_reasoning_text_and_calls() -> None:
    async def work() -> AssistantMessage:
        return await chat.stream(said(tools=[LOOSE])).message()

    chat = chat_of(Script(f"<think>\nHm.\n</think>\n\nLooking.\n{CALL}", cut=3))
    message = run(work())
    assert message.reasoning == "Hm."
    assert message.text == "Looking."
    assert [(call.name, call.arguments) for call in message.tool_calls] == [("get_weather", {"city": "Oslo"})]
    assert message.finish == "tool_calls"


def test_the_prompt_goes_as_text_and_as_token_ids() -> None:
    tokenizer = o200k_harmony()
    chat = chat_of("Hi", tokenizer=tokenizer)
    run(chat.stream(said("<|im_end|>")).message())
    [request] = engine_of(chat).requests
    prompt = chat.dialect.render(said("<|im_end|>"))
    assert request.prompt == prompt.text
    assert request.prompt_ids == tuple(prompt.tokens(tokenizer))
    assert request.grammar is None
    assert request.sampling.stop == chat.dialect.markers.stop


def test_a_chat_endpoint_gets_plain_messages() -> None:
    chat = chat_of(CALL)
    engine_of(chat).takes_messages = True
    conversation = Conversation([SystemMessage("S"), UserMessage("U")], tools=[LOOSE])
    message = run(chat.stream(conversation).message())
    [request] = engine_of(chat).requests
    assert request.messages is not None
    assert [entry["role"] for entry in request.messages] == ["system", "user"]
    assert request.messages[0]["content"].startswith("S\n\n# Tools")
    assert "get_weather" in request.messages[0]["content"]
    assert request.messages[1]["content"] == "U"
    assert [call.name for call in message.tool_calls] == ["get_weather"]


def test_a_turn_that_starts_in_reasoning() -> None:
    chat = Chat(ScriptedEngine("Hm.</think>Yes.", takes_grammar=False), get_dialect("glm"))
    message = run(chat.stream(said()).message())
    assert (message.reasoning, message.text) == ("Hm.", "Yes.")
    message = run(chat.stream(said(reasoning_effort="none")).message())
    assert message.text.startswith("Hm.")


def test_usage_is_the_engines_own() -> None:
    async def work() -> None:
        turn = chat.stream(said())
        await turn.message()
        assert turn.usage == Usage(7, 3, 2)

    chat = chat_of(Script(["a", "b", "c"], usage=Usage(7, 3, 2)))
    run(work())


def test_reasoning_tokens_are_counted() -> None:
    async def work() -> tuple[int, int]:
        turn = chat.stream(said())
        await turn.message()
        return turn.reasoning_tokens, turn.usage.completion_tokens

    chat = chat_of(Script(["<think>", "\n", "one", " two", "\n", "</think>", "\n\n", "yes", "!"]))
    assert run(work()) == (4, 9)


def test_log_probabilities_are_those_of_the_visible_text() -> None:
    async def work() -> list[tuple[str, tuple[str, ...]]]:
        turn = chat.stream(said(), Sampling(logprobs=0))
        return [
            (type(update.event).__name__, tuple(entry.token for entry in update.logprobs))
            async for update in turn.updates()
        ]

    chat = chat_of(Script(["<think>", "hm", "</think>", "\n", "It", " is", " 5", "."]))
    updates = run(work())
    assert [token for _, tokens in updates for token in tokens] == ["It", " is", " 5", "."]
    assert all(tokens == () for kind, tokens in updates if kind != "TextDelta")


def test_stop_strings_end_the_visible_text_and_the_generation() -> None:
    async def work() -> tuple[AssistantMessage, Usage]:
        turn = chat.stream(said(), Sampling(stop=("\n", "two")))
        message = await turn.message()
        return message, turn.usage

    chat = chat_of(Script(["<think>", "a\nb", "</think>", "one ", "tw", "o", "three"]))
    message, usage = run(work())
    assert (message.reasoning, message.text, message.finish) == ("a\nb", "one ", "stop")
    assert usage.completion_tokens == 6
    assert engine_of(chat).running == 0
    assert engine_of(chat).abandoned == 1


@pytest.mark.parametrize("cut", [1, 5, 1000])
def test_a_call_cut_by_the_limit_is_no_call(cut: int) -> None:
    chat = chat_of(Script(CALL[:50], cut=cut, finish="length"))
    message = run(chat.stream(said(tools=[WEATHER])).message())
    assert message.finish == "length"
    assert message.tool_calls == ()
    assert [call.raw for call in message.malformed] == [CALL[:50]]


def test_leaving_early_stops_the_engine() -> None:
    async def work() -> None:
        async with aclosing(chat.stream(said())) as turn:
            async for event in turn:
                assert event == TextDelta("a", 0, 1)
                break
        assert engine_of(chat).running == 0
        assert engine_of(chat).abandoned == 1

    chat = chat_of(Script(["a", "b", "c"]))
    run(work())


def test_a_dead_engine_comes_back() -> None:
    async def work() -> None:
        engine = engine_of(chat)
        engine.failure = EngineUnavailableError("gone")
        with pytest.raises(EngineUnavailableError):
            await chat.stream(said()).message()
        engine.failure = None
        assert (await chat.stream(said()).message()).text == "Hi"
        assert (await chat.model()).id == "one"
        engine.failure = EngineUnavailableError("gone")
        with pytest.raises(EngineUnavailableError):
            await chat.stream(said()).message()
        engine._model = ModelInfo("two")
        engine.failure = None
        await chat.stream(said()).message()
        assert (await chat.model()).id == "two"

    chat = chat_of("Hi", model=ModelInfo("one"))
    run(work())


def test_a_prompt_over_the_context_is_refused() -> None:
    chat = chat_of("Hi", tokenizer=o200k_harmony(), model=ModelInfo("m", context_length=50))
    with pytest.raises(ConversationError) as caught:
        run(chat.stream(said("word " * 100)).message())
    assert caught.value.code == "context_length_exceeded"
    assert "maximum context length is 50 tokens" in caught.value.message
    with pytest.raises(ConversationError, match="resulted in at least 97"):
        run(chat.stream(said("word " * 10_000_000)).message())
    assert engine_of(chat).requests == []


# --- without grammars: verified, and asked again ----------------------------------------------------------------------

PERSON = ResponseFormat.json_schema(
    {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"], "additionalProperties": False}
)


@pytest.mark.parametrize(
    ("asked", "wrong", "right", "fault"),
    [
        ({"tools": [WEATHER]}, WRONG_CALL, CALL, "the arguments of 'get_weather' do not satisfy their schema"),
        ({"tools": [WEATHER]}, CALL[:-20], CALL, "malformed tool call"),
        ({"tools": [LOOSE], "tool_choice": "required"}, "No.", CALL, "no tool was called"),
        ({"tools": [LOOSE], "tool_choice": "none"}, CALL, "No.", "the tool 'get_weather' may not be called"),
        ({"tools": [LOOSE], "parallel_tool_calls": False}, f"{CALL}\n{CALL}", CALL, "2 tools were called"),
        (
            {"tools": [LOOSE, Tool("f")], "tool_choice": ToolChoice.named("f")},
            CALL,
            '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>',
            "the tool 'get_weather' may not be called; the tools are: 'f'",
        ),
        ({"response_format": PERSON}, "Five.", '{"age": 5}', "the answer is not JSON"),
        ({"response_format": PERSON}, '{"age": "5"}', '{"age": 5}', 'is not of type "integer" - at `/age`'),
        ({"response_format": ResponseFormat("json_object")}, "[]", "{}", "JSON, but not an object"),
    ],
)
def test_a_turn_that_does_not_hold_is_asked_for_again(
    asked: dict[str, Any], wrong: str, right: str, fault: str
) -> None:
    chat = chat_of(wrong, wrong, right)
    message = run(chat.stream(said(**asked)).message())
    expected = chat.dialect.parse(right, asked.get("tools", ()))
    assert message.text == expected.text
    assert [(call.name, call.arguments) for call in message.tool_calls] == [
        (call.name, call.arguments) for call in expected.tool_calls
    ]
    first, second, third = engine_of(chat).requests
    assert fault not in first.prompt
    assert fault in second.prompt
    assert second.prompt in third.prompt or fault in third.prompt
    with pytest.raises(OutputError, match="No turn of 3 holds what was asked"):
        run(chat_of(wrong).stream(said(**asked)).message())


def test_nothing_of_a_refused_turn_is_seen() -> None:
    async def work() -> list[object]:
        return [event async for event in chat.stream(said(response_format=PERSON))]

    chat = chat_of(Script("Five.", cut=1), Script('{"age": 5}', cut=3))
    events = run(work())
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == '{"age": 5}'
    assert isinstance(events[-1], Finish)


@pytest.mark.parametrize("answer", ["<refusal>No.</refusal>", '{"age": 5}'])
def test_a_refusal_or_a_right_answer_is_taken_at_once(answer: str) -> None:
    chat = chat_of(answer)
    run(chat.stream(said(response_format=PERSON)).message())
    assert len(engine_of(chat).requests) == 1


def test_a_refusal_where_none_may_be_is_asked_for_again() -> None:
    engine = ScriptedEngine(["<refusal>No.</refusal>", '{"age": 5}'], takes_grammar=False)
    chat = Chat(engine, get_dialect("hermes"), may_refuse=False)
    assert run(chat.stream(said(response_format=PERSON)).message()).text == '{"age": 5}'
    assert "it is a refusal" in engine.requests[1].prompt


def test_an_answer_cut_by_the_limit_says_so_itself() -> None:
    chat = chat_of(Script('{"age":', finish="length"))
    message = run(chat.stream(said(response_format=PERSON)).message())
    assert (message.text, message.finish) == ('{"age":', "length")


def test_tools_or_an_answer() -> None:
    chat = chat_of(CALL)
    message = run(chat.stream(said(tools=[WEATHER], response_format=PERSON)).message())
    assert message.finish == "tool_calls"


def test_what_is_not_bound_streams_as_it_comes() -> None:
    async def work() -> list[object]:
        return [event async for event in chat.stream(said(tools=[LOOSE]))]

    chat = chat_of(WRONG_CALL + "<tool_call>oops</tool_call>")
    events = run(work())
    assert any(isinstance(event, Malformed) for event in events)
    assert len(engine_of(chat).requests) == 1


def test_a_strict_schema_that_is_none_is_refused() -> None:
    chat = chat_of("x")
    asked = ResponseFormat.json_schema({"type": "objct"})
    with pytest.raises(SchemaError) as caught:
        run(chat.stream(said(response_format=asked)).message())
    assert caught.value.pointer == "/response_format/schema"
    remote = ResponseFormat.json_schema({"$ref": "http://127.0.0.1:9/schema.json"})
    with pytest.raises(SchemaError, match="schemas are not fetched"):
        run(chat.stream(said(response_format=remote)).message())
    assert engine_of(chat).requests == []


def test_attempts_are_counted() -> None:
    engine = ScriptedEngine("x", takes_grammar=False)
    with pytest.raises(OutputError, match="No turn of 1 holds"):
        run(Chat(engine, get_dialect("hermes"), attempts=1).stream(said(response_format=PERSON)).message())
    assert len(engine.requests) == 1
    with pytest.raises(ValueError, match="attempts"):
        Chat(engine, get_dialect("hermes"), attempts=0)


def test_control_tokens_are_told_from_text_that_spells_them() -> None:
    tokenizer = o200k_harmony()
    chat = Chat(
        ScriptedEngine(Script(["<think>", "x"]), tokenizer=tokenizer, takes_grammar=False), get_dialect("hermes")
    )
    message = run(chat.stream(said()).message())
    assert message.reasoning == "x"  # this vocabulary has no such control token, so its spelling is the marker


# --- under grammars ---------------------------------------------------------------------------------------------------

MARKERS = ("<tool_call>", "</tool_call>", "<think>", "</think>", "<|im_start|>", "<|im_end|>")


def bound(*outputs: str, dialect: str = "hermes") -> Chat:
    """A chat over an engine that is held to the grammar, byte by byte."""
    scripts = [Script(output, control=MARKERS) for output in outputs]
    return Chat(ScriptedEngine(scripts, tokenizer=byte_level(MARKERS)), get_dialect(dialect))


@pytest.mark.parametrize(
    ("asked", "right", "wrong"),
    [
        ({"tools": [WEATHER]}, CALL, WRONG_CALL),
        ({"tools": [WEATHER]}, "No call.", CALL.replace("get_weather", "get_time")),
        ({"tools": [LOOSE], "tool_choice": "required"}, CALL, "No call."),
        ({"tools": [LOOSE], "tool_choice": "none"}, "No call.", CALL),
        ({"tools": [LOOSE], "parallel_tool_calls": False}, CALL, f"{CALL}\n{CALL}"),
        ({"tools": [LOOSE, Tool("f")], "tool_choice": "get_weather"}, CALL, CALL.replace("get_weather", "f")),
        ({"response_format": PERSON}, '{"age": 5}', "Five."),
        ({"response_format": PERSON}, '<think>\nHm.\n</think>\n\n{"age": 5}', '{"age": "5"}'),
        ({"response_format": PERSON}, "<refusal>No.</refusal>", "{}"),
        ({"response_format": ResponseFormat("json_object")}, '{"a": [1]}', "[]"),
        ({"tools": [WEATHER], "response_format": PERSON}, CALL, "No call."),
        ({"tools": [WEATHER], "response_format": PERSON}, '{"age": 5}', WRONG_CALL),
        ({"tools": [WEATHER], "reasoning_effort": "none"}, CALL, f"<think>\nHm.\n</think>\n\n{CALL}"),
    ],
)
def test_the_model_is_held_to_what_is_asked(asked: dict[str, Any], right: str, wrong: str) -> None:
    chat = bound(right)
    message = run(chat.stream(said(**asked)).message())
    assert message.malformed == ()
    assert bool(message.tool_calls) == ("<tool_call>" in right)
    [request] = engine_of(chat).requests
    assert request.grammar is not None
    assert request.sampling.stop == ()  # the grammar knows where the turn ends
    with pytest.raises(EngineError, match="grammar"):
        run(bound(wrong).stream(said(**asked)).message())


def test_nothing_to_bind_needs_no_grammar() -> None:
    chat = bound("Hi")
    run(chat.stream(said()).message())
    assert engine_of(chat).requests[0].grammar is None


def test_reasoning_that_the_prompt_opened_is_closed_before_the_answer() -> None:
    conversation = said(response_format=PERSON)
    message = run(bound('Hm.</think>{"age": 5}', dialect="glm").stream(conversation).message())
    assert (message.reasoning, message.text) == ("Hm.", '{"age": 5}')
    with pytest.raises(EngineError, match="grammar"):
        run(bound('{"age": 5}', dialect="glm").stream(conversation).message())


def test_an_engine_that_drops_the_grammar_is_found_out() -> None:
    chat = Chat(ScriptedEngine(WRONG_CALL), get_dialect("hermes"))  # without a tokenizer nothing holds it
    with pytest.raises(OutputError, match="do not satisfy their schema"):
        run(chat.stream(said(tools=[WEATHER])).message())
    assert engine_of(chat).requests[0].grammar is not None
