"""An llguidance grammar as servers with llguidance in them read it.

Two things differ there from llguidance in process, and both end in output that the grammar does not allow. llama.cpp
has names for control tokens only, so the name of a user-defined token (``<tool_call>`` in some models) is unknown and
the whole grammar is dropped: every special token is told by its id. And where the grammar leaves no choice of text,
llama.cpp and vLLM make the text into tokens with special ones switched on, so that a literal that spells a control
token becomes it: such grammars are told not to force tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from isogloss.constraints.lark import HEADER

UNFORCED_HEADER = '%llguidance {"no_forcing": true}'
_LEXEME = re.compile(
    r'(?P<text>"(?:[^"\\]|\\.)*"?)|//[^\n]*|(?P<regex>/(?:[^/\\\n]|\\.)+/?)|(?P<name><[^\s<>\[][^\s<>]*>)'
)
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})|\\(.)")


def for_server(grammar: str, special_tokens: Mapping[str, int]) -> str:
    """The grammar with special tokens by id; tokens are not forced where text in it spells one."""
    first = {spelling[0] for spelling in special_tokens}
    texts: list[str] = []

    def by_id(match: re.Match[str]) -> str:
        lexeme = match.group()
        if match["name"] is not None and lexeme in special_tokens:
            return f"<[{special_tokens[lexeme]}]>"
        if match["text"] is not None or match["regex"] is not None:
            text = _ESCAPE.sub(_unescaped, lexeme)
            if not first.isdisjoint(text):
                texts.append(text)
        return lexeme

    rewritten = _LEXEME.sub(by_id, grammar)
    written = "\0".join(texts)
    if rewritten.startswith(HEADER) and any(spelling in written for spelling in special_tokens):
        return UNFORCED_HEADER + rewritten.removeprefix(HEADER)
    return rewritten


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    return chr(int(code, 16)) if code else str(match[3])
