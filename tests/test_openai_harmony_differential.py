"""The stand-in against openai_harmony itself, where that is installed: the same tokens, messages, states and errors."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isogloss.compat import openai_harmony as ours
from isogloss.tokenizers import o200k_harmony

theirs = pytest.importorskip("openai_harmony")

EXAMPLES = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
OURS = ours.load_harmony_encoding("HarmonyGptOss")


@pytest.fixture(scope="module")
def their_encoding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Their encoding, over a vocabulary file written from ours: it checks the sum of the file."""
    folder: Path = tmp_path_factory.mktemp("vocabulary")
    tokenizer = o200k_harmony()
    ordinary = range(min(tokenizer.special_tokens.values()))
    lines = [base64.b64encode(tokenizer.token_bytes(token)) + b" %d\n" % token for token in ordinary]
    (folder / "o200k_base.tiktoken").write_bytes(b"".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_ENCODINGS_BASE", str(folder))
        yield theirs.load_harmony_encoding("HarmonyGptOss")


CONTROL = [199999, 200002, 200003, 200005, 200006, 200007, 200008, 200012, 200014]
WORDS = [
    *["assistant", "user", "tool", "functions.f", "analysis", "final", "commentary", " to=functions.f", " to=", "json"],
    *[" json", " code", "to=python", "hi", " the", " x y", " \n", "<", "é🙂", "\u00a0", "\u0301"],
]
HEADS = [
    "<|channel|>final<|message|>",
    "<|channel|>analysis<|message|>",
    "<|start|>assistant<|channel|>final<|message|>",
    " to=functions.f<|channel|>commentary <|constrain|>json<|message|>",
    "<|start|>functions.f to=assistant<|channel|>commentary<|message|>",
    "<|end|><|start|>",
]
words = st.sampled_from([OURS.encode(word) for word in WORDS])
heads = st.sampled_from([OURS.encode(head, allowed_special="all") for head in HEADS])
single = st.one_of(st.sampled_from(CONTROL), st.integers(0, 201_090), st.sampled_from([9552, 132990, 2**32 - 1]))
streams = st.lists(st.one_of(single.map(lambda token: [token]), words, heads), max_size=25).map(
    lambda runs: [token for run in runs for token in run]
)
roles = st.sampled_from([None, "assistant", "tool", "user"])


def outcome(run: Callable[[], Any]) -> Any:
    try:
        return run()
    except Exception as error:
        return type(error).__name__, str(error)


def trace(module: Any, encoding: Any, tokens: list[int], role: str | None) -> list[Any]:
    """What can be read of the parser after every token."""
    parser = module.StreamableParser(encoding, None if role is None else module.Role(role))
    steps = []
    for token in [*tokens, None]:
        failed = outcome(
            lambda token=token: None if (parser.process_eos() if token is None else parser.process(token)) else 0
        )
        steps.append(
            (
                failed,
                parser.current_content,
                parser.current_role and parser.current_role.value,
                parser.current_channel,
                parser.current_recipient,
                parser.current_content_type,
                parser.last_content_delta,
                parser.state.value,
                parser.state_data,
                parser.tokens,
                [message.to_dict() for message in parser.messages],
            )
        )
    return steps


@EXAMPLES
@given(streams, roles)
def test_every_state_of_the_parser(their_encoding: Any, tokens: list[int], role: str | None) -> None:
    assert trace(ours, OURS, tokens, role) == trace(theirs, their_encoding, tokens, role)


@EXAMPLES
@given(streams, roles)
def test_whole_completions(their_encoding: Any, tokens: list[int], role: str | None) -> None:
    def parsed(module: Any, encoding: Any) -> Any:
        given_role = None if role is None else module.Role(role)
        return [m.to_dict() for m in encoding.parse_messages_from_completion_tokens(tokens, given_role)]

    assert outcome(lambda: parsed(ours, OURS)) == outcome(lambda: parsed(theirs, their_encoding))


texts = st.one_of(
    st.text(st.characters(exclude_categories=("Cs",)), max_size=10),
    st.sampled_from(
        ["<|start|>", "a<|end|>b", "all", "functions.f", "<|constrain|>json", "final", "analysis", "x\r\ny\n"]
    ),
)
values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False), texts
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(texts, inner, max_size=2)),
    max_leaves=4,
)
notes: dict[str, st.SearchStrategy[Any]] = {
    "description": texts,
    "title": texts,
    "default": values,
    "nullable": st.booleans(),
    "examples": st.lists(values, max_size=2),
}
schemas: st.SearchStrategy[Any] = st.recursive(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["string", "number", "integer", "boolean", "null", "other"])},
        optional={**notes, "enum": st.lists(values, max_size=3)},
    ),
    lambda inner: st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(texts, inner, max_size=3)},
            optional={**notes, "required": st.lists(texts, max_size=2)},
        ),
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}, optional=notes),
        st.fixed_dictionaries({"oneOf": st.lists(inner, max_size=3)}, optional=notes),
        st.fixed_dictionaries({"type": st.lists(st.sampled_from(["string", "null", "integer"]), max_size=2)}),
    ),
    max_leaves=5,
)
tools = st.fixed_dictionaries({"name": texts, "description": texts, "parameters": st.none() | schemas})
namespaces = st.dictionaries(
    st.sampled_from(["functions", "a", "z"]),
    st.fixed_dictionaries({"name": texts, "description": st.none() | texts, "tools": st.lists(tools, max_size=2)}),
    max_size=2,
)
systems = st.fixed_dictionaries(
    {"type": st.just("system_content")},
    optional={
        "model_identity": st.none() | texts,
        "reasoning_effort": st.sampled_from([None, "Low", "Medium", "High"]),
        "conversation_start_date": st.none() | texts,
        "knowledge_cutoff": st.none() | texts,
        "channel_config": st.none()
        | st.fixed_dictionaries({"valid_channels": st.lists(texts, max_size=2), "channel_required": st.booleans()}),
        "tools": st.none() | namespaces,
    },
)
developers = st.fixed_dictionaries(
    {"type": st.just("developer_content")},
    optional={"instructions": st.none() | texts, "tools": st.none() | namespaces},
)
contents = st.one_of(st.fixed_dictionaries({"type": st.just("text"), "text": texts}), systems, developers)
anybody = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "system", "developer", "tool"]),
        "name": st.none() | texts,
        "content": st.one_of(texts, st.lists(contents, max_size=2)),
    },
    optional={"channel": texts, "recipient": texts, "content_type": texts},
)
proper = st.one_of(
    st.fixed_dictionaries(
        {"role": st.just("assistant"), "content": texts},
        optional={"channel": st.sampled_from(["analysis", "commentary", "final"]), "recipient": texts},
    ),
    st.fixed_dictionaries({"role": st.just("user"), "content": texts}),
    st.fixed_dictionaries({"role": st.just("tool"), "name": texts, "content": texts}),
    st.fixed_dictionaries({"role": st.just("system"), "content": st.lists(systems, min_size=1, max_size=1)}),
    st.fixed_dictionaries({"role": st.just("developer"), "content": st.lists(developers, min_size=1, max_size=1)}),
)


