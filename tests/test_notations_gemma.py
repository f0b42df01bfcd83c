"""The Gemma family's notation: values typed by their schema, strings that hold anything, damage with one meaning."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from isogloss.errors import UnrepresentableError
from isogloss.notations.gemma import Delimiters, GemmaReader, delimiters, write
from isogloss.schema.view import SchemaView
from isogloss.testing import cuts

QUOTE, CALL, CLOSE = '<|"|>', "<|tool_call>", "<tool_call|>"
DELIMITERS = delimiters(QUOTE, CALL, CLOSE)
VIEW = SchemaView(
    {
        "type": "object",
        "properties": {
            "s": {"type": "string"},
            "i": {"type": "integer"},
            "n": {"type": ["string", "null"]},
            "o": {"$ref": "#/$defs/o"},
            "a": {"type": "array", "items": {"type": "string"}},
            "z": {},
        },
        "$defs": {"o": {"type": "object", "properties": {"x": {"type": "string"}}}},
    }
)


def read(pieces: Iterable[str], view: SchemaView | None, delimiters: Delimiters = DELIMITERS) -> tuple[str, bool, str]:
    reader = GemmaReader(delimiters, view)
    held = written = ""
    for piece in pieces:
        held += piece
        position, fragment = reader.read(held, 0)
        written += fragment
        held = held[position:]
        if reader.done or reader.fault:
            break
    return written, reader.done, reader.fault


def read_everywhere(text: str, view: SchemaView | None) -> tuple[str, bool, str]:
    """``Q`` stands for the delimiter."""
    text = text.replace("Q", QUOTE) + CLOSE
    whole = read([text], view)
    for pieces in cuts(text, 60):
        assert read(pieces, view) == whole, pieces
    return whole


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", {}),
        ("{s:QaQ,i:2,n:null,o:{x:QyQ},a:[QpQ,QqQ]}", {"s": "a", "i": 2, "n": None, "o": {"x": "y"}, "a": ["p", "q"]}),
        (f'{{s:Qa, b: {{c}} [d] " \\ {CALL} {CLOSE} Q x Q}}', {"s": f'a, b: {{c}} [d] " \\ {CALL} {CLOSE} {QUOTE} x '}),
        ('{s: "a, \\"b\\"", i = 3, a:["x",\'y\'] , z:\'it\'}', {"s": 'a, "b"', "i": 3, "a": ["x", "y"], "z": "it"}),
        ("{s:007,i:5,n:x y,a:[a b,c],z:A, B}", {"s": "007", "i": 5, "n": "x y", "a": ["a b", "c"], "z": "A, B"}),
        ("{s:5,n:null,z:null,o:{x:1}}", {"s": "5", "n": None, "z": None, "o": {"x": "1"}}),
        ("{i:Q5Q,z:{k:1,q:[1,{}]}}", {"i": 5, "z": {"k": 1, "q": [1, {}]}}),
        ("{s:Qcode }],path:Qf.txtQ}", {"s": "code }]", "path": "f.txt"}),
        ("{s:Qcode ,i:5Q}", {"s": "code ,i:5"}),
        ("{s:QQ,i:1", {"s": "", "i": 1}),
        ("{s:QaQ,", {"s": "a"}),
        ("{", {}),
        ("{Qa bQ:1,\"c d\":2,'e':3}", {"a b": 1, "c d": 2, "e": 3}),
    ],
)
def test_objects(text: str, expected: dict[str, Any]) -> None:
    written, done, fault = read_everywhere(text, VIEW)
    assert (done, fault) == (True, "")
    assert json.dumps(json.loads(written)) == json.dumps(expected)


@pytest.mark.parametrize(
    "text", ["{a:[1", "{s:,i:1}", "{s}", f"{{s:Qa}}{CLOSE}{CALL}call:g{{q:QbQ}}", "{a:1,,b:2}", "{]"]
)
def test_what_has_no_meaning_is_a_fault(text: str) -> None:
    _, done, fault = read_everywhere(text, VIEW)
    assert not done
    assert fault


def test_a_delimiter_that_is_a_control_token_ends_a_string_wherever_it_stands() -> None:
    certain = delimiters('\ud83c|"|>', "\ud83c|tool_call>", "\ud83ctool_call|>", True)
    written, done, _ = read(['{s:\ud83c|"|>a<|"|>,x:<|"|>b\ud83c|"|>}'], VIEW, certain)
    assert done
    assert json.loads(written) == {"s": 'a<|"|>,x:<|"|>b'}


keys = st.sampled_from(["a", "b-c", "é", "", "x y", "x:y", QUOTE, f"a{QUOTE}:"])
values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**20), 10**20),
        st.floats(allow_nan=False, allow_infinity=False),
        st.lists(st.sampled_from(["a", QUOTE, CALL, CLOSE, "<|", *',}]:k \né"{'])).map("".join),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(keys, values, max_size=4))
def test_what_is_written_reads_back(arguments: dict[str, Any]) -> None:
    try:
        text = QUOTE.join(write(arguments, None, DELIMITERS))
    except UnrepresentableError:
        assume(False)
    written, done, fault = read_everywhere(text, None)
    assert (done, fault) == (True, "")
    assert json.dumps(json.loads(written)) == json.dumps(arguments)


def test_bare_values_that_would_read_as_something_else_are_refused() -> None:
    with pytest.raises(UnrepresentableError):
        write({"s": 5}, VIEW, DELIMITERS)
    with pytest.raises(UnrepresentableError):
        write({"i": "5"}, VIEW, DELIMITERS)
