"""Arguments as raw text between tags, and whatever else is no JSON, are held to their schema by the grammar itself."""

from __future__ import annotations

from typing import Any

import pytest

from isogloss.constraints import accepts
from isogloss.dialects import dialect_names, get_dialect
from isogloss.dialects._base import BlockDialect
from isogloss.messages import Tool, ToolCall
from isogloss.tokenizers import byte_level

BLOCK_DIALECTS = [name for name in dialect_names() if isinstance(get_dialect(name), BlockDialect) and name != "kimi_k3"]


def properties(**schemas: Any) -> dict[str, Any]:
    return {"type": "object", "properties": schemas, "required": list(schemas), "additionalProperties": False}


def optional(**schemas: Any) -> dict[str, Any]:
    return {"type": "object", "properties": schemas, "additionalProperties": False}


STRING = {"type": "string"}
DATE = {"type": "string", "format": "date"}
MAYBE_A_DATE = properties(v={"anyOf": [DATE, {"type": "null"}]})
SEVERAL = properties(v={"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 4})
AHEAD = properties(v={"type": "string", "pattern": "^(?!no)[a-z]+$"})
WORD_OR_NUMBER = properties(v={"type": ["string", "integer"], "pattern": "^[a-z]+$", "multipleOf": 5})
ALL_OF = properties(v={"allOf": [{"type": "string", "pattern": "^a"}, {"pattern": "z$"}]})
NOT_THIS = properties(v={"type": "string", "not": {"enum": ["a", "b"]}})
EITHER = {**optional(a=STRING, b=STRING, c=STRING), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
DEPENDENT = {**optional(a=STRING, b=STRING, c=STRING), "dependentRequired": {"a": ["c"]}}
TWO = {**optional(a=STRING, b=STRING, c=STRING), "minProperties": 2, "maxProperties": 2}
NOT_BOTH = {**optional(a=STRING, b=STRING), "not": {"required": ["a", "b"]}}
BY_KIND = {
    **properties(kind={"enum": ["dog", "cat"]}),
    "properties": {"kind": {"enum": ["dog", "cat"]}, "barks": {"type": "boolean"}},
    "if": {"properties": {"kind": {"const": "dog"}}},
    "then": {"required": ["barks"]},
}

CASES: list[tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]] = [
    (MAYBE_A_DATE, [{"v": "2024-02-29"}, {"v": None}], [{"v": "hello"}, {"v": "2023-02-29"}]),
    (SEVERAL, [{"v": "ab"}, {"v": "abcd"}], [{"v": "a"}, {"v": "abcde"}, {"v": "A1"}]),
    (AHEAD, [{"v": "yes"}], [{"v": "nope"}]),
    (WORD_OR_NUMBER, [{"v": "ab"}, {"v": 10}], [{"v": "AB"}, {"v": 7}]),
    (ALL_OF, [{"v": "az"}, {"v": "a-z"}], [{"v": "a"}, {"v": "z"}]),
    (NOT_THIS, [{"v": "c"}, {"v": "ab"}], [{"v": "a"}]),
    (EITHER, [{"a": "1"}, {"b": "1", "c": "2"}], [{}, {"c": "1"}]),
    (DEPENDENT, [{}, {"b": "1"}, {"a": "1", "c": "2"}], [{"a": "1"}, {"a": "1", "b": "2"}]),
    (TWO, [{"a": "1", "c": "2"}, {"b": "1", "c": "2"}], [{"a": "1"}, {"a": "1", "b": "2", "c": "3"}]),
    (NOT_BOTH, [{}, {"a": "1"}, {"b": "1"}], [{"a": "1", "b": "2"}]),
    (BY_KIND, [{"kind": "cat"}, {"kind": "dog", "barks": True}], [{"kind": "dog"}]),
]


@pytest.mark.parametrize("name", BLOCK_DIALECTS)
@pytest.mark.parametrize(("schema", "valid", "invalid"), CASES)
def test_the_grammar_holds_arguments_to_their_schema(
    name: str, schema: dict[str, Any], valid: list[dict[str, Any]], invalid: list[dict[str, Any]]
) -> None:
    dialect = get_dialect(name)
    constraint = dialect.constraint([Tool("f", "", schema)], "required", reasoning=False)
    assert constraint.calls is None  # no watch is needed
    for arguments in valid + invalid:
        output = dialect.render_calls([ToolCall("call_1", "f", arguments)])
        found = accepts(constraint, output, byte_level())
        assert found.is_accepted == (arguments in valid), (output, found)


@pytest.mark.parametrize("name", BLOCK_DIALECTS)
def test_host_names_are_written_in_the_dialects_own_way(name: str) -> None:
    dialect = get_dialect(name)
    schema = properties(host={"type": "string", "format": "hostname"}, maybe={"anyOf": [DATE, {"type": "null"}]})
    constraint = dialect.constraint([Tool("f", "", schema)], "required", reasoning=False)
    for host, is_valid in (("www.example.com", True), ("-a.example", False), ("xn--X.com", False)):
        output = dialect.render_calls([ToolCall("call_1", "f", {"host": host, "maybe": None})])
        assert accepts(constraint, output, byte_level()).is_accepted == is_valid, output
