"""A regular expression for thousands of spellings: vocabularies have many special tokens that begin alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby


def longest_of(spellings: Iterable[str]) -> str:
    """The expression that matches the longest of the spellings (none: nothing). What they share is looked at once, so
    that their number does not matter."""
    words = sorted(set(spellings) - {""})
    return _branches(words) if words else "(?!)"


def _branches(words: Sequence[str]) -> str:
    branches = []
    for _, group in groupby(filter(None, words), key=lambda word: word[0]):
        alike = list(group)
        shared = _shared(alike[0], alike[-1])
        rests = [word[shared:] for word in alike]
        branches.append(re.escape(alike[0][:shared]) + (_branches(rests) if len(rests) > 1 else ""))
    return f"(?:{'|'.join(branches)}){'' if all(words) else '?'}"


def _shared(first: str, last: str) -> int:
    """How many characters the first and the last of sorted words, and so all of them, begin with alike."""
    pairs = enumerate(zip(first, last, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(first), len(last)))
