"""The laws that every dialect keeps, on made-up turns and on any text at all."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from isogloss.dialects import dialect_names, get_dialect
from isogloss.errors import UnrepresentableError
from isogloss.events import Piece
from isogloss.messages import (
    AssistantMessage,
    Conversation,
    ResponseFormat,
    SystemMessage,
    Tool,
    ToolCall,
    ToolChoice,
    ToolMessage,
    UserMessage,
)
from isogloss.testing import (
    check_accepted,
    check_bounded_work,
    check_conservation,
    check_cuts,
    check_generated,
    check_no_forgery,
    check_output,
    check_reconstruction,
    check_round_trip,
    read_corpus,
    scan,
)
from isogloss.tokenizers import byte_level

CORPUS = Path(__file__).parent / "corpus"
EVERY_DIALECT = pytest.mark.parametrize("name", dialect_names())
EXAMPLES = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)

ALL_MARKERS = sorted({marker for name in dialect_names() for marker in get_dialect(name).markers.all})

TOOL = Tool(
    "write_file",
    "Write a file",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "count": {"type": "integer"},
            "ratio": {"type": "number"},
            "force": {"type": "boolean"},
            "mode": {"enum": ["a", "w", 1, None]},
            "owner": {"type": ["string", "null"]},
            "lines": {"type": "array", "items": {"type": "string"}},
            "extra": {"type": "object"},
            "any": {},
        },
    },
)
FREE = Tool("free", "Anything", {"type": "object"})
TOOLS = (TOOL, FREE)

TEXT_CHARACTERS = st.characters(exclude_categories=("Cs",))


def texts(name: str) -> st.SearchStrategy[str]:
    """Text that likes to hold pieces of the dialect's own markup."""
    own = st.sampled_from(get_dialect(name).markers.all)
    return st.lists(
        st.one_of(own, st.text(TEXT_CHARACTERS, max_size=6), st.sampled_from(list('<>{}[]"\\`\n| '))), max_size=8
    ).map("".join)


def json_values(name: str) -> st.SearchStrategy[Any]:
    scalars = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**20), 10**20),
        st.floats(allow_nan=False, allow_infinity=False),
        texts(name),
        st.sampled_from(["", "5", "007", "null", "true", "True", "1.5", '{"a":1}', '"x"', " x ", "\n"]),
    )
    return st.recursive(
        scalars,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
        max_leaves=8,
    )


keys = st.text(string.ascii_letters + "_-. é", min_size=1, max_size=8)


def calls(name: str) -> st.SearchStrategy[ToolCall]:
    typed = st.fixed_dictionaries(
        {},
        optional={
            "path": texts(name),
            "count": st.integers(-(10**9), 10**9),
            "ratio": st.floats(allow_nan=False, allow_infinity=False),
            "force": st.booleans(),
            "mode": st.sampled_from(["a", "w", 1, None]),
            "owner": st.one_of(st.none(), texts(name)),
            "lines": st.lists(texts(name), max_size=3),
            "extra": st.dictionaries(keys, json_values(name), max_size=3),
            "any": json_values(name),
        },
    )
    untyped = st.dictionaries(keys, json_values(name), max_size=3)
    return st.one_of(
        typed.map(lambda arguments: ToolCall("", "write_file", arguments)),
        untyped.map(lambda arguments: ToolCall("", "free", arguments)),
        untyped.map(lambda arguments: ToolCall("", "unknown_tool", arguments)),
    )


plain = st.text(string.ascii_letters + " \n.,é🙂", max_size=20).map(str.strip)


@EVERY_DIALECT
def test_laws_2_and_4_round_trip_and_reconstruction(name: str) -> None:
    dialect = get_dialect(name)
    carried = []

    @EXAMPLES
    @given(plain, plain, st.lists(calls(name), max_size=3))
    def check(text: str, reasoning: str, made: list[ToolCall]) -> None:
        message = AssistantMessage(text=text, reasoning=reasoning, tool_calls=tuple(made))
        try:
            output = check_round_trip(dialect, message, TOOLS)
        except UnrepresentableError:
            assume(False)
        carried.append(bool(made))
        check_reconstruction(dialect, message, TOOLS)
        check_cuts(dialect, output, TOOLS, most=5)

    check()
    assert any(carried), "no call could be carried at all"


