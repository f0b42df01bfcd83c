"""Grammars: terms that say what a model may write, and matchers that hold it to that."""

from __future__ import annotations

from isogloss.constraints.acceptance import Acceptance, accepts
from isogloss.constraints.compilation import compile_check
from isogloss.constraints.constraint import Constraint
from isogloss.constraints.matcher import Matcher
from isogloss.grammar import (
    Choice,
    FreeText,
    Grammar,
    JsonValue,
    Literal,
    Marker,
    Reference,
    Regex,
    Repeat,
    Rule,
    Sequence,
    Term,
    choice,
    optional,
    sequence,
)

__all__ = [
    "Acceptance",
    "Choice",
    "Constraint",
    "FreeText",
    "Grammar",
    "JsonValue",
    "Literal",
    "Marker",
    "Matcher",
    "Reference",
    "Regex",
    "Repeat",
    "Rule",
    "Sequence",
    "Term",
    "accepts",
    "choice",
    "compile_check",
    "optional",
    "sequence",
]