@EXAMPLES
@given(
    st.one_of(st.lists(proper, max_size=6), st.lists(anybody, max_size=2)),
    st.sampled_from([None, True, False]),
    st.sampled_from(["assistant", "user"]),
)
def test_rendered_conversations(their_encoding: Any, messages: list[Any], drop: bool | None, role: str) -> None:
    def everything(module: Any, encoding: Any) -> list[Any]:
        conversation = module.Conversation.from_json(json.dumps({"messages": messages}))
        config = None if drop is None else module.RenderConversationConfig(auto_drop_analysis=drop)
        options = module.RenderOptions(conversation_has_function_tools=True)
        return [
            outcome(run)
            for run in (
                conversation.to_json,
                lambda: repr(conversation),
                lambda: encoding.render_conversation(conversation, config),
                lambda: encoding.render_conversation_for_training(conversation, config),
                lambda: encoding.render_conversation_for_completion(conversation, module.Role(role), config),
                lambda: [encoding.render(message, options) for message in conversation],
            )
        ]

    assert everything(ours, OURS) == everything(theirs, their_encoding)


@EXAMPLES
@given(
    st.lists(st.one_of(texts, st.sampled_from(["<|reserved_200014|>", "foo", "\ud800", "<|refusal|>"])), max_size=5),
    st.sampled_from(["all", (), ("<|start|>",), ("<|start|>", "foo")]),
    st.sampled_from(["all", (), ("<|start|>",), ("foo",)]),
)
def test_encoded_text(their_encoding: Any, parts: list[str], allowed: Any, disallowed: Any) -> None:
    allowed = allowed if allowed == "all" else set(allowed)

    def encoded(encoding: Any) -> Any:
        return encoding.encode("".join(parts), allowed_special=allowed, disallowed_special=disallowed)

    assert outcome(lambda: encoded(OURS)) == outcome(lambda: encoded(their_encoding))


@EXAMPLES
@given(streams)
def test_decoded_tokens(their_encoding: Any, tokens: list[int]) -> None:
    for name in ("decode", "decode_utf8"):
        assert outcome(lambda name=name: getattr(OURS, name)(tokens)) == outcome(
            lambda name=name: getattr(their_encoding, name)(tokens)
        )
    for token in tokens:
        assert OURS.is_special_token(token) == their_encoding.is_special_token(token)


def test_built_in_tools(their_encoding: Any) -> None:
    for name in ("browser", "python"):
        mine, other = getattr(ours.ToolNamespaceConfig, name)(), getattr(theirs.ToolNamespaceConfig, name)()
        assert mine.model_dump() == other.model_dump()
    assert OURS.special_tokens_set == their_encoding.special_tokens_set
