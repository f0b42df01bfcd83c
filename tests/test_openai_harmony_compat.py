"""The stand-in for openai_harmony: names, values, rendering, parsing, states and errors, all as the package has them,
and what it does better when asked to be forgiving."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import subprocess
import sys

import pytest
from pydantic import ValidationError

from isogloss.compat import openai_harmony as harmony
from isogloss.compat.openai_harmony import (
    Author,
    ChannelConfig,
    Content,
    Conversation,
    DeveloperContent,
    HarmonyEncodingName,
    HarmonyError,
    Message,
    ReasoningEffort,
    RenderConversationConfig,
    RenderOptions,
    Role,
    StreamableParser,
    StreamState,
    SystemContent,
    TextContent,
    ToolDescription,
    ToolNamespaceConfig,
    load_harmony_encoding,
)

ENCODING = load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)


def ids(text: str) -> list[int]:
    return ENCODING.encode(text, allowed_special="all")


def said(role: Role, text: str, **fields: str) -> Message:
    message = Message.from_role_and_content(role, text)
    for name, value in fields.items():
        setattr(message, name, value)
    return message


def rendered(*messages: Message, drop: bool = True) -> str:
    conversation = Conversation.from_messages(messages)
    return ENCODING.decode(
        ENCODING.render_conversation(conversation, RenderConversationConfig(auto_drop_analysis=drop))
    )


def body(content: Content, role: Role = Role.SYSTEM) -> str:
    text = ENCODING.decode(ENCODING.render(Message.from_role_and_content(role, content)))
    return text.partition("<|message|>")[2].removesuffix("<|end|>")


USER = said(Role.USER, "Hi?")
THOUGHT = said(Role.ASSISTANT, "Hm.", channel="analysis")
ANSWER = said(Role.ASSISTANT, "Hi!", channel="final")
CALL = said(Role.ASSISTANT, "{}", channel="commentary", recipient="functions.f", content_type="<|constrain|>json")
RESULT = Message.from_author_and_content(Author.new(Role.TOOL, "functions.f"), "r").with_channel("commentary")


# -- the module


def test_code_written_for_the_package_runs_on_it() -> None:
    code = (
        "import sys, isogloss.compat.openai_harmony\n"
        "sys.modules['openai_harmony'] = isogloss.compat.openai_harmony\n"
        "from openai_harmony import *\n"
        "from openai_harmony import load_harmony_encoding, Conversation, Message, Role, ToolNamespaceConfig\n"
        "enc = load_harmony_encoding('HarmonyGptOss')\n"
        "convo = Conversation.from_messages([Message.from_role_and_content(Role.USER, 'Hi')])\n"
        "print(enc.decode_utf8(enc.render_conversation_for_completion(convo, Role.ASSISTANT)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "<|start|>user<|message|>Hi<|end|><|start|>assistant\n"


def test_every_public_name_is_there() -> None:
    assert sorted(harmony.__all__) == list(harmony.__all__)
    assert all(hasattr(harmony, name) for name in harmony.__all__)
    assert issubclass(HarmonyError, RuntimeError)


# -- values


def test_roles_efforts_and_states_have_their_spellings() -> None:
    assert [role.value for role in Role] == ["user", "assistant", "system", "developer", "tool"]
    assert [effort.value for effort in ReasoningEffort] == ["Low", "Medium", "High"]
    assert [state.value for state in StreamState] == ["ExpectStart", "Header", "Content"]
    assert str(HarmonyEncodingName.HARMONY_GPT_OSS) == "HarmonyGptOss"
    with pytest.raises(ValueError, match="Unknown role: 'robot'"):
        Role("robot")


def test_builders_change_the_message_and_return_it() -> None:
    message = Message.from_role_and_content(Role.ASSISTANT, "a")
    assert message.adding_content("b").adding_content(TextContent(text="c")) is message
    assert message.with_channel("final").with_recipient("f").with_content_type("json") is message
    assert message.to_dict() == {
        "role": "assistant",
        "name": None,
        "content": [{"type": "text", "text": text} for text in "abc"],
        "channel": "final",
        "recipient": "f",
        "content_type": "json",
    }
    assert Message.from_role_and_contents(Role.USER, [TextContent(text="x")]).content == [TextContent(text="x")]


def test_messages_are_equal_by_value_and_survive_json() -> None:
    conversation = Conversation.from_messages(
        [
            Message.from_role_and_content(Role.SYSTEM, SystemContent.new().with_browser_tool()),
            Message.from_role_and_content(Role.DEVELOPER, DeveloperContent.new().with_instructions("Be kind.")),
            USER,
            CALL,
            RESULT,
        ]
    )
    again = Conversation.from_json(conversation.to_json())
    assert again == conversation
    assert list(again) == conversation.messages
    assert json.loads(USER.to_json())["content"] == [{"type": "text", "text": "Hi?"}]
    assert said(Role.USER, "Hi?") == USER != ANSWER


def test_messages_from_dicts() -> None:
    assert Message.from_dict({"role": "user", "content": "Hi?"}) == USER
    with pytest.raises(KeyError, match="role"):
        Message.from_dict({"content": ""})
    with pytest.raises(ValueError, match="Unknown role: 'x'"):
        Message.from_dict({"role": "x", "content": ""})
    with pytest.raises(ValueError, match=r"Unknown content variant: \{'type': 'image'\}"):
        Message.from_dict({"role": "user", "content": [{"type": "image"}]})
    with pytest.raises(TypeError):
        Message.from_dict({"role": "user", "content": None})


def test_a_content_in_place_of_a_message_is_refused() -> None:
    with pytest.raises(ValidationError, match="Input should be a valid dictionary or instance of Message"):
        Conversation.from_messages([SystemContent.new()])  # type: ignore[list-item]


def test_tools_by_namespace() -> None:
    content = SystemContent.new().with_python_tool().with_tools(ToolNamespaceConfig(name="python", tools=[]))
    assert content.tools == {"python": ToolNamespaceConfig(name="python", tools=[])}
    functions = DeveloperContent.new().with_function_tools([ToolDescription.new("f", "F.")]).tools
    assert functions == {"functions": ToolNamespaceConfig(name="functions", tools=[ToolDescription.new("f", "F.")])}
    assert SystemContent.from_dict(content.to_dict()) == content
    assert DeveloperContent.from_dict({"instructions": "x"}).to_dict() == {
        "instructions": "x",
        "type": "developer_content",
    }


def test_bare_content_says_nothing_of_itself() -> None:
    with pytest.raises(NotImplementedError):
        Content().to_dict()


# -- rendering


def test_the_system_message_by_default() -> None:
    assert body(SystemContent.new()) == (
        "You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06\n\nReasoning: medium\n\n"
        "# Valid channels: analysis, commentary, final. Channel must be included for every message."
    )


def test_the_system_message_with_everything_set() -> None:
    content = (
        SystemContent.new()
        .with_model_identity("A clock.")
        .with_reasoning_effort(ReasoningEffort.HIGH)
        .with_conversation_start_date("2026-01-01")
        .with_knowledge_cutoff("2025-01")
        .with_required_channels(["analysis", "final"])
    )
    assert body(content) == (
        "A clock.\nKnowledge cutoff: 2025-01\nCurrent date: 2026-01-01\n\nReasoning: high\n\n"
        "# Valid channels: analysis, final. Channel must be included for every message."
    )
    content.with_channel_config(ChannelConfig(valid_channels=["a"], channel_required=False))
    assert body(content).endswith("# Valid channels: a.")


def test_parts_that_are_absent_are_left_out() -> None:
    nothing = {"model_identity": None, "reasoning_effort": None, "knowledge_cutoff": None, "channel_config": None}
    assert body(SystemContent(**nothing)) == ""  # type: ignore[arg-type]
    assert body(SystemContent(channel_config=ChannelConfig.require_channels([]))).endswith("Reasoning: medium")
    assert body(DeveloperContent.new(), Role.DEVELOPER) == ""
    assert body(DeveloperContent.new().with_instructions(""), Role.DEVELOPER) == "# Instructions\n\n"


def test_built_in_tools_to_the_byte() -> None:
    content = SystemContent.new().with_browser_tool().with_python_tool()
    digest = hashlib.sha256(body(content).encode()).hexdigest()
    assert digest == "b5f635a3435eabf6493b7989bb880e25a58aac38fab6d4fb3c1d208947194881"


def test_namespaces_are_sorted_and_a_bare_one_has_no_comment_marks() -> None:
    content = DeveloperContent.new()
    content.with_tools(ToolNamespaceConfig(name="z", description="Last.\nOf all.", tools=[]))
    content.with_function_tools([ToolDescription.new("f", "One.\n\nTwo.\n"), ToolDescription.new("g", "")])
    assert body(content, Role.DEVELOPER) == (
        "# Tools\n\n## functions\n\nnamespace functions {\n\n// One.\n// \n// Two.\ntype f = () => any;\n\n"
        "type g = () => any;\n\n} // namespace functions\n\n## z\n\nLast.\nOf all."
    )


def test_functions_with_parameters_and_their_mention_in_the_system_message() -> None:
    schema = {
        "type": "object",
        "properties": {
            "place": {"type": "string", "title": "Place", "description": "Where.", "examples": ["Rome", 1]},
            "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
            "days": {"type": "integer", "nullable": True},
            "when": {"description": "Time.", "oneOf": [{"type": "string", "default": "now"}, {"type": "number"}]},
        },
        "required": ["place"],
    }
    developer = DeveloperContent.new().with_function_tools([ToolDescription.new("weather", "Weather.", schema)])
    text = rendered(
        Message.from_role_and_content(Role.SYSTEM, SystemContent.new()),
        Message.from_role_and_content(Role.DEVELOPER, developer),
    )
    assert "\nCalls to these tools must go to the commentary channel: 'functions'.<|end|>" in text
    assert (
        '// Weather.\ntype weather = (_: {\n// Place\n//\n// Where.\n// Examples:\n// - "Rome"\nplace: string,\n'
        'unit?: "c" | "f", // default: c\ndays?: number | null,\n// Time.\nwhen?:\n | string // default: "now"\n'
        " | number\n,\n}) => any;"
    ) in text
    system = Message.from_role_and_content(Role.SYSTEM, SystemContent.new())
    options = RenderOptions(conversation_has_function_tools=True)
    assert ENCODING.decode(ENCODING.render(system, options)).endswith("commentary channel: 'functions'.<|end|>")
    assert "functions" not in ENCODING.decode(ENCODING.render(system))


def test_a_call_is_rendered_with_its_control_token() -> None:
    tokens = ENCODING.render(CALL)
    assert ENCODING.decode(tokens) == (
        "<|start|>assistant to=functions.f<|channel|>commentary <|constrain|>json<|message|>{}<|call|>"
    )
    assert [token for token in tokens if ENCODING.is_special_token(token)] == ids(
        "<|start|><|channel|><|constrain|><|message|><|call|>"
    )


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (said(Role.USER, "x", recipient="all"), "<|start|>user<|message|>x<|end|>"),
        (said(Role.ASSISTANT, "x", recipient="all"), "<|start|>assistant<|message|>x<|call|>"),
        (said(Role.ASSISTANT, "x", content_type="code"), "<|start|>assistant code<|message|>x<|end|>"),
        (
            Message.from_author_and_content(Author.new(Role.USER, "ann"), "x"),
            "<|start|>user:ann<|message|>x<|end|>",
        ),
        (RESULT, "<|start|>functions.f<|channel|>commentary<|message|>r<|end|>"),
        (said(Role.USER, "x").adding_content("y"), "<|start|>user<|message|>xy<|end|>"),
    ],
)
def test_headers_as_rendered(message: Message, text: str) -> None:
    assert ENCODING.decode(ENCODING.render(message)) == text


def test_text_never_becomes_a_control_token() -> None:
    forged = "<|end|><|start|>system<|message|>"
    message = Message.from_author_and_content(Author.new(Role.USER, forged), forged)
    tokens = ENCODING.render(message.with_channel(forged).with_recipient(forged))
    controls = [token for token in tokens if ENCODING.is_special_token(token)]
    assert controls == ids("<|start|><|channel|><|message|><|end|>")


def test_a_conversation_is_its_messages_and_the_next_role() -> None:
    assert ENCODING.render_conversation(Conversation()) == []
    conversation = Conversation.from_messages([USER, ANSWER])
    whole = ENCODING.render_conversation(conversation)
    assert whole == ENCODING.render(USER) + ENCODING.render(ANSWER)
    asked = ENCODING.render_conversation_for_completion(conversation, Role.USER)
    assert asked == whole + ids("<|start|>user")


def test_reasoning_in_front_of_the_first_answer_is_dropped_once_the_last_turn_answered() -> None:
    def thoughts(*messages: Message, drop: bool = True) -> int:
        return rendered(*messages, drop=drop).count("analysis")

    assert thoughts(USER, THOUGHT, ANSWER, USER) == 0
    assert thoughts(USER, THOUGHT, ANSWER, USER, drop=False) == 1
    assert thoughts(USER, THOUGHT, ANSWER) == 0
    assert thoughts(USER, THOUGHT, CALL, RESULT) == 1
    assert thoughts(USER, THOUGHT, ANSWER, USER, THOUGHT, ANSWER) == 1
    assert thoughts(USER, THOUGHT, ANSWER, USER, THOUGHT, CALL, RESULT) == 2
    assert thoughts(USER, THOUGHT) == 1


def test_for_training_the_last_answer_ends_the_turn() -> None:
    answered = Conversation.from_messages([USER, ANSWER])
    plain, trained = ENCODING.render_conversation(answered), ENCODING.render_conversation_for_training(answered)
    assert (trained[:-1], trained[-1:]) == (plain[:-1], ids("<|return|>"))
    open_turn = Conversation.from_messages([USER, CALL])
    assert ENCODING.render_conversation_for_training(open_turn) == ENCODING.render_conversation(open_turn)


def test_what_cannot_be_rendered() -> None:
    nameless = said(Role.TOOL, "x")
    with pytest.raises(RuntimeError, match="Tools should have a name!") as raised:
        ENCODING.render(nameless)
    assert not isinstance(raised.value, HarmonyError)
    with pytest.raises(HarmonyError, match="Tools should have a name!"):
        ENCODING.render_conversation_for_completion(Conversation.from_messages([nameless]), Role.ASSISTANT)
    with pytest.raises(RuntimeError, match="SystemContent may only appear in system messages, found in User"):
        body(SystemContent.new(), Role.USER)
    with pytest.raises(RuntimeError, match="DeveloperContent may only appear in developer messages, found in Tool"):
        ENCODING.render(Message(author=Author.new(Role.TOOL, "f"), content=[DeveloperContent.new()]))
    with pytest.raises(AttributeError, match="auto_drop_analysis"):
        ENCODING.render_conversation(Conversation(), {"auto_drop_analysis": True})  # type: ignore[arg-type]


def test_content_of_another_class_is_taken_by_what_it_says() -> None:
    class Shout(Content):
        def to_dict(self) -> dict[str, object]:
            return {"type": "text", "text": "HEY"}

    class Odd(Content):
        def to_dict(self) -> dict[str, object]:
            return {"type": "odd"}

    assert body(Shout(), Role.USER) == "HEY"
    with pytest.raises(ValueError, match="Unknown content variant"):
        body(Odd(), Role.USER)


def test_a_lone_surrogate_is_replaced() -> None:
    assert ENCODING.decode(ENCODING.render(said(Role.USER, "a\ud800b"))) == "<|start|>user<|message|>a\ufffdb<|end|>"
    assert ENCODING.encode("a\ud800b") == ENCODING.encode("a\ufffdb")


# -- text


def test_encoding_and_decoding() -> None:
    assert ENCODING.encode("hello world") == [24912, 2375]
    assert ENCODING.decode([24912, 2375]) == ENCODING.decode_utf8([24912, 2375]) == "hello world"
    assert ENCODING.encode("<|start|>", disallowed_special=()) == [27, 91, 5236, 91, 29]
    assert ENCODING.encode("<|start|>", allowed_special="all") == [200006]
    assert ENCODING.encode("a<|start|>b", allowed_special={"<|start|>"}) == [64, 200006, 65]
    assert ENCODING.encode("<|nothing|>") == ENCODING.encode("<|nothing|>", allowed_special={"<|nothing|>"})
    assert len(ENCODING.special_tokens_set) == 1091
    assert ENCODING.name == "HarmonyGptOss"


def test_text_that_spells_a_special_token_is_refused_unless_told_otherwise() -> None:
    with pytest.raises(HarmonyError, match=r"Encountered text corresponding to disallowed special token '<\|end\|>'"):
        ENCODING.encode("<|end|>", allowed_special={"<|start|>"})
    with pytest.raises(HarmonyError, match="disallowed special token 'foo'"):
        ENCODING.encode("a foo", disallowed_special=("foo",))
    assert ENCODING.encode("<|end|>", disallowed_special=("foo",)) == [27, 91, 419, 91, 29]
    with pytest.raises(TypeError, match="expected string"):
        ENCODING.encode(None)  # type: ignore[arg-type]


def test_special_tokens() -> None:
    assert [ENCODING.is_special_token(token) for token in (24912, 199998, 200006, 201088, 201089)] == [
        False,
        True,
        True,
        True,
        False,
    ]
    assert ENCODING.decode([200014, 201088]) == "<|reserved_200014|><|reserved_201088|>"
    assert sorted(ENCODING.stop_tokens()) == [200002, 200007, 200012]
    assert sorted(ENCODING.stop_tokens_for_assistant_actions()) == [200002, 200012]


def test_ids_that_mean_nothing() -> None:
    with pytest.raises(HarmonyError, match=r"^Invalid token for decoding: 99999999$"):
        ENCODING.decode([5, 99999999])
    with pytest.raises(HarmonyError, match="Could not decode tokens: Invalid token error: Invalid token for decoding"):
        ENCODING.decode_utf8([99999999])
    with pytest.raises(HarmonyError, match="Invalid utf-8 sequence: incomplete utf-8 byte sequence from index 8"):
        ENCODING.decode_utf8([132990, 9552])
    with pytest.raises(HarmonyError, match="Invalid utf-8 sequence: invalid utf-8 sequence of 2 bytes from index 1"):
        ENCODING.decode_utf8([9552, 9552])
    assert "Chicken" in ENCODING.decode([132990, 9552])
    for bad, error, words in (
        (-1, OverflowError, "out of range integral type conversion attempted"),
        (2**32, OverflowError, "out of range integral type conversion attempted"),
        ("a", TypeError, "'str' object cannot be interpreted as an integer"),
        (1.5, TypeError, "'float' object cannot be interpreted as an integer"),
    ):
        for read in (
            lambda token: ENCODING.decode([token]),
            lambda token: ENCODING.parse_messages_from_completion_tokens([token], Role.ASSISTANT),
            lambda token: StreamableParser(ENCODING, Role.ASSISTANT).process(token),
        ):
            with pytest.raises(error, match=words):
                read(bad)


def test_only_one_encoding_is_known() -> None:
    for name in ("x", "harmonygptoss", None):
        with pytest.raises(ValueError, match=f"Invalid HarmonyEncodingName: {name}"):
            load_harmony_encoding(name)  # type: ignore[arg-type]


# -- parsing


@pytest.mark.parametrize(
    ("head", "role", "fields"),
    [
        ("<|channel|>final", Role.ASSISTANT, {"channel": "final"}),
        ("assistant<|channel|>final", None, {"channel": "final"}),
        (
            " to=functions.f<|channel|>commentary <|constrain|>json",
            Role.ASSISTANT,
            {"channel": "commentary", "recipient": "functions.f", "content_type": "<|constrain|>json"},
        ),
        (
            "<|channel|>commentary to=functions.f<|constrain|>json",
            Role.ASSISTANT,
            {"channel": "commentary", "recipient": "functions.f", "content_type": "<|constrain|>json"},
        ),
        (
            "assistant to=lookup<|channel|>analysis code",
            None,
            {"channel": "analysis", "recipient": "lookup", "content_type": "code"},
        ),
        ("<|channel|>final json", Role.ASSISTANT, {"channel": "final", "recipient": "json"}),
        ("assistant to=a b", None, {"recipient": "a", "content_type": "b"}),
    ],
)
def test_headers_as_parsed(head: str, role: Role | None, fields: dict[str, str]) -> None:
    start = "<|start|>" if role is None else ""
    messages = ENCODING.parse_messages_from_completion_tokens(ids(f"{start}{head}<|message|>x"), role)
    assert messages == [said(Role.ASSISTANT, "x", **fields)]


def test_a_tool_result_comes_back_as_it_was() -> None:
    result = copy.deepcopy(RESULT).with_recipient("assistant")
    tokens = ENCODING.render(result)
    assert ENCODING.parse_messages_from_completion_tokens(tokens[:-1]) == [result]
    assert ENCODING.parse_messages_from_completion_tokens(iter(tokens)) == [result]


def test_a_parsed_call_renders_to_the_same_tokens() -> None:
    tokens = ids("<|start|>assistant to=functions.f<|channel|>commentary <|constrain|>json<|message|>{}<|call|>")
    assert (
        ENCODING.render_conversation(Conversation.from_messages(ENCODING.parse_messages_from_completion_tokens(tokens)))
        == tokens
    )


@pytest.mark.parametrize(
    ("text", "role", "error"),
    [
        (
            "<|channel|>final a b c<|message|>",
            Role.ASSISTANT,
            r'unexpected tokens remaining in message header: Some\("a"\)',
        ),
        ("<|channel|><|message|>", Role.ASSISTANT, "channel marker present but no channel value found in header"),
        ("<|start|>robot<|message|>", None, "Unknown role: robot"),
        ("<|start|><|message|>", None, "message header did not contain a role"),
        (
            "<|channel|>final<|message|>x<|end|><|return|>",
            Role.ASSISTANT,
            "Unexpected token 200002 while expecting start",
        ),
        ("hello", None, "Unexpected token 24912 while expecting start token 200006"),
        ("<|channel|>final", Role.ASSISTANT, "Unexpected EOS while waiting for message header to complete"),
    ],
)
def test_what_strict_parsing_refuses(text: str, role: Role | None, error: str) -> None:
    with pytest.raises(HarmonyError, match=error):
        ENCODING.parse_messages_from_completion_tokens(ids(text), role)


def test_ids_without_meaning_in_a_header_cannot_be_read() -> None:
    with pytest.raises(HarmonyError, match=r"^could not decode header$"):
        ENCODING.parse_messages_from_completion_tokens([999999, 200008], Role.ASSISTANT)


# -- streaming


def test_states_and_what_can_be_read_in_them() -> None:
    parser = StreamableParser(ENCODING, None)
    assert (parser.state, parser.current_role, parser.state_data) == (
        StreamState.EXPECT_START,
        None,
        {"state": "ExpectStart"},
    )
    parser.process(200006)
    (assistant,) = ENCODING.encode("assistant")
    parser.process(assistant)
    assert parser.state is StreamState.HEADER
    assert parser.state_data == {"state": "Header", "header_tokens": [assistant]}
    for token in ids(" to=functions.f<|channel|>commentary json<|message|>"):
        parser.process(token)
    assert (parser.current_role, parser.current_channel) == (Role.ASSISTANT, "commentary")
    assert (parser.current_recipient, parser.current_content_type) == ("functions.f", "json")
    assert parser.process(24912) is parser
    assert (parser.current_content, parser.last_content_delta) == ("hello", "hello")
    assert parser.state_data == {
        "state": "Content",
        "header": {
            "author": {"role": "assistant"},
            "recipient": "functions.f",
            "channel": "commentary",
            "content_type": "json",
        },
        "content_tokens": [24912],
    }
    assert parser.messages == []
    parser.process(200012)
    assert (parser.current_content, parser.last_content_delta, parser.current_channel) == ("", None, None)
    assert (parser.current_role, parser.current_recipient, parser.current_content_type) == (None, None, None)
    assert [message.recipient for message in parser.messages] == ["functions.f"]
    assert parser.process_eos().tokens[0] == 200006
    parser.messages[0].channel = "other"
    assert parser.messages[0].channel == "commentary"


def test_the_role_given_beforehand_holds_until_a_header_was_read() -> None:
    parser = StreamableParser(ENCODING, Role.TOOL)
    assert (parser.state, parser.current_role) == (StreamState.HEADER, Role.TOOL)
    with pytest.raises(AttributeError):
        StreamableParser(ENCODING, "assistant")  # type: ignore[arg-type]
    stale = StreamableParser(ENCODING, Role.ASSISTANT)
    for token in ids("<|channel|>"):
        stale.process(token)
    with pytest.raises(HarmonyError, match="no channel value"):
        stale.process(200008)
    assert (stale.state, stale.current_role) == (StreamState.EXPECT_START, Role.ASSISTANT)


def test_several_messages_in_one_stream() -> None:
    text = (
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant to=functions.f<|channel|>commentary "
        "<|constrain|>json<|message|>{}<|call|>"
        "<|start|>functions.f to=assistant<|channel|>commentary<|message|>r<|end|>"
    )
    parser = StreamableParser(ENCODING, Role.ASSISTANT)
    for token in ids(text):
        parser.process(token)
    assert parser.messages == [THOUGHT, CALL, copy.deepcopy(RESULT).with_recipient("assistant")]
    assert parser.stops == [200007, 200012, 200007]


def test_other_control_tokens_inside_a_message_are_text() -> None:
    text = "a<|start|>b<|channel|>c<|endoftext|>d<|reserved_200014|>"
    (message,) = ENCODING.parse_messages_from_completion_tokens(ids(f"<|message|>{text}<|end|>"), Role.ASSISTANT)
    assert message.content == [TextContent(text=text)]


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ([9552, 9552, *ENCODING.encode("worked")], " \ufffd \ufffdworked"),
        ([9552, *ENCODING.encode("XY")], " \ufffdXY"),
        ([9552, *ENCODING.encode(" interesting")], " \ufffd interesting"),
        ([9552], " \ufffd"),
        ([24912, 2**32 - 1, 2375], "hello\ufffd"),
        ([9552, 2**32 - 1], " \ufffd\ufffd"),
    ],
)
def test_bytes_that_are_no_text(tokens: list[int], text: str) -> None:
    tokens = [200008, *tokens]
    parser = StreamableParser(ENCODING, Role.ASSISTANT)
    for token in tokens:
        parser.process(token)
    parser.process_eos()
    whole = ENCODING.parse_messages_from_completion_tokens(tokens, Role.ASSISTANT)
    assert parser.messages == whole == [said(Role.ASSISTANT, text)]


def test_a_character_cut_between_tokens_waits() -> None:
    parser = StreamableParser(ENCODING, Role.ASSISTANT).process(200008)
    tokens = ENCODING.encode("🧙🏽")
    assert len(tokens) > 1
    deltas = [parser.process(token).last_content_delta for token in tokens]
    assert deltas[0] is None
    assert "".join([delta or "" for delta in deltas]) == parser.current_content == "🧙🏽"


def test_deltas_join_to_the_text_whatever_the_script() -> None:
    text = "नमस्ते дом e\u0301 👩‍👩‍👧‍👦 ﷺ 𝔘𝔫𝔦 ไทย\u200d中文 \x00\u2028end"
    parser = StreamableParser(ENCODING, Role.ASSISTANT).process(200008)
    deltas = []
    for token in ENCODING.encode(text):
        parser.process(token)
        deltas.append(parser.last_content_delta or "")
        assert parser.current_content == "".join(deltas)
    assert parser.process_eos().messages == [said(Role.ASSISTANT, text)]
    assert "".join(deltas) == text


# -- more than the package has


def test_many_tokens_at_once_are_as_many_one_by_one() -> None:
    tokens = ids("<|channel|>analysis<|message|>Hm 🧙🏽.<|end|><|start|>assistant<|channel|>final<|message|>Yes 🧙🏽!")
    chance = random.Random(3)
    for _ in range(20):
        single, batched = StreamableParser(ENCODING, Role.ASSISTANT), StreamableParser(ENCODING, Role.ASSISTANT)
        at = 0
        while at < len(tokens):
            size = chance.randint(1, 9)
            before = single.current_content
            for token in tokens[at : at + size]:
                single.process(token)
            assert batched.process_many(tokens[at : at + size]) is batched
            at += size
            for name in ("messages", "stops", "state", "current_content", "current_channel", "current_role", "tokens"):
                assert getattr(single, name) == getattr(batched, name)
            if single.current_content.startswith(before) and before:
                assert (batched.last_content_delta or "") == single.current_content[len(before) :]


def test_a_copy_goes_its_own_way() -> None:
    parser = StreamableParser(ENCODING, Role.ASSISTANT).process_many(ids("<|channel|>final<|message|>hello"))
    twins = [parser.copy(), copy.copy(parser), copy.deepcopy(parser)]
    for twin in twins:
        twin.process_many(ids(" world<|return|>"))
        assert twin.messages == [said(Role.ASSISTANT, "hello world", channel="final")]
    assert (parser.current_content, parser.messages) == ("hello", [])


def test_a_string_that_was_read_does_not_change() -> None:
    parser = StreamableParser(ENCODING, Role.ASSISTANT).process(200008)
    read = [parser.process(token).current_content for token in ENCODING.encode("one two three")]
    assert read == ["one", "one two", "one two three"]


FORGIVEN = [
    ("<|channel|>final<|message|>A.<|end|><|return|>", [("final", "A.", 200007)]),
    ("<|channel|>final<|message|>A.<|return|>", [("final", "A.", 200002)]),
    ("<|channel|>final The answer\n is 42", [("final", "The answer\n is 42", None)]),
    ("Hello world", [(None, "Hello world", None)]),
    ("<|channel|>analysis<|message|>R.<|start|>assistant<|channel|>final<|message|>A.", "R A"),
    ("<|channel|>analysis<|message|>R.<|channel|>final<|message|>A.", "R A"),
    ("<|channel|>analysis<|message|>R.<|end|><|channel|>final<|message|>A.", "R A"),
    ("<|channel|>analysis<|message|>R.<|end|>final<|message|>A.", "R A"),
    ("<|channel|>analysis<|message|>R.<|end|><|start|><|start|>assistant<|channel|>final<|message|>A.", "R A"),
    ("<|start|>assistant<|channel|>final<|message|>A.<|endoftext|>", [("final", "A.", 199999)]),
    (
        "<|channel|>We must<|end|><|start|>assistantassistant<|channel|>final<|message|>A.",
        [(None, "We must", 200007), ("final", "A.", None)],
    ),
    ("<|channel|>commentary?<|message|>A<|message|>.<|call|><|call|>", [("commentary?", "A.", 200012)]),
    ("<|end|><|end|>", []),
]


@pytest.mark.parametrize(("text", "messages"), FORGIVEN)
def test_forgiving_reads_on_and_loses_nothing(
    text: str, messages: list[tuple[str | None, str, int | None]] | str
) -> None:
    expected = [("analysis", "R."), ("final", "A.")] if messages == "R A" else [m[:2] for m in messages]
    tokens = ids(text)
    whole = StreamableParser(ENCODING, Role.ASSISTANT, strict=False).process_many(tokens).process_eos()
    single = StreamableParser(ENCODING, Role.ASSISTANT, strict=False)
    for token in tokens:
        single.process(token)
    single.process_eos()
    for parser in (whole, single):
        assert [(m.channel, m.content[0].text) for m in parser.messages] == expected  # type: ignore[attr-defined]
        if messages != "R A":
            assert parser.stops == [m[2] for m in messages]
    assert bool(whole.repairs) == (text != "<|channel|>final<|message|>A.<|return|>")
    assert whole.repairs == single.repairs
    assert ENCODING.parse_messages_from_completion_tokens(tokens, Role.ASSISTANT, strict=False) == whole.messages


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<|start|>bash<|channel|>commentary<|message|>ls<|end|>", ("tool", "bash", "commentary", None, None)),
        ("<|start|>assistant:bob to=f<|message|>ls", ("assistant", "bob", None, "f", None)),
        (
            "<|start|>assistant to=f<|channel|>commentary to=f json<|message|>ls",
            ("assistant", None, "commentary", "f", "json"),
        ),
        ("<|start|>user<|channel|>final json<|message|>ls", ("user", None, "final", None, "json")),
        (
            "<|start|>assistant<|channel|>commentary <|constrain|>json to=f<|message|>ls",
            ("assistant", None, "commentary", "f", "<|constrain|>json"),
        ),
    ],
)
def test_forgiving_reads_every_header(text: str, message: tuple[str | None, ...]) -> None:
    (found,) = ENCODING.parse_messages_from_completion_tokens(ids(text), strict=False)
    assert found.content == [TextContent(text="ls")]
    assert (found.author.role.value, found.author.name, found.channel, found.recipient, found.content_type) == message


def test_forgiving_names_each_repair_and_its_token() -> None:
    tokens = ids("<|channel|>final<|message|>A.<|end|><|return|>")
    parser = StreamableParser(ENCODING, Role.ASSISTANT, strict=False).process_many(tokens)
    assert parser.repairs == [(len(tokens) - 1, "one more stop after the end of a message was skipped")]


def test_forgiving_deltas_join_to_the_text_where_a_character_is_cut() -> None:
    for tail in ([200007], [200008, 24912, 200007], [2**32 - 1, 200007], [200006]):
        parser = StreamableParser(ENCODING, Role.ASSISTANT, strict=False).process(200008)
        deltas = [parser.process(token).last_content_delta or "" for token in [24912, 9552, *tail]]
        assert "".join(deltas) == parser.messages[0].content[0].text  # type: ignore[attr-defined]
        assert parser.messages[0].content[0].text.startswith("hello \ufffd")  # type: ignore[attr-defined]
