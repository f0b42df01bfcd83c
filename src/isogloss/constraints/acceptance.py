"""Whether a text satisfies a constraint, and where it stops doing so."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from isogloss.prompt import Prompt
from isogloss.tokenizers import byte_level

if TYPE_CHECKING:
    from isogloss.constraints.constraint import Constraint
    from isogloss.tokenizers import Tokenizer


class Acceptance(NamedTuple):
    """``offset``, in characters, is where the text was refused; its length where it is accepted, or lacks something."""

    is_accepted: bool
    offset: int


def accepts(constraint: Constraint, text: str | Prompt, tokenizer: Tokenizer | None = None) -> Acceptance:
    """Whether a constraint accepts a whole text, byte by byte.

    Markers that ``tokenizer`` has as control tokens are those here too: in a `Prompt`, its marker segments; in a
    string, wherever it spells one. Raises `GrammarError` when the grammar does not compile.
    """
    special = () if tokenizer is None else sorted(constraint.markers & tokenizer.special_tokens.keys())
    vocabulary = byte_level(special, ends_by_name=False)  # an engine stops at some markers; a text goes on
    matcher = constraint.matcher(vocabulary)
    control = constraint.markers & vocabulary.special_tokens.keys()
    offset = 0
    for part, is_marker in _parts(text, control):
        tokens = [vocabulary.special_tokens[part]] if is_marker else vocabulary.encode(part)
        accepted = matcher.accept_all(tokens)
        if accepted < len(tokens):
            return Acceptance(False, offset + _characters(tokens[:accepted]))
        offset += len(part)
    return Acceptance(matcher.is_complete, offset)


def _parts(text: str | Prompt, control: frozenset[str]) -> list[tuple[str, bool]]:
    """The text in pieces, with whether each is a control token."""
    if isinstance(text, Prompt):
        return [(segment.text, segment.is_marker and segment.text in control) for segment in text.segments]
    if not control:
        return [(text, False)]
    longest_first = sorted(control, key=len, reverse=True)
    pieces = re.split(f"({'|'.join(map(re.escape, longest_first))})", text)
    return [(piece, position % 2 == 1) for position, piece in enumerate(pieces)]


def _characters(data: list[int]) -> int:
    """How many whole characters the bytes are."""
    return len(bytes(data).decode("utf-8", "ignore"))
