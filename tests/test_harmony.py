"""harmony beyond the corpus: prompts in every setting, custom and built-in tools, headers, repairs, frames, masks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isogloss.constraints import accepts
from isogloss.dialects import get_dialect
from isogloss.dialects._harmony_header import Header, header_length, read_header
from isogloss.dialects._harmony_scanner import LONGEST_HEADER, HarmonyScanner
from isogloss.dialects.harmony import Harmony
from isogloss.errors import UnrepresentableError
from isogloss.events import Piece, collect
from isogloss.messages import (
    AssistantMessage,
    Conversation,
    DeveloperMessage,
    ResponseFormat,
    SystemMessage,
    TextGrammar,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from isogloss.testing import check_output, check_round_trip, rendered_turn, scan
from isogloss.tokenizers import o200k_harmony

DIALECT = get_dialect("harmony")
assert isinstance(DIALECT, Harmony)
TOKENIZER = o200k_harmony()

WEATHER = Tool("get_weather", "The weather.", {"type": "object", "properties": {"city": {"type": "string"}}})
PYTHON = Tool.custom("python", "Runs code.")
SEARCH = Tool("browser.search", "Searches.", {"type": "object", "properties": {"query": {"type": "string"}}})
PATCH = Tool.custom("patch", "Changes a file.")
USER = UserMessage("Go on.")


def prompt(*messages: object, **options: object) -> str:
    return DIALECT.render(Conversation(messages, **options)).text  # type: ignore[arg-type]


def scanner_of(output: str, tools: tuple[Tool, ...] = (), **options: str) -> HarmonyScanner:
    scanner = DIALECT.scanner(tools, **options)
    assert isinstance(scanner, HarmonyScanner)
    scanner.feed(output)
    scanner.finish()
    return scanner


def repairs(output: str, tools: tuple[Tool, ...] = ()) -> list[str]:
    return [repair.reason for repair in scanner_of(output, tools).repairs]


# -- prompts


def test_the_system_message_names_what_it_is_told_to() -> None:
    dialect = Harmony(identity="You are a clock.", knowledge_cutoff=None, current_date="2026-03-01")
    text = dialect.render(Conversation((USER,), reasoning_effort="high")).text
    assert text == (
        "<|start|>system<|message|>You are a clock.\nCurrent date: 2026-03-01\n\nReasoning: high\n\n"
        "# Valid channels: analysis, commentary, final. Channel must be included for every message.<|end|>"
        "<|start|>user<|message|>Go on.<|end|><|start|>assistant"
    )
    bare = Harmony(identity=None, knowledge_cutoff=None)
    assert bare.render(Conversation((USER,))).text.startswith("<|start|>system<|message|>Reasoning: medium\n\n")


@pytest.mark.parametrize(
    ("effort", "told"),
    [(None, "medium"), ("none", "low"), ("minimal", "low"), ("low", "low"), ("medium", "medium"), ("max", "high")],
)
def test_every_effort_is_one_of_the_three_that_the_model_knows(effort: str | None, told: str) -> None:
    assert f"\n\nReasoning: {told}\n\n" in prompt(USER, reasoning_effort=effort)


def test_leading_instructions_share_one_developer_message_and_later_ones_keep_their_place() -> None:
    text = prompt(SystemMessage("Be brief."), DeveloperMessage("Be kind."), USER, DeveloperMessage("Be gone."), USER)
    parts = text.split("<|start|>developer<|message|>")
    assert [part.split("<|end|>")[0] for part in parts[1:]] == [
        "# Instructions\n\nBe brief.\n\nBe kind.",
        "# Instructions\n\nBe gone.",
    ]


def test_no_instructions_and_no_tools_make_no_developer_message() -> None:
    assert "developer" not in prompt(USER)
    assert "developer" not in prompt(USER, tools=(WEATHER,), tool_choice="none")
    assert "functions" not in prompt(USER, tools=(WEATHER,), tool_choice="none")


def test_a_response_format_stands_at_the_end_of_the_developer_message() -> None:
    form = ResponseFormat.json_schema({"type": "object", "properties": {"a": {}}}, "answer", "One.\nTwo.")
    text = prompt(SystemMessage("Hi."), USER, tools=(WEATHER,), response_format=form)
    told = text.split("<|start|>developer<|message|>")[1].split("<|end|>")[0]
    assert told.startswith(
        "# Instructions\n\nHi.\n\n# Tools\n\n## functions\n\nnamespace functions {\n\n// The weather.\n"
    )
    assert told.endswith(
        "} // namespace functions\n\n# Response Formats\n\n## answer\n\n// One.\n// Two.\n"
        '{"type":"object","properties":{"a":{}}}'
    )
    alone = prompt(USER, response_format=ResponseFormat("json_object"))
    assert '<|message|># Response Formats\n\n## response\n\n{"type":"object"}<|end|>' in alone
    assert "Response Formats" not in prompt(USER, response_format=ResponseFormat())


def test_a_custom_tool_takes_a_string_as_it_is() -> None:
    told = prompt(USER, tools=(PATCH,))
    assert "// Changes a file.\n// Write the input as it is, not as JSON.\ntype patch = (_: string) => any;" in told


def test_built_in_tools_are_told_of_in_the_system_message() -> None:
    text = prompt(USER, tools=(PYTHON, SEARCH, WEATHER))
    system = text.split("<|end|>")[0]
    assert system.index("\n\n# Tools\n\n## browser\n\n// Tool for browsing.") < system.index(
        "\n\n## python\n\nUse this"
    )
    assert "type search = (_: {\nquery: string,\ntopn?: number, // default: 10\n" in system
    assert "type open" not in system
    assert "python" not in text.split("<|start|>developer")[1]
    assert text.endswith("<|start|>assistant")


def test_a_function_named_python_is_not_the_built_in_one() -> None:
    own = Tool("python", "", {"type": "object", "properties": {"code": {"type": "string"}}})
    text = prompt(USER, tools=(own,))
    assert "## python" not in text
    assert "type python = (_: {\ncode?: string,\n}) => any;" in text
    called = DIALECT.render_calls([ToolCall("", "python", {"code": "1"})], [own])
    assert "commentary to=functions.python <|constrain|>json<|message|>" in called


def test_calls_and_results_of_built_in_tools_are_on_the_analysis_channel() -> None:
    calls = (ToolCall("1", "python", {"input": "print(1)"}), ToolCall("2", "browser.search", {"query": "x"}))
    results = (ToolMessage("1", "python", "1"), ToolMessage("2", "browser.search", "[0] x"))
    text = prompt(USER, AssistantMessage(tool_calls=calls), *results, tools=(PYTHON, SEARCH))
    assert text.partition("Go on.<|end|>")[2] == (
        "<|start|>assistant<|channel|>analysis to=python code<|message|>print(1)<|call|>"
        '<|start|>assistant<|channel|>analysis to=browser.search code<|message|>{"query":"x"}<|call|>'
        "<|start|>python to=assistant<|channel|>analysis<|message|>1<|end|>"
        "<|start|>browser.search to=assistant<|channel|>analysis<|message|>[0] x<|end|><|start|>assistant"
    )


def test_the_recipient_may_stand_in_front_of_the_channel() -> None:
    first = Harmony(recipient_first=True)
    call = AssistantMessage(tool_calls=(ToolCall("1", "get_weather", {"city": "Paris"}),))
    text = first.render(Conversation((USER, call), (WEATHER,)), generation_prompt=False).text
    assert text.endswith(
        "<|start|>assistant to=functions.get_weather<|channel|>commentary <|constrain|>json<|message|>"
        '{"city":"Paris"}<|call|>'
    )
    check_round_trip(first, call, (WEATHER,))


def test_a_name_that_no_header_can_carry_is_refused() -> None:
    with pytest.raises(UnrepresentableError, match="A recipient cannot carry the name 'a b'"):
        DIALECT.render_calls([ToolCall("", "a b", {})])


def test_an_empty_turn_is_an_empty_answer() -> None:
    turn = "<|start|>assistant<|channel|>final<|message|><|end|>"
    assert turn in prompt(USER, AssistantMessage(), USER)
    assert turn in prompt(USER, AssistantMessage(reasoning="Hm."), USER)
    assert turn not in prompt(USER, AssistantMessage(reasoning="Hm."))


def test_reasoning_goes_when_the_user_speaks_again_and_stays_in_an_open_tool_loop() -> None:
    def kept(*messages: object) -> list[str]:
        return [word for word in ("one", "two") if f"analysis<|message|>{word}<|end|>" in prompt(*messages)]

    first, second = AssistantMessage("f", reasoning="one"), AssistantMessage("g", reasoning="two")
    call = AssistantMessage(reasoning="two", tool_calls=(ToolCall("1", "get_weather", {}),))
    result = ToolMessage("1", "get_weather", "r")
    assert kept(USER, first) == ["one"]
    assert kept(USER, first, USER) == []
    assert kept(USER, first, USER, second) == ["two"]
    assert kept(USER, first, USER, second, USER) == []
    assert kept(USER, first, USER, call, result) == ["two"]
    assert kept(USER, call, result, first) == ["one", "two"]
    assert kept(USER, call, result, first, USER) == []


def test_training_ends_the_last_answer_as_the_model_must() -> None:
    answered = Conversation((USER, AssistantMessage("A.", reasoning="R.")))
    text = DIALECT.render_for_training(answered).text
    assert text.endswith("analysis<|message|>R.<|end|><|start|>assistant<|channel|>final<|message|>A.<|return|>")
    called = Conversation((USER, AssistantMessage(tool_calls=(ToolCall("1", "f", {}),))))
    assert DIALECT.render_for_training(called).text.endswith("{}<|call|>")
    asked = Conversation((USER,))
    assert DIALECT.render_for_training(asked).text.endswith("Go on.<|end|>")


def test_the_loss_mask_marks_what_the_model_says_behind_its_prompt() -> None:
    call = AssistantMessage("Hm.", reasoning="R.", tool_calls=(ToolCall("1", "f", {}),))
    messages = (USER, call, ToolMessage("1", "f", "r"), AssistantMessage("A."))
    rendered = DIALECT.render_for_training(Conversation(messages))
    ids, mask = rendered.tokens(TOKENIZER), rendered.loss_mask(TOKENIZER)
    runs: list[str] = []
    for position, (token, is_said) in enumerate(zip(ids, mask, strict=True)):
        if is_said and not mask[position - 1]:
            runs.append("")
        if is_said:
            runs[-1] += TOKENIZER.decode([token])
    assert runs == [
        "<|channel|>analysis<|message|>R.<|end|><|start|>assistant<|channel|>commentary<|message|>Hm.<|end|>"
        "<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>",
        "<|channel|>final<|message|>A.<|return|>",
    ]
    said_by = dict(zip(rendered.message_indices(TOKENIZER), ids, strict=True))
    assert set(said_by) == {-1, 0, 1, 2, 3}


def test_control_tokens_of_a_prompt_are_ids_and_those_in_content_are_text() -> None:
    rendered = DIALECT.render(Conversation((UserMessage("<|end|><|start|>system"),)))
    ids = rendered.tokens(TOKENIZER)
    assert [TOKENIZER.decode([token]) for token in ids if token in TOKENIZER.special_tokens.values()] == [
        *["<|start|>", "<|message|>", "<|end|>"] * 2,
        "<|start|>",
    ]
    assert TOKENIZER.decode(ids) == rendered.text


def test_in_band_the_tools_and_calls_are_told_in_plain_messages() -> None:
    call = AssistantMessage("Look.", tool_calls=(ToolCall("1", "get_weather", {"city": "Paris"}),))
    told = DIALECT.inband(Conversation((USER, call, ToolMessage("1", "get_weather", "Sun.")), (WEATHER,)))
    system, _, said, result = told.messages
    assert "## How to call a tool" in system.text
    assert '"name":"get_weather"' in system.text
    written = "<|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
    assert said.text == "Look.\n" + written + '{"city":"Paris"}<|call|>'
    assert result.text == "<|start|>functions.get_weather to=assistant<|channel|>commentary<|message|>Sun.<|end|>"
    found = DIALECT.parse(said.text, (WEATHER,))
    assert (found.text, [(call.name, call.arguments) for call in found.tool_calls]) == (
        "Look.\n",
        [("get_weather", {"city": "Paris"})],
    )
    example = next(line for line in DIALECT.guide.splitlines() if line.startswith("<|start|>"))
    assert DIALECT.parse(example).tool_calls[0].arguments == {"KEY": "VALUE", "OTHER": 2}


def test_models_and_templates_of_the_family_are_known() -> None:
    assert DIALECT.detects("openai/gpt-oss-120b")
    assert DIALECT.detects("gpt_oss:20b".replace("_", "-"))
    assert DIALECT.detects("{{- '<|start|>' + role + '<|channel|>' }}")
    assert not DIALECT.detects("gpt-4o")
    assert not DIALECT.detects("{{ '<|im_start|>' }}")


def test_a_prompt_that_opened_the_reasoning_says_so() -> None:
    assert DIALECT.starts_in("<|start|>assistant<|channel|>analysis<|message|>") == "reasoning"
    assert DIALECT.starts_in("<|start|>assistant") == "text"
    assert DIALECT.starts_in("<|channel|>analysis<|message|> ") == "text"


# -- free text as arguments


def test_the_input_of_a_custom_tool_is_its_message() -> None:
    call = ToolCall("", "patch", {"input": '*** {"a": 1}\n\\ " é🙂'})
    output = check_round_trip(DIALECT, AssistantMessage(tool_calls=(call,)), (PATCH,))
    assert output == f"<|channel|>commentary to=functions.patch code<|message|>{call.arguments['input']}<|call|>"
    check_output(DIALECT, output, (PATCH,))


def test_an_input_that_spells_a_marker_goes_as_json() -> None:
    call = ToolCall("", "patch", {"input": "say <|end|>"})
    output = check_round_trip(DIALECT, AssistantMessage(tool_calls=(call,)), (PATCH,))
    assert '<|constrain|>json<|message|>{"input":"say <|end|>"}<|call|>' in output
    other = ToolCall("", "patch", {"text": "a"})
    assert check_round_trip(DIALECT, AssistantMessage(tool_calls=(other,)), (PATCH,)).endswith('{"text":"a"}<|call|>')


@pytest.mark.parametrize(
    ("head", "body", "arguments"),
    [
        ("to=functions.run code", "print(1)", {"code": "print(1)"}),
        ("to=functions.run code", ' {"code": "1"}', {"code": "1"}),
        ("to=functions.run <|constrain|>json", "print(1)", None),
        ("to=functions.patch", '{"input": "x"}', {"input": '{"input": "x"}'}),
        ("to=functions.patch json", '{"input": "x"}', {"input": "x"}),
        ("to=python", "{1: 2}", {"input": "{1: 2}"}),
        ("to=browser.open code", '{"id": 3}', {"id": 3}),
        ("to=browser.open code", "3", None),
    ],
)
def test_what_a_body_is_depends_on_the_tool_and_the_type(
    head: str, body: str, arguments: dict[str, object] | None
) -> None:
    run = Tool("run", "", {"type": "object", "properties": {"code": {"type": "string"}}})
    output = f"<|channel|>commentary {head}<|message|>{body}<|call|>"
    found = collect(check_output(DIALECT, output, (run, PATCH)))
    assert [call.arguments for call in found.tool_calls] == ([] if arguments is None else [arguments])
    assert [broken.raw for broken in found.malformed] == ([output] if arguments is None else [])


def test_text_of_a_call_whose_end_was_not_seen_is_no_call() -> None:
    found = DIALECT.parse("<|channel|>analysis to=python code<|message|>print(1)")
    assert found.tool_calls == ()
    assert found.malformed[0].reason == "the call was cut short"


# -- control tokens by id


def test_a_control_token_inside_a_string_ends_the_call() -> None:
    control = DIALECT.markers.special
    pieces = [
        Piece("<|channel|>", True),
        Piece("commentary to=functions.f"),
        Piece("<|message|>", True),
        Piece('{"a": "say <|end|> or '),
        Piece("<|call|>", True),
        Piece("<|start|>", True),
        Piece("assistant"),
        Piece("<|channel|>", True),
        Piece("final"),
        Piece("<|message|>", True),
        Piece("Text that spells <|return|>, and a reserved "),
        Piece("<|reserved_200014|>", True),
        Piece(" token."),
        Piece("<|return|>", True),
    ]
    found = collect(scan(DIALECT, pieces, control=control))
    assert found.text == "Text that spells <|return|>, and a reserved <|reserved_200014|> token."
    assert found.tool_calls == ()
    assert found.malformed[0].raw.endswith('{"a": "say <|end|> or <|call|>')


# -- how messages were framed


def test_each_message_says_how_it_was_framed() -> None:
    output = (
        "<|channel|>analysis<|message|>R.<|end|><|start|>assistant to=functions.f<|channel|>commentary json<|message|>"
        "{}<|call|><|start|>assistant<|channel|>final<|message|>A."
    )
    frames = scanner_of(output).messages
    assert [(m.channel, m.recipient, m.content_type, m.stop) for m in frames] == [
        ("analysis", None, None, "<|end|>"),
        ("commentary", "functions.f", "json", "<|call|>"),
        ("final", None, None, None),
    ]
    assert "".join([output[m.start : m.end] for m in frames]) == output


@pytest.mark.parametrize(
    ("output", "noted"),
    [
        ("<|channel|>final<|message|>A.<|return|>", []),
        ("<|start|>assistant<|channel|>final<|message|>A.<|return|>", []),
        ("A.", []),
        ("<|channel|>final<|message|>A.<|end|><|return|>", ["one more stop after the end of a message was skipped"]),
        (
            "<|channel|>final<|message|>A.<|return|><|return|><|end|>",
            ["one more stop after the end of a message was skipped"] * 2,
        ),
        ("<|start|><|start|>assistant<|channel|>final<|message|>A.", ["one <|start|> too many was skipped"]),
        ("<|channel|>final A.", ["<|message|> is missing"]),
        (
            "<|channel|>analysis<|message|>R.<|start|>assistant<|channel|>final<|message|>A.",
            ["<|end|> is missing"],
        ),
        ("<|channel|>analysis<|message|>R.<|end|><|channel|>final<|message|>A.", ["<|start|> is missing"]),
        (
            "<|channel|>final<|message|>A<|message|>.",
            ["a marker that has no place in a message was skipped"],
        ),
        ("<|channel|>fin<|message|>A.", ["'fin' is not one of the channels"]),
        ("<|channel|>final ?? json<|message|>A.", ["'??' in the header was skipped"]),
        ("<|channel|><|channel|>final<|message|>A.", ["a channel marker without a channel was skipped"]),
        ("assistant<|channel|>final<|message|>A.", ["the role was given twice"]),
        ("<|start|>assistant final<|message|>A.", ["the channel was written as a word, without its marker"]),
        ("<|start|><|channel|>final<|message|>A.", ["the header does not say who speaks"]),
        (
            "<|channel|>commentary to=assistant<|channel|>final<|message|>A.",
            ["the channel was given twice, the last one counts"],
        ),
    ],
)
def test_what_was_put_right_is_said_and_nothing_is_lost(output: str, noted: list[str]) -> None:
    assert repairs(output) == noted
    assert DIALECT.parse(output).text == "A."
    assert DIALECT.parse(output).malformed == ()


def test_a_repair_says_where() -> None:
    output = "<|channel|>final<|message|>A.<|end|><|return|>"
    (repair,) = scanner_of(output).repairs
    assert (repair.raw, repair.start) == ("<|return|>", output.index("<|return|>"))


def test_a_header_is_never_held_for_long() -> None:
    scanner = DIALECT.scanner()
    scanner.feed("<|channel|>final")
    said = "".join([getattr(event, "text", "") for event in scanner.feed(" word" * LONGEST_HEADER)])
    assert said == (" word" * LONGEST_HEADER)[1:]


# -- headers


@pytest.mark.parametrize(
    ("text", "role", "header"),
    [
        ("user", "", Header("user")),
        ("user:alice", "", Header("user", "alice")),
        ("functions.f to=assistant<|channel|>commentary", "", Header("tool", "functions.f", "commentary", "assistant")),
        ("bash<|channel|>commentary", "", Header("tool", "bash", "commentary")),
        ("<|channel|>final", "assistant", Header("assistant", None, "final")),
        (" to=f<|channel|>analysis code", "assistant", Header("assistant", None, "analysis", "f", "code")),
        (
            "<|channel|>final <|constrain|>json",
            "assistant",
            Header("assistant", None, "final", None, "<|constrain|>json"),
        ),
        (
            "<|channel|>commentary to=f <|constrain|>write: a b.",
            "assistant",
            Header("assistant", None, "commentary", "f", "<|constrain|>write: a b."),
        ),
        (
            "assistantassistant to=a<|channel|>commentary to=b json",
            "",
            Header("assistant", None, "commentary", "b", "json"),
        ),
    ],
)
def test_headers(text: str, role: str, header: Header) -> None:
    assert read_header(text, role)[0] == header


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("<|channel|>final The answer", "The answer"),
        ("<|channel|>We need", "We need"),
        (" to=functions.f<|channel|>commentary <|constrain|>json{}", "{}"),
        ("assistant Hello", "Hello"),
        ("assistants are", "assistants are"),
        ("<|channel|>finally", "finally"),
        ("Hello", "Hello"),
    ],
)
def test_where_a_header_without_its_end_ends(text: str, rest: str) -> None:
    assert text[header_length(text) :] == rest


# -- grammar


def test_a_pattern_binds_the_input_of_a_custom_tool() -> None:
    tool = Tool.custom("pick", "", TextGrammar("regex", "[a-c]{2}"))
    constraint = DIALECT.constraint((tool,), "required", reasoning=False)
    head = "<|channel|>commentary to=functions.pick code<|message|>"
    assert accepts(constraint, head + "ab<|call|>").is_accepted
    assert not accepts(constraint, head + "ad<|call|>").is_accepted


def test_the_constraint_holds_on_the_model_s_own_vocabulary() -> None:
    constraint = DIALECT.constraint((WEATHER, PYTHON))
    turns = [
        AssistantMessage("A.", reasoning="R."),
        AssistantMessage("Hm.", tool_calls=(ToolCall("", "get_weather", {"city": "Paris"}),)),
        AssistantMessage(reasoning="R.", tool_calls=(ToolCall("", "python", {"input": "1 < 2"}),)),
    ]
    for turn in turns:
        history = Conversation((USER, turn), (WEATHER, PYTHON))
        asked = DIALECT.render(Conversation((USER,), (WEATHER, PYTHON))).tokens(TOKENIZER)
        said = DIALECT.render(history, generation_prompt=False).tokens(TOKENIZER)[len(asked) :]
        matcher = constraint.matcher(TOKENIZER)
        assert matcher.accept_all(said) == len(said), TOKENIZER.decode(said)
        assert matcher.is_complete


def test_the_grammar_lets_calls_follow_one_another_where_no_engine_stops() -> None:
    two = AssistantMessage(tool_calls=(ToolCall("", "get_weather", {}), ToolCall("", "get_weather", {})))
    output = rendered_turn(DIALECT, two, (WEATHER,))[1]
    earlier, call, last = output.partition("<|call|>")
    assert accepts(DIALECT.constraint((WEATHER,)), f"{earlier}<|end|>{last}").is_accepted
    assert not accepts(DIALECT.constraint((WEATHER,)), f"{earlier}{call}{last.removesuffix(call)}<|end|>").is_accepted
    assert not accepts(DIALECT.constraint((WEATHER,), parallel=False), output).is_accepted


# -- reports from the field

VECTORS = Path(__file__).parents[1].parent / "shared" / "vectors" / "harmony-bugs.json"


@pytest.mark.skipif(not VECTORS.exists(), reason="the collection of reported faults is not here")
def test_reported_faults_scan_without_loss() -> None:
    entries = [entry for entry in json.loads(VECTORS.read_text()) if entry["kind"] == "parse"]
    assert entries
    for entry in entries:
        found = collect(check_output(DIALECT, entry["input"], (Tool("shell"),)))
        said = found.text + found.reasoning + "".join([broken.raw for broken in found.malformed])
        said += "".join([json.dumps(call.arguments) for call in found.tool_calls])
        for word in ("hi", "ls", "Answer", "Hello world", "think", "ans", "We need to answer", "The answer is 42"):
            assert word not in entry["input"] or word in said, entry["input"]


@pytest.mark.parametrize("length", [LONGEST_HEADER - 12, *range(LONGEST_HEADER - 2, LONGEST_HEADER + 3)])
@pytest.mark.parametrize(
    "rest", ["<|message|>x<|end|>", "<|channel|>final<|message|>x", " to=functions.f<|message|>{}"]
)
def test_the_longest_header_is_the_same_at_every_cut(length: int, rest: str) -> None:
    check_output(DIALECT, "<|channel|>final".ljust(length - 1) + "a" + rest, most=40)
