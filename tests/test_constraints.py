"""Constraints: what a grammar accepts and refuses, byte by byte and token by token, and how a matcher behaves."""

from __future__ import annotations

import json
import random
import re

import jsonschema_rs
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.constraints import (
    Choice,
    Constraint,
    FreeText,
    Grammar,
    JsonValue,
    Literal,
    Marker,
    Matcher,
    Reference,
    Regex,
    Repeat,
    Rule,
    Term,
    accepts,
    choice,
    compile_check,
    optional,
    sequence,
)
from isogloss.constraints.compilation import CompiledGrammars, estimated_size
from isogloss.errors import GrammarError, SchemaError, StrictSchemaError, UnsatisfiableSchemaError
from isogloss.prompt import PromptWriter
from isogloss.tokenizers import Tokenizer, byte_level, o200k_harmony
from isogloss.tokenizers._vocabulary import Vocabulary

HARMONY = ["<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>"]
CONTROL = byte_level([*HARMONY, "<tool_call>", "</tool_call>", "<|im_end|>"])
PLAIN = byte_level()
"""Two vocabularies: the markers of these tests are control tokens in the one and text in the other."""

CITY = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 20},
        "days": {"type": "integer", "minimum": 1, "maximum": 99},
        "unit": {"enum": ["C", "F"]},
    },
    "required": ["city", "days", "unit"],
    "additionalProperties": False,
}


def check(term: Term, accepted: list[str], refused: list[tuple[str, int]], vocabulary: Tokenizer = PLAIN) -> None:
    constraint = Constraint(term)
    for text in accepted:
        assert accepts(constraint, text, vocabulary) == (True, len(text)), text
    for text, offset in refused:
        assert accepts(constraint, text, vocabulary) == (False, offset), text


# Terms


def test_literals_and_markers() -> None:
    term = sequence(Literal('a"\\\n\u2028\x01é'), Marker("<|end|>"))
    for vocabulary in (PLAIN, CONTROL):
        check(term, ['a"\\\n\u2028\x01é<|end|>'], [('a"\\\n\u2028\x01e<|end|>', 6), ("", 0)], vocabulary)


def test_a_lone_surrogate_in_a_literal_is_the_replacement_character() -> None:
    check(Literal("a\ud800"), ["a\ufffd"], [])


def test_regular_expressions() -> None:
    check(Regex("[a-z]+/[0-9]{2}"), ["ab/12"], [("ab/1", 4), ("ab/123", 5), ("/12", 0)])
    check(Regex("[a-z]+", max_length=3), ["a", "abc"], [("abcd", 3)])
    check(Regex("[a-z]+", excluding=("if", "a")), ["i", "ifs", "aa"], [("a", 1), ("if", 2)])
    check(Regex("\\d+\n"), ["12\n", "١٢\n"], [("x", 0)])


def test_choices_repeats_and_nothing() -> None:
    check(choice(Literal("a"), Literal("b")), ["a", "b"], [("c", 0), ("ab", 1)])
    check(sequence(Literal("a"), optional(Literal("b"))), ["a", "ab"], [("abb", 2)])
    check(Repeat(Literal("ab")), ["", "abab"], [("aba", 3)])
    check(Repeat(Literal("ab"), 1), ["ab", "ababab"], [("", 0)])
    check(Repeat(Literal("ab"), 2), ["abab", "ababab"], [("ab", 2)])
    check(Repeat(Literal("ab"), 1, 2), ["ab", "abab"], [("ababab", 4)])
    check(sequence(), [""], [("a", 0)])


def test_recursion() -> None:
    term = Rule("nested", choice(sequence(Literal("("), Reference("nested"), Literal(")")), Literal("x")))
    check(term, ["x", "((x))"], [("((x)", 4), ("()", 1)])