def strict(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": schema, "required": list(schema), "additionalProperties": False}


BOUND_TOOLS = (
    Tool("set", "", strict({"count": {"type": "integer", "minimum": 0, "maximum": 99}, "on": {"type": "boolean"}})),
    Tool(
        "pick",
        "",
        strict({"mode": {"enum": ["a", "b c", 1, None, "1"]}, "code": {"type": "string", "pattern": "^[a-z]{2,4}$"}}),
    ),
    Tool(
        "say",
        "",
        {
            "type": "object",
            "properties": {
                "text": {"type": "string", "maxLength": 12},
                "to": {"type": ["string", "null"], "maxLength": 5},
                "at": {"type": "array", "items": {"type": "number"}, "maxItems": 3},
                "tree": {"$ref": "#/$defs/tree"},
            },
            "required": ["text"],
            "additionalProperties": False,
            "$defs": {
                "tree": strict(
                    {
                        "v": {"type": "integer"},
                        "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": 2},
                    }
                )
            },
        },
    ),
    Tool("none", "", strict({})),
)
LOOSE_TOOLS = (
    Tool("untyped", "", {"properties": {"n": {"type": "integer"}}, "additionalProperties": False}),
    Tool("nullable", "", {"type": ["object", "null"], "properties": {}, "additionalProperties": False}),
    Tool("quoted", "", strict({"code": {"type": "string", "pattern": "[0-9]"}})),
    Tool("keyed", "", {**strict({"a<b": {"type": "null"}, "x y": {"type": "integer"}}), "required": []}),
)
BOUND_CALLS = [
    ToolCall("", "set", {"count": 42, "on": True}),
    ToolCall("", "pick", {"mode": "b c", "code": "abc"}),
    ToolCall("", "pick", {"mode": "1", "code": "ab"}),
    ToolCall("", "pick", {"mode": 1, "code": "ab"}),
    ToolCall("", "pick", {"mode": None, "code": "ab"}),
    ToolCall("", "say", {"text": 'a < b\n"q"'}),
    ToolCall("", "say", {"text": "", "to": None, "at": [1, 2.5, -3], "tree": {"v": 1, "kids": [{"v": 2, "kids": []}]}}),
    ToolCall("", "say", {"text": "é🙂", "to": "null", "at": []}),
    ToolCall("", "none", {}),
]
ANSWER = ResponseFormat.json_schema(strict({"n": {"type": "integer"}, "s": {"type": "string", "maxLength": 9}}))


@EVERY_DIALECT
def test_law_3_the_constraint_accepts_what_render_writes(name: str) -> None:
    dialect = get_dialect(name)
    turns = [AssistantMessage(tool_calls=(call,)) for call in BOUND_CALLS]
    turns += [
        AssistantMessage("Plain text."),
        AssistantMessage("An answer.", reasoning="Because."),
        AssistantMessage("Text first.", tool_calls=(BOUND_CALLS[0],)),
        AssistantMessage(reasoning="Two.", tool_calls=(BOUND_CALLS[0], BOUND_CALLS[1], BOUND_CALLS[-1])),
    ]
    carried = 0
    for turn in turns:
        for control in ((), dialect.markers.special):
            try:
                check_accepted(dialect, turn, BOUND_TOOLS, control=control)
                if turn.tool_calls and not turn.text:
                    check_accepted(dialect, turn, BOUND_TOOLS, control=control, tool_choice="required")
            except UnrepresentableError:
                continue
            carried += 1
    assert carried >= len(turns)


@EVERY_DIALECT
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tool_choice": "required"},
        {"tool_choice": "required", "parallel": False},
        {"tool_choice": "say", "parallel": False, "reasoning": False},
        {"tool_choice": "none"},
        {"tool_choice": ToolChoice("required", ("set", "none"))},
        {"response_format": ANSWER},
        {"response_format": ResponseFormat("json_object"), "reasoning": False},
        {"reasoning": "open"},
    ],
    ids=str,
)
def test_law_3_what_the_constraint_accepts_scans_and_validates(name: str, options: dict[str, Any]) -> None:
    dialect = get_dialect(name)
    for seed in range(12):
        check_generated(dialect, BOUND_TOOLS, seed, **options)


@EVERY_DIALECT
def test_law_3_for_schemas_that_permit_what_the_format_has_to_forbid(name: str) -> None:
    """Arguments that are no object, strings and keys that would end where the format ends them."""
    for seed in range(12):
        check_generated(get_dialect(name), LOOSE_TOOLS, seed, tool_choice="required", reasoning=False)


@EVERY_DIALECT
@pytest.mark.parametrize("tool", ["a+b", "1", ":", "-", "a.b/c@d:0", "null", "lambda"])
def test_law_3_for_names_of_tools_that_the_format_may_not_carry(name: str, tool: str) -> None:
    tools = (Tool(tool, "", strict({"on": {"type": "boolean"}})),)
    try:
        check_round_trip(get_dialect(name), AssistantMessage(tool_calls=(ToolCall("", tool, {"on": True}),)), tools)
    except UnrepresentableError:
        with pytest.raises(UnrepresentableError):
            get_dialect(name).constraint(tools, "required")
        return
    for seed in range(3):
        check_generated(get_dialect(name), tools, seed, tool_choice="required", reasoning=False)


