"""Token-exact continuation: what was seen and sampled stays as it is, and what follows is what the dialect writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from isogloss.chat_template import ChatTemplate
from isogloss.dialects import Dialect, dialect_names, get_dialect
from isogloss.dialects._continuation import extend
from isogloss.engines import ModelInfo
from isogloss.errors import UnrepresentableError
from isogloss.messages import (
    AssistantMessage,
    Conversation,
    DeveloperMessage,
    Message,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from isogloss.prompt import Prompt, Segment
from isogloss.prompting import Prompter
from isogloss.testing import read_corpus
from isogloss.tokenizers import Tokenizer, byte_level, o200k_harmony

EVERY_DIALECT = pytest.mark.parametrize("name", dialect_names())
CORPUS = Path(__file__).parent / "corpus"
EXAMPLES = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
TOOLS = (
    Tool(
        "write_file",
        "Write a file",
        {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "count": {"type": "integer"},
                "ratio": {"type": "number"},
                "lines": {"type": "array", "items": {"type": "string"}},
            },
        },
    ),
    Tool("list_files"),
)
ASKED = UserMessage("Hello <|im_end|>")

plain = st.text("abc XYZ.,é🙂\n", max_size=12).map(str.strip)
calls = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            "path": plain,
            "count": st.integers(-999, 999),
            "ratio": st.floats(-9, 9),
            "lines": st.lists(plain, max_size=2),
        },
    ).map(lambda arguments: ToolCall("", "write_file", arguments)),
    st.just(ToolCall("", "list_files", {})),
)


def tokenizers_for(dialect: Dialect) -> list[Tokenizer]:
    return [byte_level(sorted(dialect.markers.special)), byte_level(), o200k_harmony()]


def numbered(messages: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(f"functions.{call.name}:{n}", call.name, call.arguments) for n, call in enumerate(messages))


def following(turn: AssistantMessage) -> list[Message]:
    """What comes after a turn: results where it calls, else a user."""
    results = [ToolMessage(call.id, call.name, f"result of {call.name}") for call in turn.tool_calls]
    return [*results] or [UserMessage("And now?")]


def spoken(dialect: Dialect, before: Conversation, turn: AssistantMessage, tokenizer: Tokenizer) -> list[int]:
    """What the model would have sampled behind the prompt of a conversation to say this turn."""
    after = [message for message in following(turn) if isinstance(message, ToolMessage)]
    history = Conversation([*before.messages, turn, *after], TOOLS, reasoning_effort=before.reasoning_effort)
    prompt = dialect.render(before).text
    segments = dialect.render(history).segments
    said = [
        at for at, segment in enumerate(segments) if segment.message == len(before.messages) and segment.is_assistant
    ]
    left = len(prompt) - len(Prompt(segments[: said[0]]).text)
    kept = []
    for segment in segments[said[0] : said[-1] + 1]:
        if left < len(segment.text):
            kept.append(Segment(segment.text[max(left, 0) :], segment.is_marker))
        left -= len(segment.text)
    return Prompt(tuple(kept)).tokens(tokenizer)


def squashed(text: str) -> str:
    return "".join(text.split())


@EVERY_DIALECT
def test_what_was_seen_and_sampled_is_kept(name: str) -> None:
    dialect = get_dialect(name)
    vocabularies = st.sampled_from(tokenizers_for(dialect))
    kept = []

    @EXAMPLES
    @given(plain, plain, st.lists(calls, max_size=2), st.sampled_from([None, "none"]), vocabularies)
    def check(text: str, reasoning: str, made: list[ToolCall], effort: str | None, tokenizer: Tokenizer) -> None:
        assume(text or made)
        turn = AssistantMessage(text, reasoning=reasoning if made else "", tool_calls=numbered(made))
        new = following(turn)
        asked = Conversation([ASKED], TOOLS, reasoning_effort=effort)
        prompt = dialect.render(asked).tokens(tokenizer)
        try:
            completion = spoken(dialect, asked, turn, tokenizer)
            ids = dialect.extend(prompt, completion, new, tokenizer=tokenizer, tools=TOOLS)
            expected = dialect.render(Conversation([ASKED, turn, *new], TOOLS, reasoning_effort=effort))
        except UnrepresentableError:
            return
        assert ids[: len(prompt) + len(completion)] == prompt + completion
        assert squashed(tokenizer.decode(ids)) == squashed(expected.text)
        special = set(tokenizer.special_tokens.values())
        assert [token for token in ids if token in special] == [t for t in expected.tokens(tokenizer) if t in special]
        kept.append(bool(made))

    check()
    assert any(kept), "no turn with calls could be continued"
    assert not all(kept), "no turn without calls could be continued"


def cut(text: str, dialect: Dialect, tokenizer: Tokenizer) -> list[int]:
    """The ids of an output, markers that are control tokens being such."""
    control = [marker for marker in dialect.markers.all if marker in tokenizer.special_tokens]
    parts = re.split(f"({'|'.join(map(re.escape, sorted(control, key=len, reverse=True))) or '(?!)'})", text)
    return [
        token
        for position, part in enumerate(parts)
        for token in ([tokenizer.special_tokens[part]] if position % 2 else tokenizer.encode(part))
    ]


@EVERY_DIALECT
def test_whatever_models_say_is_kept_or_refused(name: str) -> None:
    dialect = get_dialect(name)
    kept = 0
    for case in read_corpus(CORPUS / f"{name}.txt"):
        if case.output is None:
            continue
        for effort in (None, "none"):
            prompt = dialect.render(Conversation([ASKED], case.tools, reasoning_effort=effort))
            if dialect.starts_in(prompt.text) == case.starts_in:
                break
        else:
            continue
        for tokenizer in tokenizers_for(dialect)[:2]:
            before, completion = prompt.tokens(tokenizer), cut(case.output, dialect, tokenizer)
            turn = dialect.parse(case.output, case.tools)
            new = following(turn)
            try:
                ids = dialect.extend(before, completion, new, tokenizer=tokenizer, tools=case.tools)
            except UnrepresentableError:
                continue
            kept += 1
            assert ids[: len(before) + len(completion)] == before + completion
            rest = tokenizer.decode(ids[len(before) + len(completion) :])
            history = Conversation([ASKED, turn, *new], case.tools, reasoning_effort=effort)
            assert dialect.render(history).text.endswith(rest)
    assert kept


def conversation_of(dialect: Dialect, tokenizer: Tokenizer, turns: int) -> Iterator[tuple[list[int], list[Message]]]:
    """Prompts of a growing conversation with calls, each made of the one before."""
    history: list[Message] = [ASKED]
    ids = dialect.render(Conversation(history, TOOLS)).tokens(tokenizer)
    for number in range(turns):
        turn = AssistantMessage(tool_calls=(ToolCall(f"functions.list_files:{number}", "list_files", {}),))
        completion = spoken(dialect, Conversation(history, TOOLS), turn, tokenizer)
        new = following(turn)
        ids = dialect.extend(ids, completion, new, tokenizer=tokenizer, tools=TOOLS)
        history += [turn, *new]
        yield ids, history


@EVERY_DIALECT
def test_a_conversation_goes_on_and_on(name: str) -> None:
    dialect = get_dialect(name)
    tokenizer = byte_level(sorted(dialect.markers.special))
    for ids, history in conversation_of(dialect, tokenizer, 4):
        assert squashed(tokenizer.decode(ids)) == squashed(dialect.render(Conversation(history, TOOLS)).text)


HERMES = get_dialect("hermes")
TOKENIZER = byte_level(sorted(HERMES.markers.special))
PROMPT = HERMES.render(Conversation([ASKED], TOOLS)).tokens(TOKENIZER)
CALL = '<tool_call>\n{"name": "list_files", "arguments": {}}\n</tool_call>'
RESULT = ToolMessage("call_1", "list_files", "a.txt")


def extended(output: str, *new: Message, prompt: Sequence[int] = PROMPT) -> str:
    """What comes behind an output of hermes."""
    completion = cut(output, HERMES, TOKENIZER)
    ids = HERMES.extend(prompt, completion, new, tokenizer=TOKENIZER, tools=TOOLS)
    assert ids[: len(prompt) + len(completion)] == [*prompt, *completion]
    return TOKENIZER.decode(ids[len(prompt) + len(completion) :])


def test_what_comes_behind_a_completion() -> None:
    again = "<|im_start|>user\nAnd?<|im_end|>\n<|im_start|>assistant\n"
    assert extended("Hi.<|im_end|>", UserMessage("And?")) == "\n" + again
    assert extended("Hi.", UserMessage("And?")) == "<|im_end|>\n" + again
    result = "<|im_start|>tool\n<tool_response>\na.txt\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    assert extended(f"<think>Hm.</think>{CALL}<|im_end|>", RESULT) == "\n" + result
    spelled = '<tool_call>{"arguments": {}, "name":"list_files"}</tool_call>'
    assert extended(f"{spelled}<|im_end|>", RESULT) == "\n" + result


def test_content_behind_a_completion_forges_no_token() -> None:
    ids = HERMES.extend(PROMPT, TOKENIZER.encode("Hi."), [UserMessage("<|im_end|>")], tokenizer=TOKENIZER, tools=TOOLS)
    assert ids.count(TOKENIZER.special_tokens["<|im_end|>"]) == PROMPT.count(TOKENIZER.special_tokens["<|im_end|>"]) + 2


@pytest.mark.parametrize(
    ("output", "new", "reason"),
    [
        (CALL[:30], RESULT, "malformed call"),
        (f"{CALL.removesuffix('</tool_call>')}<|im_end|>", RESULT, "not written as its history"),
        ("Hi.<|endoftext|>", UserMessage("And?"), "ends with '<|endoftext|>', where its history has '<|im_end|>'"),
        ("<think>Hm.</think>Hi.<|im_end|>", UserMessage("And?"), "without the model's reasoning"),
        ("Hi.<|im_end|>", DeveloperMessage("Be kind."), "told at the start of the prompt"),
    ],
    ids=["cut short", "not closed", "another end", "reasoning", "instructions"],
)
def test_what_cannot_be_continued(output: str, new: Message, reason: str) -> None:
    with pytest.raises(UnrepresentableError, match=re.escape(reason)):
        extended(output, new)


def test_reasoning_in_the_prompt_is_left_out_once_the_user_speaks() -> None:
    thought = cut(f"<think>Hm.</think>{CALL}<|im_end|>", HERMES, TOKENIZER)
    prompt = HERMES.extend(PROMPT, thought, [RESULT], tokenizer=TOKENIZER, tools=TOOLS)
    assert extended(f"{CALL}<|im_end|>", RESULT, prompt=prompt).startswith("\n<|im_start|>tool")
    with pytest.raises(UnrepresentableError, match="holds reasoning"):
        extended("Done.<|im_end|>", UserMessage("And?"), prompt=prompt)


def test_a_prompt_that_is_of_no_turn() -> None:
    with pytest.raises(UnrepresentableError, match="does not end as one of `hermes` does"):
        extended("Hi.", UserMessage("And?"), prompt=PROMPT[:-3])


def test_the_token_that_ended_a_turn_opens_the_next() -> None:
    glm = get_dialect("glm")
    tokenizer = byte_level(sorted(glm.markers.special))
    asked = Conversation([ASKED], reasoning_effort="none")
    prompt, completion = glm.render(asked).tokens(tokenizer), cut("Hi.<|user|>", glm, tokenizer)
    ids = glm.extend(prompt, completion, [UserMessage("And?")], tokenizer=tokenizer)
    assert tokenizer.decode(ids).endswith("Hi.<|user|>And?<|assistant|></think>")
    with pytest.raises(UnrepresentableError, match="not written as its history"):
        glm.extend(prompt, completion, [RESULT], tokenizer=tokenizer)


def test_behind_a_chat_template() -> None:
    template = ChatTemplate(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
        "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}<|im_end|>\n"
        "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
        special_tokens=TOKENIZER.special_tokens,
    )

    def render(conversation: Conversation, opens: bool) -> Prompt:
        return template.render(conversation, generation_prompt=opens)

    prompt = render(Conversation([ASKED]), True).tokens(TOKENIZER)
    completion = cut(f"{CALL}<|im_end|>", HERMES, TOKENIZER)
    ids = extend(HERMES, render, prompt, completion, [RESULT], tokenizer=TOKENIZER, tools=())
    assert ids[: len(prompt) + len(completion)] == prompt + completion
    rest = TOKENIZER.decode(ids[len(prompt) + len(completion) :])
    assert rest == "\n<|im_start|>tool\na.txt<|im_end|>\n<|im_start|>assistant\n"


@EVERY_DIALECT
def test_reasoning_that_leaves_the_history_is_the_reason_told(name: str) -> None:
    """And whoever makes prompts renders the conversation again."""
    dialect = get_dialect(name)
    tokenizer = tokenizers_for(dialect)[0]
    asked, turn, new = Conversation([ASKED]), AssistantMessage("Yes.", reasoning="Hm."), [UserMessage("And?")]
    whole = Conversation([ASKED, turn, *new])
    prompt = dialect.render(asked).tokens(tokenizer)
    completion = cut(dialect.render_output(turn), dialect, tokenizer)
    if "Hm." in dialect.render(whole).text:
        pytest.skip("keeps reasoning")
    with pytest.raises(UnrepresentableError, match="the turn is written without the model's reasoning"):
        dialect.extend(prompt, completion, new, tokenizer=tokenizer)
    prompter = Prompter(dialect, tokenizer, ModelInfo("m"), uses_template=False)
    prompter.keep(asked, turn, prompt, completion, is_templated=False)
    assert prompter.prompt(whole).tokens(tokenizer) == tuple(dialect.render(whole).tokens(tokenizer))
