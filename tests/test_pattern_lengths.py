"""The lengths of a pattern's strings, against what the engine says."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.schema.pattern_lengths import Lengths, leaves_some, lengths
from isogloss.schema.scalar_terminals import is_empty, strings_terminal


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("^$", (0, 0, True)),
        ("a", (1, None, True)),
        ("^a|b$", (1, None, True)),
        ("^[a-z]{2,5}$", (2, 5, True)),
        ("^(abc)*$", (0, None, False)),
        ("^(ab?){3}$", (3, 6, True)),
        ("^(abc|d?){2}$", (0, 6, False)),
        ("^(?:a{4,5}){2,}$", (8, None, False)),
        ("^(?:a{3,4}){3,}$", (9, None, True)),
        ("^(a+){2}$", (2, None, True)),
        ("^\U0001f432$", (1, 1, True)),
        ("^(?!a)b", None),
        ("^[]$", None),
        ("^(?<=a)", None),
    ],
)
def test_lengths(pattern: str, found: tuple[int, int | None, bool] | None) -> None:
    assert lengths(pattern) == (None if found is None else Lengths(*found))


PATTERNS = st.recursive(
    st.sampled_from(["a", "[ab]", "", "b?"]),
    lambda inner: st.one_of(
        st.builds("{}{}".format, inner, inner),
        st.builds("(?:{}|{})".format, inner, inner),
        st.builds("(?:{}){}".format, inner, st.sampled_from(["*", "+", "?", "{2}", "{2,3}", "{3,}"])),
    ),
    max_leaves=5,
)


@settings(max_examples=60)
@given(PATTERNS, st.sampled_from(["^(?:{})$", "^(?:{})", "(?:{})$"]), st.integers(0, 12), st.integers(0, 2) | st.none())
def test_what_a_shape_tells_the_engine_says_too(inner: str, frame: str, low: int, more: int | None) -> None:
    pattern, high = frame.format(inner), None if more is None else low + more
    told = leaves_some(pattern, low, high)
    assert told in (None, not is_empty(strings_terminal((pattern,), low, high)))
