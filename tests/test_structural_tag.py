"""Terms as structural tags. What xgrammar makes of them is tested with a real vLLM server (`make test-vllm`)."""

from __future__ import annotations

from typing import Any

import pytest

from isogloss.constraints.structural_tag import structural_tag
from isogloss.dialects import dialect_names, get_dialect
from isogloss.errors import GrammarError
from isogloss.grammar import (
    Choice,
    FreeText,
    Grammar,
    JsonValue,
    Literal,
    Loose,
    Marker,
    Nested,
    Reference,
    Regex,
    Repeat,
    Rule,
    Sequence,
    Term,
)
from isogloss.messages import Tool

CALL = Marker("<call>")
PART = Marker("<x:call>\n", "x:")
SPECIAL = {"<call>": 7, "x:": 8}
A = {"type": "const_string", "value": "a"}
B = {"type": "const_string", "value": "b"}
TOKEN = {"type": "token", "token": 7}


def format_of(term: Term, special: dict[str, int] = SPECIAL) -> dict[str, Any]:
    tag = structural_tag(term, special)
    assert tag["type"] == "structural_tag"
    written: dict[str, Any] = tag["format"]
    return written


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (Literal("a"), A),
        (CALL, TOKEN),
        (
            PART,
            {
                "type": "sequence",
                "elements": [
                    {"type": "const_string", "value": "<"},
                    {"type": "token", "token": 8},
                    {"type": "const_string", "value": "call>\n"},
                ],
            },
        ),
        (Regex("[a-z]+"), {"type": "regex", "pattern": "[a-z]+"}),
        (Sequence(()), {"type": "const_string", "value": ""}),
        (Sequence((Literal("a"), Sequence((Literal("b"),)))), {"type": "sequence", "elements": [A, B]}),
        (Choice((Literal("a"), Literal("b"))), {"type": "or", "elements": [A, B]}),
        (Choice((Literal("a"),)), A),
        (Repeat(Literal("a"), 0, 1), {"type": "optional", "content": A}),
        (Repeat(Literal("a")), {"type": "star", "content": A}),
        (Repeat(Literal("a"), 1), {"type": "plus", "content": A}),
        (Repeat(Literal("a"), 1, 1), A),
        (Repeat(Literal("a"), 0, 0), {"type": "const_string", "value": ""}),
        (Repeat(Literal("a"), 2, 3), {"type": "repeat", "min": 2, "max": 3, "content": A}),
        (Repeat(Literal("a"), 2), {"type": "repeat", "min": 2, "max": -1, "content": A}),
        (Rule("r", Literal("a")), A),
        (FreeText(), {"type": "any_text", "excludes": []}),
        (FreeText(language='"a" | "b"'), {"type": "or", "elements": [A, B]}),
        (
            FreeText(until=(CALL,), excluding=(Marker("<end>"), PART)),
            {"type": "sequence", "elements": [{"type": "any_text", "excludes": ["<end>"]}, TOKEN]},
        ),
        (
            FreeText(until=(Literal("b"), CALL)),
            {
                "type": "sequence",
                "elements": [{"type": "any_text", "excludes": ["b"]}, {"type": "or", "elements": [B, TOKEN]}],
            },
        ),
    ],
)
def test_terms(term: Term, expected: dict[str, Any]) -> None:
    assert format_of(term) == expected


def test_a_marker_is_text_where_the_vocabulary_has_it_not() -> None:
    assert format_of(FreeText(until=(CALL,)), {}) == {
        "type": "sequence",
        "elements": [{"type": "any_text", "excludes": ["<call>"]}, {"type": "const_string", "value": "<call>"}],
    }


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer"}, {"type": "integer"}),
        (True, True),
        ({"allOf": [{"type": "integer", "minimum": 1}, {"type": ["integer"]}]}, {"type": "integer", "minimum": 1}),
        ({"allOf": [True, {"type": ["null", "array"]}]}, {"type": ["null", "array"]}),
        ({"allOf": [{"minimum": 1}, {"type": ["number", "null"]}]}, {"minimum": 1, "type": ["null", "number"]}),
        (
            {"allOf": [{"type": ["string", "null"]}, {"type": ["null", "integer"]}]},
            {"type": "null"},
        ),
        ({"properties": {"not": {"type": "string"}}}, {"properties": {"not": {"type": "string"}}}),
    ],
)
def test_schemas(schema: dict[str, Any] | bool, expected: dict[str, Any] | bool) -> None:
    written = format_of(JsonValue(schema))
    assert written == {"type": "json_schema", "json_schema": expected, "max_whitespace_cnt": 2}


@pytest.mark.parametrize(
    ("schema", "keyword", "pointer"),
    [
        ({"type": "number", "multipleOf": 2}, "multipleOf", ""),
        ({"properties": {"a": {"items": {"uniqueItems": True}}}}, "uniqueItems", "/properties/a/items"),
        ({"anyOf": [True, {"not": {}}]}, "not", "/anyOf/1"),
        ({"$defs": {"x": {"if": True}}}, "if", "/$defs/x"),
        ({"additionalProperties": {"pattern": "a", "maxLength": 3}}, "a length of text", "/additionalProperties"),
        ({"allOf": [{"$ref": "#/$defs/x"}, {"type": "string"}]}, "allOf of several", ""),
    ],
)
def test_schemas_that_xgrammar_would_not_hold(schema: dict[str, Any], keyword: str, pointer: str) -> None:
    with pytest.raises(GrammarError, match=f"does not hold output to `{keyword}") as caught:
        format_of(JsonValue(schema))
    assert caught.value.pointer == pointer


@pytest.mark.parametrize(
    ("term", "reason"),
    [
        (Rule("r", Sequence((Literal("a"), Repeat(Reference("r"), 0, 1)))), "rules that mean themselves, as `r` does"),
        (Grammar('start: "a"'), "a grammar in Lark"),
        (Sequence((Literal("a"), Nested('start: "a"'))), "a grammar in Lark"),
        (Regex("a+", max_length=3), "bound the length of a pattern"),
        (FreeText(language="/a+/"), "the language of a pattern"),
        (Loose(FreeText()), "all of a schema"),
        (FreeText(pattern="a+", excluding=(Literal("b"),)), "exclude texts from it"),
    ],
)
def test_what_has_no_structural_tag(term: Term, reason: str) -> None:
    with pytest.raises(GrammarError, match=reason):
        format_of(term)


def test_most_dialects_have_structural_tags_for_strict_tools() -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city", "days"],
        "additionalProperties": False,
    }
    tools = [Tool("get_weather", "", schema, strict=True)]
    said = set()
    for name in dialect_names():
        dialect = get_dialect(name)
        special = {marker: position for position, marker in enumerate(sorted(dialect.markers.special))}
        try:
            format_of(dialect.constraint(tools, "required").term, special)
        except GrammarError:
            continue
        said.add(name)
    assert said >= {"dsml", "glm", "harmony", "hermes", "minimax", "qwen3", "qwen3_coder", "xml"}