@pytest.mark.parametrize(
    ("term", "message"),
    [
        (Reference("absent"), "got none named `absent`"),
        (sequence(Rule("a", Literal("x")), Rule("a", Literal("y"))), "one rule named `a`, got two"),
        (Rule("No name", Literal("x")), "got `No name`"),
        (sequence(Literal("x"), Grammar("start: /a/")), "within another term"),
    ],
)
def test_terms_that_make_no_grammar(term: Term, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        Constraint(term).lark_for(PLAIN)


def test_free_text_ends_at_the_first_marker() -> None:
    for vocabulary in (PLAIN, CONTROL):
        term = sequence(FreeText((Marker("<tool_call>"),)), Literal("x"))
        check(term, ["<tool_call>x", "a < b <tool_<tool_call>x"], [("a<tool_call>y", 12), ("a", 1)], vocabulary)


def test_free_text_ends_at_any_of_several_markers() -> None:
    term = sequence(FreeText((Marker("<tool_call>"), Literal("</a-b>\n"), Literal("|"))), Literal("x"))
    for vocabulary in (PLAIN, CONTROL):
        check(term, ["t<tool_call>x", "t</a-b>\nx", "|x"], [("t|y", 2), ("t<tool_call>|x", 12)], vocabulary)


def test_what_follows_may_depend_on_the_marker() -> None:
    term = choice(
        sequence(FreeText((Marker("<tool_call>"),)), Literal("x")),
        sequence(FreeText((Literal("<b>"),)), Literal("y")),
        FreeText(),
    )
    for vocabulary in (PLAIN, CONTROL):
        check(term, ["t<tool_call>x", "t<b>y", "only <text"], [("t<b>x", 4), ("t<tool_call>y", 12)], vocabulary)


def test_free_text_with_a_pattern_and_a_length() -> None:
    for end in (Marker("<|end|>"), Literal("</p>")):
        for vocabulary in (PLAIN, CONTROL):
            short = FreeText((end,), language="/(?s:.{0,3})/")
            check(short, [f"ä\n<{end.text}", end.text], [(f"abcd{end.text}", 3)], vocabulary)
            formed = FreeText((end,), language="/[a-z]+[0-9]{2}/ & /(?s:.{0,5})/")
            check(formed, [f"ab12{end.text}"], [(f"ab1{end.text}", 3), ("abcd", 3)], vocabulary)


def test_free_text_may_exclude_texts() -> None:
    term = FreeText((Literal("</p>"),), excluding=(Literal("<b>\n"), Marker("<|end|>")))
    for vocabulary in (PLAIN, CONTROL):
        check(term, ["a <b </p>", "<|en</p>", "</p>"], [("a<b>\n</p>", 4)], vocabulary)
    check(term, [], [("a<|end|></p>", 7)])
    check(term, [], [("a<|end|></p>", 1)], CONTROL)
    check(FreeText(language="/(?s:.{0,9})/", excluding=(Literal("x"),)), ["abc"], [("abx", 2), ("0123456789", 9)])


def test_free_text_without_an_end_stops_at_a_control_token() -> None:
    check(FreeText(), ["", "any <text>\n"], [])
    check(sequence(FreeText(), Marker("<|end|>")), ["a<|end|>", "<|end|>"], [("a", 1)], CONTROL)
    assert Constraint(FreeText()).matcher(CONTROL).accept_all([97, CONTROL.special_tokens["<tool_call>"]]) == 1


def test_the_same_free_text_is_one_rule() -> None:
    text = FreeText((Marker("<|end|>"),))
    lark = Constraint(sequence(text, text, JsonValue(CITY), JsonValue(CITY))).lark
    assert lark.count("suffix") == 1
    assert lark.count("days") == 1


def test_the_grammar_of_a_vocabulary_uses_its_control_tokens() -> None:
    constraint = Constraint(FreeText((Marker("<|end|>"), Literal("stop"))))
    assert "<[259]>" in constraint.lark_for(CONTROL)
    assert "<[" not in constraint.lark_for(PLAIN)
    assert constraint.lark == constraint.lark_for(PLAIN)
    assert constraint.lark.startswith("%llguidance {}\n")


# Whole constraints


def test_json_schema_in_the_schemas_order() -> None:
    constraint = Constraint.from_json_schema(CITY)
    for text in (
        '{"city":"Köln","days":3,"unit":"C"}',
        '{"city": "a\\n\\u0001", "days": 99, "unit": "F"}',
        json.dumps({"city": "x", "days": 1, "unit": "C"}, indent=4),
    ):
        assert accepts(constraint, text) == (True, len(text)), text
    for text, offset in (
        ('{"days":3,"city":"a","unit":"C"}', 2),
        ('{"city":"a","days":0,"unit":"C"}', 19),
        ('{"city":"a","days":3,"unit":"C"} ', 32),
        ('{"city":"a","days":3,"unit":"C"', 31),
    ):
        assert accepts(constraint, text) == (False, offset), text


def test_white_space_is_bounded() -> None:
    for constraint in (Constraint.from_json_schema(CITY), Constraint.json_object()):
        is_accepted, offset = accepts(constraint, "{" + "\n" * 300)
        assert not is_accepted
        assert offset < 300
        is_accepted, offset = accepts(constraint, "{\n" + " " * 300)
        assert not is_accepted
        assert offset < 300


def test_json_object() -> None:
    constraint = Constraint.json_object()
    assert accepts(constraint, '{"a":{"b":[1,2.5e3,null,true,"x"]}}').is_accepted
    assert accepts(constraint, "[1]") == (False, 0)


def test_boolean_schemas_and_no_schemas() -> None:
    assert accepts(Constraint.from_json_schema(True), '[1,"a"]').is_accepted
    with pytest.raises(UnsatisfiableSchemaError):
        Constraint.from_json_schema(False).lark_for(PLAIN)
    with pytest.raises(SchemaError, match="got `list`"):
        Constraint.from_json_schema([])  # type: ignore[arg-type]


def test_strict_asks_for_the_strict_subset() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    closed = {**schema, "required": ["a"], "additionalProperties": False}
    assert accepts(Constraint.from_json_schema(closed, strict=True), '{"a":""}').is_accepted
    with pytest.raises(StrictSchemaError):
        Constraint.from_json_schema(schema, strict=True)


def test_regex_and_lark() -> None:
    assert accepts(Constraint.from_regex("a+"), "aaa").is_accepted
    assert accepts(Constraint.from_lark('start: "a" "b"'), "ab").is_accepted
    assert Constraint.from_lark('start: "a" "b"').lark == 'start: "a" "b"'


def test_a_prompt_says_which_marker_is_a_control_token() -> None:
    constraint = Constraint(sequence(Marker("<|message|>"), FreeText((Marker("<|end|>"),))))
    writer = PromptWriter()
    writer.marker("<|message|>")
    writer.text("they write <|end|> here")
    writer.marker("<|end|>")
    prompt = writer.prompt()
    assert accepts(constraint, prompt, CONTROL) == (True, len(prompt.text))
    assert accepts(constraint, prompt.text, CONTROL) == (False, prompt.text.index("<|end|>") + len("<|end|>"))


# Recipes, on real vocabularies

TOOLS = [f"tool_{number}" for number in range(20)]

INVOKE = sequence(
    Repeat(
        sequence(
            FreeText((Literal('<invoke name="'),)),
            Choice(
                tuple(
                    sequence(
                        Literal(f'{name}">\n<parameter name="path">'),
                        FreeText((Literal("</parameter>"),)),
                        optional(
                            sequence(
                                Literal('<parameter name="n">'),
                                JsonValue({"type": "integer", "minimum": 1}),
                                Literal("</parameter>"),
                            )
                        ),
                        Literal("</invoke>"),
                    )
                    for name in TOOLS
                )
            ),
        )
    ),
    FreeText(),
)
TAGGED_JSON = sequence(
    Repeat(
        sequence(
            FreeText((Marker("<tool_call>"),)),
            Choice(
                tuple(
                    sequence(Literal(f'\n{{"name": "{name}", "arguments": '), JsonValue(CITY), Literal("}\n"))
                    for name in TOOLS
                )
            ),
            Marker("</tool_call>"),
        )
    ),
    FreeText(),
)
CHANNELS = sequence(
    optional(
        sequence(
            Marker("<|channel|>"),
            Literal("analysis"),
            Marker("<|message|>"),
            FreeText((Marker("<|end|>"),)),
            Marker("<|start|>"),
            Literal("assistant"),
        )
    ),
    Marker("<|channel|>"),
    choice(
        sequence(Literal("final"), Marker("<|message|>"), FreeText((Marker("<|return|>"),))),
        Choice(
            tuple(
                sequence(
                    Literal(f"commentary to=functions.{name}"),
                    Marker("<|message|>"),
                    JsonValue(CITY),
                    Marker("<|call|>"),
                )
                for name in TOOLS
            )
        ),
    ),
)
PYTHON_STRING = r"'(?:[^'\\\n]|\\['\\n])*'"
PYTHON_CALL = sequence(
    Literal("[f(x="),
    choice(Regex(PYTHON_STRING), JsonValue({"type": "number"}), Literal("True"), Literal("False"), Literal("None")),
    Literal(")]"),
)

RECIPES = {
    "raw values between tags": (
        INVOKE,
        'Hi <b>\n<invoke name="tool_3">\n<parameter name="path">a < b</p\n</parameter></invoke> and '
        '<invoke name="tool_19">\n<parameter name="path"></parameter><parameter name="n">5</parameter></invoke>.',
        '<invoke name="tool_x',
    ),
    "tagged JSON": (
        TAGGED_JSON,
        'Hi\n<tool_call>\n{"name": "tool_7", "arguments": {"city":"<x>","days":3,"unit":"C"}}\n</tool_call> bye',
        'Hi\n<tool_call>\n{"name": "tool_7", "arguments": {"city":"x","days":3,"unit":"K',
    ),
    "channels": (
        CHANNELS,
        "<|channel|>analysis<|message|>think <x> |<|end|><|start|>assistant"
        '<|channel|>commentary to=functions.tool_1<|message|>{"city":"x","days":1,"unit":"F"}<|call|>',
        "<|channel|>commentary to=functions.tool_1<|message|>[",
    ),
    "a final answer": (CHANNELS, "<|channel|>final<|message|>Yes.<|return|>", "<|channel|>final<|end|>"),
    "Python literals": (PYTHON_CALL, r"[f(x='it\'s')]", "[f(x=true"),
}


def tokens_of(constraint: Constraint, text: str, tokenizer: Tokenizer) -> list[int]:
    """The text's ids, its markers as control tokens where the vocabulary has them as such."""
    control = constraint.markers & tokenizer.special_tokens.keys()
    writer = PromptWriter()
    pattern = "|".join(map(re.escape, sorted(control))) or "(?!)"
    for position, part in enumerate(re.split(f"({pattern})", text)):
        (writer.marker if position % 2 else writer.text)(part)
    return writer.prompt().tokens(tokenizer)


def is_allowed(mask: numpy.typing.NDArray[numpy.int32], token: int) -> bool:
    return bool((int(mask[token >> 5]) >> (token & 31)) & 1)


@pytest.fixture(params=["o200k", "bytes", "demo model"])
def vocabulary(request: pytest.FixtureRequest) -> Tokenizer:
    if request.param == "o200k":
        return o200k_harmony()
    if request.param == "bytes":
        return CONTROL
    from isogloss.tokenizers import from_gguf

    return from_gguf(request.getfixturevalue("demo_model_path"))


@pytest.mark.parametrize("name", RECIPES)
def test_recipes(name: str, vocabulary: Tokenizer) -> None:
    term, accepted, refused = RECIPES[name]
    constraint = Constraint(term)
    matcher = constraint.matcher(vocabulary)
    for token in tokens_of(constraint, accepted, vocabulary):
        assert is_allowed(matcher.mask(), token)
        assert matcher.accept(token)
    assert matcher.is_complete
    tokens = tokens_of(constraint, refused, vocabulary)
    assert constraint.matcher(vocabulary).accept_all(tokens) < len(tokens)


def walk(constraint: Constraint, tokenizer: Tokenizer, source: random.Random) -> str:
    """What a model with random logits writes, a little in favour of ending."""
    matcher = constraint.matcher(tokenizer)
    written: list[int] = []
    while not matcher.is_ended:
        bits = numpy.unpackbits(matcher.mask().view(numpy.uint8), bitorder="little")
        allowed = numpy.flatnonzero(bits).tolist()
        assert allowed, "stuck"
        ends = [token for token in allowed if token in tokenizer.end_tokens]
        token = source.choice(ends if ends and source.random() < 0.2 else allowed)
        assert matcher.accept(token)
        written.append(token)
    return tokenizer.decode([token for token in written if token not in tokenizer.end_tokens])


BOUNDED = sequence(
    Repeat(
        sequence(
            FreeText((Literal("<call>"),), language='"a" | "bc"'),
            choice(JsonValue(CITY), Regex("[a-c]{1,3}")),
            Literal("</call>"),
        ),
        1,
        3,
    )
)


@pytest.mark.parametrize("seed", range(5))
def test_a_random_walk_ends_in_an_accepted_text(seed: int, vocabulary: Tokenizer) -> None:
    source = random.Random(seed)
    text = walk(Constraint.from_json_schema(CITY), vocabulary, source)
    jsonschema_rs.validate(CITY, json.loads(text))
    assert list(json.loads(text)) == list(CITY["properties"])
    assert accepts(Constraint.from_json_schema(CITY), text).is_accepted
    text = walk(Constraint(BOUNDED), vocabulary, source)
    assert accepts(Constraint(BOUNDED), text).is_accepted
    assert re.fullmatch(r"(?s:.{0,5}<call>(?:\{.*?\}|[a-c]{1,3})</call>){1,3}", text)


@settings(max_examples=60, deadline=None)
@given(st.from_regex(r"\A[a-z<>]{0,6}\Z"), st.sampled_from([PLAIN, CONTROL]))
def test_free_text_agrees_with_a_regular_expression(text: str, tokenizer: Tokenizer) -> None:
    constraint = Constraint(sequence(FreeText((Literal("<a>"), Literal("b>"))), Regex("[a-z]*")))
    first = re.match("(?s:.*?)(?:<a>|b>)", text)
    expected = bool(first) and re.fullmatch("[a-z]*", text[first.end() :]) is not None if first else False
    assert accepts(constraint, text, tokenizer).is_accepted == expected


# Matchers


def matcher_of(term: Term, tokenizer: Tokenizer = CONTROL) -> Matcher:
    return Constraint(term).matcher(tokenizer)


END = CONTROL.special_tokens["<|im_end|>"]
OTHER_END = CONTROL.special_tokens["<|endoftext|>"]


def allowed_by(matcher: Matcher) -> set[int]:
    return {token for token in range(CONTROL.vocabulary_size) if is_allowed(matcher.mask(), token)}


def test_mask_has_one_bit_a_token() -> None:
    mask = matcher_of(Literal("ab")).mask()
    assert mask.dtype == numpy.int32
    assert mask.shape == ((CONTROL.vocabulary_size + 31) // 32,)
    assert allowed_by(matcher_of(Literal("ab"))) == {ord("a")}


def test_a_refused_token_changes_nothing() -> None:
    matcher = matcher_of(Literal("ab"))
    for token in (ord("b"), END, CONTROL.special_tokens["<tool_call>"], -1, CONTROL.vocabulary_size, 10**9):
        assert not matcher.accept(token)
    assert len(matcher) == 0
    assert matcher.accept_all(b"ab") == 2
    assert matcher.is_complete
    assert matcher.is_stopped


def test_any_end_token_ends_what_is_complete() -> None:
    for end in (END, OTHER_END):
        matcher = matcher_of(Repeat(Literal("a")))
        assert matcher.accept_all(b"aa") == 2
        assert not matcher.is_stopped
        assert {END, OTHER_END, ord("a")} <= allowed_by(matcher)
        assert matcher.accept(end)
        assert matcher.is_complete
        assert matcher.is_ended
        assert not matcher.accept(ord("a"))
        assert not matcher.accept(OTHER_END)


def test_an_end_token_of_the_grammar_is_the_only_one() -> None:
    matcher = matcher_of(sequence(Literal("a"), Marker("<|im_end|>")))
    matcher.accept(ord("a"))
    assert allowed_by(matcher) == {END}
    assert not matcher.is_complete
    assert not matcher.accept(OTHER_END)
    assert matcher.accept(END)
    assert matcher.is_complete
    assert matcher.is_ended


def test_rollback_over_end_tokens() -> None:
    matcher = matcher_of(sequence(Literal("a"), Marker("<|im_end|>"), Literal("b"), optional(Literal("c"))))
    before = []
    for token in (ord("a"), END, ord("b"), ord("c"), OTHER_END):
        before.append(allowed_by(matcher))
        assert matcher.accept(token)
    for count in (1, 2, 3, 4, 5):
        twin = matcher.copy()
        twin.rollback(count)
        assert len(twin) == 5 - count
        assert allowed_by(twin) == before[5 - count]
        assert twin.accept_all((ord("a"), END, ord("b"), ord("c"), OTHER_END)[5 - count :]) == count
    assert matcher.is_ended
    with pytest.raises(ValueError, match="0 to 5 tokens, got 6"):
        matcher.rollback(6)


def test_copies_go_their_own_ways() -> None:
    matcher = matcher_of(choice(Literal("ab"), Literal("ac")))
    matcher.accept(ord("a"))
    twin = matcher.copy()
    assert twin.accept(ord("b"))
    assert matcher.accept(ord("c"))
    assert twin.is_complete
    assert matcher.is_complete


def test_drafts_are_validated_without_going_on() -> None:
    matcher = matcher_of(sequence(Literal("ab"), Marker("<|im_end|>")))
    assert matcher.validate(b"abc") == 2
    assert matcher.validate([*b"ab", END, END]) == 3
    assert len(matcher) == 0
    assert matcher.accept_all([*b"ab", END]) == 3


def test_forced_tokens() -> None:
    assert matcher_of(sequence(Literal("abc"), Regex("[xy]"))).forced_tokens() == list(b"abc")
    assert matcher_of(Regex("[xy]")).forced_tokens() == []
    o200k = o200k_harmony()
    assert matcher_of(Literal("assistant<|end|>"), o200k).forced_tokens() == o200k.encode("assistant<|end|>")


def test_a_grammar_that_no_token_can_go_on_with_is_stuck() -> None:
    tokenizer = Vocabulary("x only", [b"x", b"<e>"], {"<e>": 1}, lambda text: [0] * text.count("x"), end_tokens=[1])
    matcher = matcher_of(sequence(Literal("x"), Regex("[yz]")), tokenizer)
    assert not matcher.is_stuck
    assert matcher.accept(0)
    assert matcher.is_stuck
    assert not matcher.mask().any()
    assert not matcher.accept(0)
    assert not matcher.is_complete
    with pytest.raises(GrammarError, match="No token can come next"):
        matcher.rollback(1)


# Compilation


@pytest.mark.parametrize(
    "lark",
    [
        "start: missing",
        "start: /(?=a)/",
        "start: <|no_such_token|>",
        "start: " + "(" * 50_000,
        "not a grammar",
        'start: %json {"not": {}}',
    ],
)
def test_grammars_that_do_not_compile(lark: str) -> None:
    with pytest.raises(GrammarError) as caught:
        compile_check(lark, PLAIN)
    assert 0 < len(caught.value.message) <= 500
    with pytest.raises(GrammarError):
        Constraint.from_lark(lark).matcher(PLAIN)


def test_running_into_a_limit_is_an_error_and_not_remembered() -> None:
    constraint = Constraint.from_regex("(.{0,1000}){0,1000}")
    for _ in range(2):
        with pytest.raises(GrammarError, match="too many expressions"):
            constraint.matcher(o200k_harmony()).mask()


def test_what_is_kept_is_bounded() -> None:
    grammars = [f'start: "{number:03}"' for number in range(20)]
    kept = CompiledGrammars(maximum_size=5 * estimated_size(grammars[0]))
    for grammar in grammars:
        kept.get(grammar, PLAIN)
        kept.get(grammars[0], PLAIN)
    assert len(kept) == 5
    assert kept.size == 5 * estimated_size(grammars[0])
    first = kept.get(grammars[0], PLAIN)
    assert kept.get(grammars[0], PLAIN) is first
    assert kept.get(grammars[0], CONTROL) is not first
    kept.discard(grammars[0], PLAIN)
    assert kept.get(grammars[0], PLAIN) is not first


def test_a_grammar_larger_than_the_bound_is_still_compiled() -> None:
    kept = CompiledGrammars(maximum_size=0)
    assert kept.get('start: "a"', PLAIN).is_error() is False
    assert len(kept) == 1