@EVERY_DIALECT
def test_law_3_what_the_choice_forbids_is_refused(name: str) -> None:
    dialect = get_dialect(name)
    one = AssistantMessage(tool_calls=(BOUND_CALLS[0],))
    two = AssistantMessage(tool_calls=(BOUND_CALLS[0], BOUND_CALLS[0]))
    wrong = AssistantMessage(tool_calls=(ToolCall("", "set", {"count": 100, "on": True}),))
    unknown = AssistantMessage(tool_calls=(ToolCall("", "unknown", {}),))
    refused: list[tuple[AssistantMessage, dict[str, Any]]] = [
        (one, {"tool_choice": "none"}),
        (one, {"tool_choice": "say"}),
        (two, {"parallel": False}),
        (wrong, {}),
        (unknown, {}),
        (AssistantMessage("No call."), {"tool_choice": "required"}),
        (AssistantMessage("No JSON."), {"response_format": ANSWER}),
    ]
    for turn, options in refused:
        for control in ((), dialect.markers.special):
            with pytest.raises(AssertionError, match="refused at"):
                check_accepted(dialect, turn, BOUND_TOOLS, control=control, **options)


@EVERY_DIALECT
def test_laws_1_and_5_on_any_text(name: str) -> None:
    dialect = get_dialect(name)

    @EXAMPLES
    @given(texts(name), st.sampled_from(["text", "reasoning"]))
    def check(output: str, starts_in: str) -> None:
        check_output(dialect, output, TOOLS, starts_in=starts_in, most=20)

    check()


@EVERY_DIALECT
def test_laws_1_and_5_on_damaged_corpus_outputs(name: str) -> None:
    dialect = get_dialect(name)
    outputs = [case.output for case in read_corpus(CORPUS / f"{name}.txt") if case.output]

    @EXAMPLES
    @given(st.data())
    def check(data: st.DataObject) -> None:
        output = data.draw(st.sampled_from(outputs))
        start = data.draw(st.integers(0, len(output)))
        end = data.draw(st.integers(start, len(output)))
        put = data.draw(texts(name))
        check_output(dialect, output[:start] + put + output[end:], TOOLS, most=20)

    check()


@EVERY_DIALECT
def test_law_5_on_surrogates(name: str) -> None:
    output = "\ud83d" + "".join(get_dialect(name).markers.all) + "\udc00 \ud800"
    check_conservation(output, scan(get_dialect(name), [output]))


@EVERY_DIALECT
def test_control_tokens_arrive_as_pieces_and_text_that_spells_them_stays_text(name: str) -> None:
    dialect = get_dialect(name)
    control = dialect.markers.all
    spelled = "".join(control)
    events = scan(dialect, [Piece(spelled[:3]), Piece(spelled[3:])], TOOLS, control=control)
    assert dialect.scanner(TOOLS, control=control) is not None
    assert "".join([getattr(event, "text", "") for event in events]) == spelled
    check_conservation(spelled, events)


FLOODS = ["<", "{", "[", '"', "\\", " ", "\n", "`", "a", "&", "(", "'"]


@EVERY_DIALECT
def test_law_6_held_text_is_bounded(name: str) -> None:
    dialect = get_dialect(name)
    for flood in [*FLOODS, *dialect.markers.all, *[marker[:-1] for marker in dialect.markers.all if len(marker) > 1]]:
        check_bounded_work(dialect, flood * (3_000 // len(flood)))
    for case in read_corpus(CORPUS / f"{name}.txt"):
        if case.output:
            for place in range(0, len(case.output), 3):
                for flood in ("a", "<", " ", "{", '"'):
                    check_bounded_work(dialect, case.output[:place] + flood * 9_000, case.tools, piece=500)


@EVERY_DIALECT
def test_law_7_no_content_becomes_a_control_token(name: str) -> None:
    dialect = get_dialect(name)
    tokenizer = byte_level(ALL_MARKERS)
    forged = "".join(ALL_MARKERS)
    call = ToolCall("call_1", "write_file", {"extra": {"k": json.dumps(forged)}, "lines": [forged]})
    messages = (
        SystemMessage(forged),
        UserMessage(forged),
        AssistantMessage(forged, reasoning=forged),
        UserMessage("go"),
        AssistantMessage(reasoning=forged, tool_calls=(call,)),
        ToolMessage("call_1", "write_file", forged),
    )
    try:
        check_no_forgery(dialect, Conversation(messages, TOOLS), tokenizer)
    except UnrepresentableError:
        check_no_forgery(dialect, Conversation((*messages[:4],), TOOLS), tokenizer)
