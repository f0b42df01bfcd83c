"""How the tags of elements are spelled (`minimax_m3`): each behind a token, ``token`` in what follows."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import regex

from isogloss.dialects._invoke_calls import CallLexicons
from isogloss.dialects._lexicon import Lexicon
from isogloss.notations.elements import KEY

_SPACE = r"\s{0,64}+"


def patterns(token: str) -> dict[str, str]:
    """Patterns for a family's `Markers`: of calls outside a block, and of a block whose token is missing."""
    own = _begin(token)
    return {
        "invoke": _invoke(own),
        "invoke_close": f"{own}/invoke>",
        "parameter_close": f"{own}/{KEY}>",
        "block": rf"<tool_call>(?={_SPACE}{own}invoke\s)",
    }


@lru_cache(maxsize=4)
def element_syntax(token: str) -> CallLexicons:
    """The lexicons of a call. Where nothing but a tag may stand, its token may be missing."""
    own = _begin(token)
    any_own = rf"(?:{regex.escape(token)})?+<"
    between = {
        "parameter": rf"{any_own}(?P<key>{KEY})/?>",
        "invoke_close": rf"{any_own}/invoke>",
        "call_close": rf"{any_own}/tool_call>",
        "invoke": _invoke(any_own),
        "call": rf"{any_own}tool_call>",
        "parameter_close": rf"{any_own}/(?P<closed>{KEY})>",
    }
    block = {kind: between[kind] for kind in ("invoke", "call_close", "call")}
    ends = rf"{own}/invoke>{_SPACE}(?:{own}/tool_call>|{own}invoke\s"
    closers = {
        "parameter_close": rf"{any_own}/(?P<closed>{KEY})>(?:(?={behind(token)}))?",
        "next_parameter": rf"(?={own}(?P<key>{KEY})/?>)",
        "next_call": rf"(?={_invoke(own)}{_SPACE}{own})",
    }
    beginning = rf"<(?=/|\Z)|{regex.escape(token[0])}(?=<|\Z)"
    return CallLexicons(
        Lexicon({}, patterns=block),
        Lexicon({}, patterns=between),
        Lexicon({}, patterns={**closers, "not_closed": f"(?={ends}))"}, beginning=beginning),
        Lexicon({}, patterns={**closers, "not_closed": rf"(?={ends}|\Z))"}, beginning=beginning),
    )


def behind(token: str) -> str:
    """What a closing tag is followed by: another tag."""
    return rf"{_SPACE}{_begin(token)}(?P<behind>[^<>\n]{{1,128}}+)>"


def before_call(token: str) -> str:
    """White space in front of the next call or the end of the block, whose token may be missing."""
    return rf"{_SPACE}(?:</tool_call>|(?={_begin(token)}(?:/tool_call>|invoke\s)))"


def _begin(token: str) -> str:
    return f"{regex.escape(token)}<"


@lru_cache(maxsize=8)
def matcher(pattern: str) -> Callable[..., regex.Match[str] | None]:
    """``regex``'s match of a pattern, which takes ``partial=True``."""
    match: Callable[..., regex.Match[str] | None] = regex.compile(pattern).match
    return match


def _invoke(begins: str) -> str:
    attribute = r"""(?:"[^"\n]{0,256}+"|'[^'\n]{0,256}+'|[^\s"'<>]{1,256}+)"""
    return rf"{begins}invoke\s{{1,8}}+name\s?=\s?(?P<name>{attribute})\s{{0,8}}+/?>"
