"""Patterns as terminals: they agree with a validator on every string, and say what they cannot do."""

from __future__ import annotations

import json

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.constraints import Constraint, Matcher
from isogloss.schema.lowering import lower
from isogloss.schema.pattern_tree import UnsupportedPatternError
from isogloss.schema.patterns import strict_spelling, terminal
from isogloss.tokenizers import byte_level

PATTERNS = [
    "",
    "a",
    "^a+$",
    "^a|b$",
    "(^a|b)c",
    "^(?!foo).*$",
    "^(?!.*bar)[a-z]+$",
    "^((?!ab).)*$",
    r"^\d{3}-\w*$",
    r'^[^"\\]+$',
    r"\\$",
    "^$",
    r"^\p{L}+$",
    r"[^\x00-\x7f]",
    "^(a|b|)(c)?$",
    "^(?=.*[A-Z])(?=.*[0-9]).{2,4}$",
    r"^\S+$",
    r"^[\w.-]+@",
    r"^\cC$",
    r"^[a-z\-\d]+$",
    r"^\/a\/$",
    "^a{2,}b{0,1}$",
    "^🐲*$",
    r"^\u00e9",
    '^[^"]*$',
    r"^[^\\]*$",
    r"^[^ -~]*$",
    r"^[\x00-\x1f]|[^!-~]$",
    "x(?!y)",
    "(?!a)$",
    "^(?:a|(?=b)bc)$",
    r"^[\s\S]$",
    "^(ab?|c{2}){1,2}$",
]
ALPHABET = 'aAbBcfoxy019-_./@é🐲"\\\n<é\x03\x7f '


def matches(pattern: str, text: str) -> bool:
    matcher = Constraint.from_json_schema({"type": "string", "pattern": pattern}).matcher(byte_level())
    tokens = list(json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f").encode())
    return matcher.accept_all(tokens) == len(tokens) and matcher.is_complete


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_terminal_agrees_with_the_validator(pattern: str) -> None:
    validator = jsonschema_rs.validator_for({"pattern": pattern})

    @settings(max_examples=40, deadline=None)
    @given(st.text(ALPHABET, max_size=6))
    def check(text: str) -> None:
        assert matches(pattern, text) == validator.is_valid(text)

    check()
    for text in ("", "a", "foo", "ab", "bar", "A1b", "123-x", "é", "🐲🐲", '"', "\\", "\n", "/a/", "b", "bc"):
        assert matches(pattern, text) == validator.is_valid(text), text


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"(a)\1", "back-reference"),
        (r"\ba", "word boundary"),
        ("(?<=a)b", "look-behind"),
        ("((?=a).)+b", "repeated look-ahead"),
        ("(?i)a", "group options"),
        ("a{5000}a{5000}", "size"),
        (r"\p{Nonsense}", "property"),
        ("(", "parenthesis"),
    ],
)
def test_what_is_not_regular_is_told(pattern: str, reason: str) -> None:
    with pytest.raises(UnsupportedPatternError, match=reason):
        terminal(pattern)


@pytest.mark.parametrize("pattern", [r"^(a|b)\1$", r"\bfoo\b", "(?<=a)b"])
def test_a_guard_holds_what_the_grammar_cannot(pattern: str) -> None:
    validator = jsonschema_rs.validator_for({"pattern": pattern})
    for text in ("aa", "ab", "bb", "a foo b", "afoo", "b", "xab"):
        assert matches(pattern, text) == validator.is_valid(text), text


def test_spellings_of_one_character_are_one_character() -> None:
    grammar = lower({"type": "string", "pattern": "^<$", "maxLength": 1}).grammar().text()
    for spelled in ('"<"', '"\\u003c"', '"\\u003C"'):
        matcher = Matcher(grammar, byte_level())
        assert matcher.accept_all(list(spelled.encode())) == len(spelled), spelled
    excluded = Constraint.from_json_schema({"type": "string", "not": {"pattern": "<"}, "minLength": 1})
    for spelled in ('"<"', '"\\u003c"'):
        matcher = excluded.matcher(byte_level())
        assert matcher.accept_all(list(spelled.encode())) < len(spelled), spelled


def test_lone_brackets_are_taken_as_browsers_do() -> None:
    assert strict_spelling("a]{b}[c[]d{2}") == r"a\]\{b\}[c\[]d{2}"
    assert matches("^a]$", "a]")
