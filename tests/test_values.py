"""A user's mistake in Python is told where it is made, by the name of what was expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import isogloss
from isogloss import (
    AssistantMessage,
    ChatTemplate,
    Conversation,
    ConversationError,
    ResponseFormat,
    Tool,
    ToolCall,
    ToolChoice,
    ToolMessage,
    UnrepresentableError,
    UserMessage,
    collect,
    detect_dialect,
    dialect_names,
    get_dialect,
)
from isogloss.constraints import Constraint
from isogloss.messages import TextGrammar

HERMES = get_dialect("hermes")
HI = Conversation([UserMessage("Hi")])


class OtherTokenizer:
    """As other libraries have them."""

    vocabulary_size = 5

    def encode(self, text: str) -> list[int]:
        return [len(text)]

    def decode(self, ids: list[int]) -> str:
        return str(ids)


def wrong(value: object) -> Any:
    """An argument that a type checker would not let pass."""
    return value


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: Conversation(wrong("hi")), "sequence for `messages` of Conversation, got `str`"),
        (lambda: Conversation(wrong(UserMessage("hi"))), "sequence for `messages` of Conversation, got `UserMessage`"),
        (lambda: Conversation(wrong([{"role": "user", "content": "hi"}])), "`Conversation.from_openai` takes"),
        (lambda: Conversation((), wrong([{"name": "f"}])), "`Tool` for entry 0 of `tools` of Conversation, got `dict`"),
        (lambda: Conversation((), wrong(None)), "sequence for `tools` of Conversation, got `NoneType`"),
        (lambda: Conversation((), (), wrong(5)), "`str` for a tool choice, got `int`"),
        (lambda: Conversation((), response_format=wrong({})), "`ResponseFormat` or `None` for a response format"),
        (lambda: Conversation((), reasoning_effort=wrong(5)), "`str` or `None` for a reasoning effort, got `int`"),
        (lambda: UserMessage(wrong(None)), "`str` for `text` of UserMessage, got `NoneType`"),
        (lambda: ToolMessage("c", "f", wrong({"a": 1})), "`str` for `text` of ToolMessage, got `dict`"),
        (lambda: AssistantMessage(tool_calls=wrong(ToolCall("c", "f", {}))), "sequence for `tool_calls`"),
        (lambda: ToolCall("c", "f", wrong('{"a":1}')), "`dict` for the arguments of a call, got `str`; parse JSON"),
        (lambda: Tool(wrong(5)), "`str` for the name of a tool, got `int`"),
        (lambda: Tool("f", wrong({"type": "object"})), "`str` for `description` of Tool, got `dict`"),
        (lambda: Tool("f", "", wrong(int)), "`dict` for a tool's parameters, got `type`; "),
        (lambda: ResponseFormat.json_schema(wrong(int)), "`dict` for a response format's schema, got `type`; "),
        (lambda: ToolChoice("required", wrong("f")), "sequence for `names` of ToolChoice, got `str`"),
        (lambda: HERMES.parse(wrong(b"x")), "`str` for a model's output, got `bytes`"),
        (lambda: HERMES.parse("x", wrong(Tool("f"))), "sequence for the tools, got `Tool`"),
        (lambda: HERMES.scanner(wrong([{"name": "f"}])), "`Tool` for entry 0 of the tools, got `dict`"),
        (lambda: HERMES.render(wrong([UserMessage("x")])), "`Conversation` for what is rendered, got `list`"),
        (lambda: ChatTemplate("{{ messages }}").render(wrong("x")), "`Conversation` for what is rendered, got `str`"),
        (lambda: ChatTemplate(wrong(5)), "for a chat template, got `int`"),
        (lambda: get_dialect(wrong(None)), "a dialect's name as `str`, got `NoneType`"),
        (lambda: detect_dialect(wrong(None)), "as `str`, got `NoneType`"),
        (lambda: collect(wrong("abc")), "an event, got `str`"),
        (lambda: HERMES.render(HI).tokens(wrong("gpt2")), "`isogloss.tokenizers.Tokenizer`, got `str`, which has no"),
        (lambda: HERMES.render(HI).loss_mask(wrong(None)), "`isogloss.tokenizers.Tokenizer`, got `NoneType`"),
        (lambda: HERMES.constraint().matcher(wrong(OtherTokenizer())), "`OtherTokenizer`, which has no `special_"),
        (lambda: Constraint.from_json_schema({}).matcher(wrong("gpt2")), "from_tokenizer_json` reads"),
    ],
)
def test_a_wrong_type_is_a_type_error(make: Callable[[], object], expected: str) -> None:
    with pytest.raises(TypeError) as caught:
        make()
    assert expected in str(caught.value)


@pytest.mark.parametrize("name", dialect_names())
def test_a_grammar_is_made_of_tools_and_a_response_format(name: str) -> None:
    with pytest.raises(TypeError, match="entry 0 of the tools"):
        get_dialect(name).constraint(wrong([{"name": "f"}]))
    with pytest.raises(TypeError, match="for a response format, got `dict`"):
        get_dialect(name).constraint((), response_format=wrong({"type": "object"}))


@pytest.mark.parametrize("name", ["", "a b", "a\n", "<tool_call>", 'a"b', "a(b)", "f,g", "f=1"])
def test_a_name_that_no_tool_can_have(name: str) -> None:
    with pytest.raises(ConversationError, match="Expected a tool's name of letters"):
        Tool(name)


@pytest.mark.parametrize("name", ["f", "functions.get_weather", "mcp/server:tool-1", "wetter_für_köln", "天気"])
def test_a_name_that_tools_have(name: str) -> None:
    assert Tool(name).name == name


@pytest.mark.parametrize(
    "make",
    [
        lambda: ToolChoice(wrong("sometimes")),
        lambda: ResponseFormat(wrong("yaml")),
        lambda: TextGrammar(wrong("peg"), "x"),
    ],
)
def test_a_word_that_is_none_of_those_allowed(make: Callable[[], object]) -> None:
    with pytest.raises(ConversationError, match="Expected `"):
        make()


@pytest.mark.parametrize("choice", ["nope", ToolChoice.named("nope"), ToolChoice("auto", ("f", "nope"))])
def test_a_choice_of_a_tool_that_is_not_there(choice: str | ToolChoice) -> None:
    with pytest.raises(ConversationError, match="'nope' is not one of the tools: f") as caught:
        Conversation([UserMessage("Hi")], [Tool("f")], choice)
    assert caught.value.pointer == "/tool_choice"


@pytest.mark.parametrize("name", dialect_names())
@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"x"])
def test_what_json_has_no_way_to_write_is_said(name: str, value: object) -> None:
    tool = Tool("f", "", {"type": "object", "properties": {"a": {"type": "number"}}})
    with pytest.raises(UnrepresentableError):
        get_dialect(name).render_calls([ToolCall("c", "f", {"a": value})], [tool])


def test_a_name_is_looked_for_among_models_too() -> None:
    with pytest.raises(isogloss.UnknownDialectError, match="did you mean 'harmony'"):
        get_dialect("gpt-oss-120b")
