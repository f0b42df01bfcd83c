"""How a turn's prompt is made: from the tokens of the turns before, by the model's own template, or in its dialect."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from isogloss.chat import Chat
from isogloss.dialects import get_dialect
from isogloss.engines import GenerationRequest, ModelInfo, Sampling
from isogloss.engines.llamacpp import LlamaCppEngine
from isogloss.engines.scripted import Script, ScriptedEngine
from isogloss.messages import (
    AssistantMessage,
    Conversation,
    Message,
    ResponseFormat,
    SystemMessage,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from isogloss.sampled_turns import SampledTurns
from isogloss.tokenizers import byte_level

HERMES = get_dialect("hermes")
TOKENIZER = byte_level(sorted(HERMES.markers.special))
FILES = Tool("list_files")
CALL = '<tool_call>{"name":"list_files",  "arguments": {}}</tool_call>'
"""Not as it is rendered."""
TEMPLATE = (
    "{{ bos_token }}{% if tools %}<tool_call>{{ tools | map(attribute='function.name') | join }}{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}|{{ m.content }}"
    "{% for c in m.tool_calls or [] %}{{ raise_exception('one call') if loop.length > 1 }}"
    "<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant|{% endif %}"
)


def chat_of(*outputs: str, name: str = "hermes", template: str | None = None, **options: Any) -> Chat:
    scripts = [Script(output, cut="tokens", control=tuple(TOKENIZER.special_tokens)) for output in outputs]
    model = ModelInfo("m", None, template, {"bos_token": "<s>"})
    engine = ScriptedEngine(scripts, tokenizer=TOKENIZER, takes_grammar=False, model=model)
    return Chat(engine, get_dialect(name), **options)


def requests(chat: Chat) -> Sequence[GenerationRequest]:
    assert isinstance(chat.engine, ScriptedEngine)
    return chat.engine.requests


def converse(chat: Chat, *new: Sequence[Message], **asked: Any) -> list[AssistantMessage]:
    """A conversation in which ``new`` messages come before each turn of the model."""

    async def work() -> list[AssistantMessage]:
        messages: list[Message] = []
        turns = []
        for more in new:
            messages += more
            turns.append(await chat.stream(Conversation(messages, **asked)).message())
            # As clients send it back: what was said and called, but not the reasoning.
            messages.append(AssistantMessage(turns[-1].text, tool_calls=turns[-1].tool_calls))
        return turns

    return asyncio.run(work())


RESULT = [ToolMessage("", "list_files", "a.txt")]


def test_a_prompt_goes_on_from_what_was_seen_and_sampled() -> None:
    output = f"<think>Hm.</think>{CALL}<|im_end|>"
    chat = chat_of(output, "Done.<|im_end|>")
    converse(chat, [UserMessage("Which files?")], RESULT, tools=[FILES])
    first, second = requests(chat)
    assert first.prompt_ids is not None
    assert second.prompt_ids is not None
    assert second.prompt_ids[: len(first.prompt_ids)] == first.prompt_ids
    assert second.prompt == first.prompt + output + (
        "\n<|im_start|>tool\n<tool_response>\na.txt\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    )
    assert TOKENIZER.decode(second.prompt_ids) == second.prompt
    assert second.prompt_ids[len(first.prompt_ids)] == TOKENIZER.special_tokens["<think>"]


@pytest.mark.parametrize(
    ("first", "changes"),
    [
        ("<think>Hm.</think>Hi.<|im_end|>", {}),  # the family leaves old reasoning out
        ("Hi.<|im_end|>", {"tools": [FILES]}),
        ("Hi.<|im_end|>", {"response_format": ResponseFormat("json_object")}),
        ("Hi.<|im_end|>", {"reasoning_effort": "low"}),
    ],
    ids=["reasoning", "tools", "format", "effort"],
)
def test_a_prompt_that_is_another_one_is_rendered(first: str, changes: dict[str, Any]) -> None:
    async def work() -> None:
        await chat.stream(Conversation([UserMessage("a")])).message()
        conversation = Conversation([UserMessage("a"), AssistantMessage("Hi."), UserMessage("b")], **changes)
        await chat.stream(conversation).message()
        assert requests(chat)[1].prompt == HERMES.render(conversation).text

    chat = chat_of(first, "{}<|im_end|>")
    asyncio.run(work())


@pytest.mark.parametrize(
    ("said", "sampling"),
    [
        (Script("Hi there", cut="tokens", finish="length"), Sampling()),
        (Script("Hi there", cut="tokens"), Sampling(stop=(" there",))),
        (Script("Hi there", cut=3), Sampling()),  # no ids
    ],
    ids=["length", "stop string", "no ids"],
)
def test_turns_that_are_not_whole_are_not_kept(said: Script, sampling: Sampling) -> None:
    async def work() -> None:
        turn = await chat.stream(Conversation([UserMessage("a")]), sampling).message()
        conversation = Conversation([UserMessage("a"), turn, UserMessage("b")])
        assert (await chat.prompter()).prompt(conversation).ids is None

    chat = Chat(ScriptedEngine([said], tokenizer=TOKENIZER, takes_grammar=False), HERMES)
    asyncio.run(work())


# -- the model's own template


def test_the_models_own_template_goes_first() -> None:
    chat = chat_of(f"{CALL}<|im_end|>", "Done.", template=TEMPLATE)
    converse(chat, [UserMessage("<|im_end|>")], RESULT, tools=[FILES])
    first, second = requests(chat)
    assert first.prompt == "<s><tool_call>list_files<|im_start|>user|<|im_end|><|im_end|>\n<|im_start|>assistant|"
    assert first.prompt_ids is not None
    assert first.prompt_ids.count(TOKENIZER.special_tokens["<|im_end|>"]) == 1
    assert second.prompt == first.prompt + f"{CALL}<|im_end|>\n<|im_start|>tool|a.txt<|im_end|>\n<|im_start|>assistant|"


def test_the_dialect_says_what_the_template_cannot() -> None:
    calls = tuple(ToolCall(f"c{number}", "list_files", {}) for number in range(2))
    conversation = Conversation([UserMessage("a"), AssistantMessage(tool_calls=calls)], [FILES])
    chat = chat_of("Hi.", template=TEMPLATE)
    asyncio.run(chat.stream(conversation).message())
    assert requests(chat)[0].prompt == HERMES.render(conversation).text


@pytest.mark.parametrize(
    ("template", "options"),
    [
        (TEMPLATE, {"uses_template": False}),
        ("{% no template <tool_call>", {}),
        ("{{ messages[0].content }}", {}),
        (TEMPLATE + "{{ eos_token }}", {}),
    ],
    ids=["not wanted", "does not compile", "another family's", "a token that is not known"],
)
def test_templates_that_are_not_used(template: str, options: dict[str, Any]) -> None:
    chat = chat_of("Hi.", template=template, **options)
    converse(chat, [UserMessage("a")])
    assert requests(chat)[0].prompt == HERMES.render(Conversation([UserMessage("a")])).text


def test_a_family_whose_renderer_is_exact_needs_no_template() -> None:
    template = "<|start|><|channel|>{% for m in messages %}{{ m.content }}{% endfor %}"
    chat = chat_of("Hi.", name="harmony", template=template)
    converse(chat, [UserMessage("a")])
    assert requests(chat)[0].prompt.startswith("<|start|>system")


@pytest.mark.parametrize("system", ["Be kind.", ""])
def test_a_template_is_told_of_the_answers_format_and_of_refusals(system: str) -> None:
    messages = [
        *([SystemMessage(system)] if system else []),
        UserMessage("a"),
        AssistantMessage(refusal="No."),
        UserMessage("b"),
    ]
    chat = chat_of("{}", template="{# <tool_call> #}" + TEMPLATE)
    conversation = Conversation(messages, response_format=ResponseFormat("json_object"))
    asyncio.run(chat.stream(conversation).message())
    opening = f"<s><|im_start|>system|{system and system + chr(10) * 2}# Response format\n\nAnswer with one JSON object"
    assert requests(chat)[0].prompt.startswith(opening)
    assert "assistant|<refusal>No.</refusal><|im_end|>" in requests(chat)[0].prompt


# -- what is kept


def test_the_latest_turns_are_kept() -> None:
    turns = SampledTurns(kept_turns=3, kept_tokens=10)

    def keep(name: str, size: int = 1) -> None:
        said = AssistantMessage("x")
        turns.keep(Conversation([UserMessage(name)]), said, [1] * size, [], is_templated=False)

    def kept(*names: str) -> list[str]:
        return [
            name
            for name in names
            if turns.find(Conversation([UserMessage(name), AssistantMessage("x"), UserMessage("b")])) is not None
        ]

    for name in "abcd":
        keep(name)
    assert kept("a", "b", "c", "d") == ["b", "c", "d"]
    assert kept("b") == ["b"]
    keep("e")
    assert kept("b", "c", "d", "e") == ["b", "d", "e"]
    keep("f", 8)
    assert kept("b", "d", "e", "f") == ["d", "e", "f"]
    keep("g", 11)
    assert kept("e", "f", "g") == []


def test_a_turn_is_known_by_what_was_said() -> None:
    turns = SampledTurns()
    call = ToolCall("c", "f", {"a": 1})
    asked = Conversation([UserMessage("\ud800")])
    turns.keep(asked, AssistantMessage("x", reasoning="r", tool_calls=[call]), [1], [2], is_templated=True)

    def found(said: AssistantMessage, *new: Message) -> bool:
        return turns.find(Conversation([*asked.messages, said, *new])) is not None

    result = ToolMessage("c", "f", "y")
    assert found(AssistantMessage("x", reasoning="r", tool_calls=[call]), result)
    assert found(AssistantMessage("x", tool_calls=[call]), result)
    assert found(AssistantMessage("x", tool_calls=[call]), result, AssistantMessage("z"), UserMessage("w"))
    assert not found(AssistantMessage("x", tool_calls=[call]))
    assert not found(AssistantMessage("x", reasoning="s", tool_calls=[call]), result)
    assert not found(AssistantMessage("x", tool_calls=[ToolCall("c", "f", {"a": 2})]), result)
    assert not found(AssistantMessage("y", tool_calls=[call]), result)


@pytest.mark.engine
@pytest.mark.anyio
async def test_an_engine_reuses_all_that_it_has_seen(llamacpp_engine: LlamaCppEngine) -> None:
    chat = Chat(llamacpp_engine, HERMES)
    asked = Conversation([UserMessage("Say hello to Ana, Ben and Eva, one after the other.")])
    first = chat.stream(asked, Sampling(temperature=0, max_tokens=200))
    said = await first.message()
    assert said.finish == "stop"
    second = chat.stream(Conversation([*asked.messages, said, UserMessage("And to Joe?")]), Sampling(max_tokens=1))
    await second.message()
    seen = first.usage.prompt_tokens + first.usage.completion_tokens
    assert second.usage.cached_tokens >= seen - 2


"""The token that ended the turn is not in the engine's cache, nor is the last one that it sampled."""


@pytest.mark.engine
@pytest.mark.anyio
async def test_an_engine_tells_the_tokens_that_its_template_names(llamacpp_engine: LlamaCppEngine) -> None:
    model = await llamacpp_engine.model()
    assert model.chat_template is not None
    assert model.template_tokens == {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
