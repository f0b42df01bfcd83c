"""Python's literals: every literal that JSON has a value for, at every cut; and what render writes, Python reads."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.notations.python import JSON_WORDS, ArgumentsReader, write_arguments
from isogloss.testing import cuts


def read(pieces: Iterable[str], names: Sequence[str] = ()) -> tuple[str, bool, str, int]:
    """The JSON text, whether the call was closed, the fault, and how much was read."""
    reader = ArgumentsReader(names)
    held = written = ""
    consumed = 0
    for piece in pieces:
        held += piece
        position, fragment = reader.read(held, 0)
        written += fragment
        held = held[position:]
        consumed += position
        if reader.done or reader.fault:
            break
    return written, reader.done, reader.fault, consumed


def read_everywhere(text: str, names: Sequence[str] = ()) -> tuple[str, bool, str, int]:
    whole = read([text], names)
    for pieces in cuts(text, 60):
        assert read(pieces, names)[:3] == whole[:3], pieces
    return whole


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", {}),
        ("a=1, b='x',", {"a": 1, "b": "x"}),
        ("a = [1, 2,], b={'x': (1,), 'y': (), 'z': ('q'), 'w': ('q' 'r')}", None),
        ("a=((((1))), (2), 3)", {"a": [1, 2, 3]}),
        ("**{'a-b': 1, 'c': 2}, d=3, **{}", {"a-b": 1, "c": 2, "d": 3}),
        ("**{}, a=1", {"a": 1}),
        ("k=null, j=true", {"k": None, "j": True}),
        ("k={1: 2, a: 3}", {"k": {"1": 2, "a": 3}}),
        ("# c, (\n a=1 # x\n, # y\n b=\\\n2", {"a": 1, "b": 2}),
        ("a='x # y'", {"a": "x # y"}),
        ("a='line\nbreak'", {"a": "line\nbreak"}),
        ("a='\\ud83d\\ude42'", {"a": "🙂"}),
    ],
)
def test_arguments(arguments: str, expected: dict[str, Any] | None) -> None:
    if expected is None:
        expected = {"a": [1, 2], "b": {"x": [1], "y": [], "z": "q", "w": "qr"}}
    written, done, fault, consumed = read_everywhere(f"{arguments}) and more")
    assert (done, fault) == (True, "")
    assert consumed == len(arguments) + 1
    assert json.loads(written) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [("1, 'q', c=True", {"p": 1, "q": "q", "c": True}), ("None, [1]", {"p": None, "q": [1]}), ("r'x'", {"p": "x"})],
)
def test_positional_arguments_are_named_in_order(arguments: str, expected: dict[str, Any]) -> None:
    written, done, *_ = read_everywhere(f"{arguments})", ("p", "q"))
    assert done
    assert json.loads(written) == expected


LITERALS = [
    *(r"'a\'b\"c'", '"a\\"b"', "'''a'b\"\"c\n'''", '"""x "" y\\n"""', r"r'\d\''", r"rb'\x'", "b'ab\\x41'", "u'é'"),
    *("f'a{{b}}'", r"'\x41\101\0\u00e9\U0001F600\a\v\q\/\b\f'", "'a' 'b' \"c\" r'\\d'", "'a\\\nb'", "'' ''", "''"),
    *('""""""', "'\\r\\n\\t\\\\'", "0x1F", "0o17", "0b101", "1_000", "-5", "+5", "1.", "0.5", ".5", "1e5", "-2e-3"),
    *("1_0.5e-3", "007.5", "00", "True", "None", "[]", "{}", "()", "[[], {}]", "(1, (2, 'x'))", "('a'\n'b')"),
]


@pytest.mark.parametrize("literal", LITERALS)
def test_literals_mean_what_python_says(literal: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = eval(literal)
    value = value.decode("latin-1") if isinstance(value, bytes) else json.loads(json.dumps(value))
    written, done, fault, _ = read_everywhere(f"k={literal}, l=[{literal}])")
    assert (done, fault) == (True, "")
    assert json.dumps(json.loads(written)) == json.dumps({"k": value, "l": [value]})


@pytest.mark.parametrize(
    "arguments",
    [
        *("a=b", "a=f(x=1)", "a=1 2", "a='x'+'y'", "a=f'{x}'", "a=f'}'", "a==1", "*a", "a=007", "a=1j", "a=[1", "a=}"),
        *("a='\\N{DASH}'", "a={1,2}", "a:1", "a=1e999", "=1", "a=*b", "[a=1]", "a=1;b", "a=\\q", ",", "a=1,,b=2"),
        *("a='\\U00110000'", "1", "a=[1}", "a=(1]", "**[1]", "a" * 2_000 + "=1", "a=" + "[" * 300),
    ],
)
def test_what_is_no_literal_is_a_fault(arguments: str) -> None:
    _, done, fault, _ = read_everywhere(f"{arguments})")
    assert not done
    assert fault


def test_a_string_streams_as_it_comes() -> None:
    reader = ArgumentsReader()
    assert reader.read("text='ab", 0) == (8, '{"text":"ab')
    assert reader.read('c"d', 0) == (3, 'c\\"d')
    assert reader.read("\\", 0) == (0, "")
    assert reader.read("\\'", 0) == (2, "'")
    assert reader.read("')", 0) == (2, '"}')


values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**20), 10**20),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.sampled_from("ab'\"\\\n\t\0é🙂{}#(),=`r ")),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=6,
)
keys = st.sampled_from(["a", "b_2", "b-c", "class", "é", "", "x y", "None"])


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(keys, values, max_size=4), st.sampled_from(['"', "'"]))
def test_what_is_written_reads_back(arguments: dict[str, Any], quote: str) -> None:
    written = write_arguments(arguments, quote)
    assert json.dumps(eval(f"dict({written})")) == json.dumps(arguments)
    for text in (written, write_arguments(arguments, quote, JSON_WORDS)):
        found, done, fault, _ = read_everywhere(f"{text})")
        assert (done, fault) == (True, "")
        assert json.dumps(json.loads(found)) == json.dumps(arguments)
