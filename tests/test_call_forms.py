"""Calls written from a form are those that are read back, whatever markup of the dialect their values hold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isogloss.dialects import _tag_writing, dialect_names, get_dialect
from isogloss.dialects._base import Dialect
from isogloss.dialects._call_forms import call_form
from isogloss.dialects._tag_calls import TagCallScanner
from isogloss.errors import UnrepresentableError
from isogloss.messages import Tool, ToolCall

NAMES = [name for name in dialect_names() if isinstance(get_dialect(name).scanner(), TagCallScanner)]
ANY: dict[str, Any] = {}
SCHEMAS: tuple[dict[str, Any], ...] = (
    {"type": "string"},
    {"type": "integer"},
    {"type": ["string", "null"]},
    {"enum": ["a", 1, None, ""]},
    {"type": "array", "items": {"type": "string"}},
    {"type": "object"},
    ANY,
)
KEYS = ("city", "p1", "other key", "a-b", 'a"b', "a&amp;b", "name", " p", "a>b")


def written(dialect: Dialect, call: ToolCall, tools: Sequence[Tool]) -> str | None:
    """The call; ``None`` where the dialect cannot carry it."""
    try:
        return dialect.render_calls([call], tools)
    except UnrepresentableError:
        return None


def fragments(dialect: Dialect) -> list[str]:
    """The dialect's markers, and what its calls are made of: tags, their beginnings and ends, and whole calls."""
    calls = [ToolCall("", name, {"city": "x", "p1": 5}) for name in ("find", "stop")]
    texts = [dialect.render_calls(calls), *(dialect.render_calls([call]) for call in calls)]
    tags = {tag for text in texts for tag in re.findall(r"\S+?[>\]]|\s+|[^<\[]+", text)}
    halves = {part for tag in tags for part in (tag[:3], tag[:-1], tag[1:], tag[: len(tag) // 2])}
    blanks = [" ", "\n", "\r", "\r\n", "\t"]
    others = ["", "x", "5", "null", "&lt;", "</", "</b>", "/>", "<![CDATA[", "]]>", *"\"'&`<>[]{"]
    return sorted({*dialect.markers.all, *tags, *halves, *texts, *blanks, *others})


def values(texts: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    scalars = st.one_of(texts, texts, texts, st.none(), st.booleans(), st.integers(-9, 10**20), st.floats(-9, 9))
    return st.one_of(scalars, st.lists(texts, max_size=2), st.dictionaries(st.sampled_from(KEYS), scalars, max_size=2))


@pytest.mark.parametrize("name", NAMES)
def test_a_form_writes_what_reading_back_writes(name: str) -> None:
    dialect = get_dialect(name)
    texts = st.lists(st.sampled_from(fragments(dialect)), max_size=6).map("".join)
    schemas = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(SCHEMAS), max_size=4)
    from_forms = 0

    @settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(
        st.sampled_from(["find", "stop", "unknown", "a b", "[x"]),
        st.dictionaries(st.sampled_from(KEYS), values(texts), max_size=3),
        st.tuples(schemas, schemas),
    )
    def check(called: str, arguments: dict[str, Any], properties: tuple[dict[str, Any], dict[str, Any]]) -> None:
        nonlocal from_forms
        tools = [
            Tool(tool, "", {"type": "object", "properties": members})
            for tool, members in zip(("find", "stop"), properties, strict=True)
        ]
        call = ToolCall("", called, arguments)
        with patch.object(_tag_writing, "write_read_back", wraps=_tag_writing.write_read_back) as read_back:
            quickly = written(dialect, call, tools)
        from_forms += quickly is not None and not read_back.called
        with patch.object(_tag_writing, "call_form", return_value=None):
            assert quickly == written(dialect, call, tools)

    check()
    assert from_forms > 40


@pytest.mark.parametrize("name", NAMES)
def test_values_without_markup_of_the_dialect_need_no_reading_back(name: str) -> None:
    dialect = get_dialect(name)
    call = ToolCall(
        "", "find", {"city": "Paris, <b>France</b> & if a < b: [1, 2]", "p1": 5, "a-b": "\n\ttwo\nlines \n"}
    )
    with patch.object(_tag_writing, "write_read_back", side_effect=AssertionError):
        text = dialect.render_calls([call])
    assert dialect.parse(text).tool_calls[0].arguments == call.arguments


def test_names_of_any_length_are_kept_nowhere() -> None:
    dialect = get_dialect(NAMES[0])
    call = ToolCall("", "find", dict.fromkeys((f"key{number}" for number in range(1000)), ""))
    assert call_form(dialect, lambda *_: None, call) is None
