from __future__ import annotations

import json

import pytest

from isogloss.engines._server_grammar import for_server

SPECIAL = {"<|im_end|>": 2, "<think>": 7, "[INST]": 9}


def test_names_become_ids() -> None:
    grammar = '%llguidance {}\nstart: <|im_end|> t <think>\nt: /[<>a-z]+/ "<b>" <[9]> <unknown>'
    assert for_server(grammar, SPECIAL) == ('%llguidance {}\nstart: <[2]> t <[7]>\nt: /[<>a-z]+/ "<b>" <[9]> <unknown>')


@pytest.mark.parametrize(
    "body",
    [
        '"a<think>"',
        r'"\u003cthink\u003e"',
        r'"\x3cthink>"',
        r"/a<\think>/",
        r"/<\|im_end\|>/",
        '%json {"const": "[INST]"}',
        '"quote \\" <think>"',
        '"never ended <think>',
    ],
)
def test_text_that_spells_a_special_token_is_not_forced(body: str) -> None:
    assert for_server(f"%llguidance {{}}\nstart: {body}", SPECIAL) == (
        f'%llguidance {{"no_forcing": true}}\nstart: {body}'
    )


@pytest.mark.parametrize(
    "grammar",
    [
        '%llguidance {}\nstart: "<" "b"',
        '%llguidance {}\n// <think> is "spelled" in a comment only\nstart: /a/',
        '%llguidance {"no_forcing": true}\nstart: "<think>"',
        f"%llguidance {{}}\nstart: %json {json.dumps({'type': 'object', 'properties': {'a/b': {'const': '<'}}})}",
    ],
)
def test_other_grammars_stay_as_they_are(grammar: str) -> None:
    assert for_server(grammar, SPECIAL) == grammar


def test_unended_text_is_read_once() -> None:
    grammar = "%llguidance {}\nstart: " + '"' + r"\"" * 200_000
    assert for_server(grammar, SPECIAL) == grammar
