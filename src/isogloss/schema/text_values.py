"""What raw text may stand for a value, for notations that write strings as they are: languages of plain text.

The canonical form of a schema tells its strings from its other values. Each shape of strings becomes a Lark expression
of terminals over decoded text, as `isogloss.schema.scalar_terminals` makes them over JSON text.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

import msgspec
from jsonschema_rs import CanonicalSchema
from jsonschema_rs import canonical as forms

from isogloss.schema import decimals, scalar_terminals
from isogloss.schema.canonical import Canonical
from isogloss.schema.formats import GUARDED, format_terminal
from isogloss.schema.pattern_spelling import AS_TEXT
from isogloss.schema.pattern_tree import UnsupportedPatternError
from isogloss.schema.patterns import terminal

MAXIMUM_LENGTH = 10_000
"""Above it a bound on length is not counted by the grammar."""
ANYTHING = "/(?s:.*)/"
LARGEST_KEPT = 16_384
"""Bytes of a schema that is kept with what was found: a bound on memory."""


class TextValues(msgspec.Struct, frozen=True):
    """The values of a schema, by how raw text can say them."""

    strings: str | None
    """An expression for its strings as they are; None for none."""
    is_exact: bool
    """Whether ``strings`` are all that: where not, they are more than the strings of the schema."""
    sure: str | None
    """An expression for strings that are the schema's for sure, also where not all are; None for none."""
    scalars: str | None
    """An expression for its numbers and words, where one says them; None for none."""
    others: frozenset[str]
    """The types of its values that are neither in ``strings`` nor in ``scalars``."""


def text_values(schema: Any) -> TextValues:
    """The values of a schema. Raises what `Canonical` does."""
    text = msgspec.json.encode(schema)
    return _kept(text) if len(text) <= LARGEST_KEPT else _read(text)


@functools.lru_cache(maxsize=512)
def _kept(schema: bytes) -> TextValues:
    return _read(schema)


def _read(schema: bytes) -> TextValues:
    canonical = Canonical(msgspec.json.decode(schema))
    found = _Found(canonical)
    found.add(canonical.root)
    return TextValues(
        " | ".join(dict.fromkeys(found.strings)) or None,
        found.is_exact and canonical.exact,
        " | ".join(dict.fromkeys(found.sure)) if found.sure and canonical.exact else None,
        " | ".join(dict.fromkeys(found.scalars)) or None,
        frozenset(found.others),
    )


_WORDS = {"null": '"null"', "boolean": '"true" | "false"'}


class _Found:
    def __init__(self, canonical: Canonical) -> None:
        self.strings: list[str] = []
        self.scalars: list[str] = []
        self.others: set[str] = set()
        self.sure: list[str] = []
        self.is_exact = True
        self._canonical = canonical
        self._seen: set[CanonicalSchema] = set()

    def add(self, node: CanonicalSchema) -> None:
        resolved, is_exact = self._canonical.resolve(node)
        if resolved not in self._seen:
            self._seen.add(resolved)
            surely = len(self.sure)
            is_exact = self._add(resolved) and is_exact
            if not is_exact:
                del self.sure[surely:]
        self.is_exact = self.is_exact and is_exact

    def _add(self, resolved: CanonicalSchema) -> bool:
        """Add what a shape or a choice says, and tell whether no more than that was added."""
        is_exact = True
        view = resolved.view()
        if isinstance(view, forms.StringView):
            self._strings(view)
        elif isinstance(view, (forms.IntegerView, forms.NumberView)):
            self._numbers(view)
        elif isinstance(view, (forms.ConstView, forms.EnumView)):
            for value in [view.value] if isinstance(view, forms.ConstView) else view.values:
                self._value(value)
        elif isinstance(view, (forms.TrueView, forms.MultiTypeView)):
            for name in _ALL if isinstance(view, forms.TrueView) else view.types:
                self._type(name)
        elif isinstance(view, forms.AnyOfView):
            for branch in view.branches:
                self.add(branch)
        elif isinstance(view, forms.OneOfView):
            branches, is_exact = self._canonical.exclusive(resolved)
            for branch in branches:
                self.add(branch)
        elif isinstance(view, forms.TypedGroupView):
            self.add(view.body)
        elif isinstance(view, (forms.ArrayView, forms.ObjectView)):
            self.others.add("array" if isinstance(view, forms.ArrayView) else "object")
        elif not isinstance(view, forms.FalseView):
            is_exact = False
            for name in _ALL:
                self._type(name)
        return is_exact

    def _type(self, name: str) -> None:
        if name == "string":
            self._add_strings(ANYTHING, ANYTHING)
        elif name in _WORDS:
            self.scalars.append(_WORDS[name])
        elif name in ("integer", "number"):
            self.scalars.append(decimals.INTEGER if name == "integer" else decimals.NUMBER)
        else:
            self.others.add(name)

    def _value(self, value: Any) -> None:
        if isinstance(value, str):
            self._add_strings(_literal(value), _literal(value))
        elif isinstance(value, (list, dict)):
            self.others.add("array" if isinstance(value, list) else "object")
        elif value is None or isinstance(value, bool):
            self.scalars.append(json.dumps(json.dumps(value)))
        else:
            self.scalars += [json.dumps(text) for text in decimals.spellings(value)]

    def _numbers(self, view: forms.IntegerView | forms.NumberView) -> None:
        integers = isinstance(view, forms.IntegerView)
        expression = None
        if not (view.multiple_of or view.not_multiple_of or getattr(view, "excludes_integers", False)):
            interval = scalar_terminals.interval_of(view)
            expression = decimals.range_terminal(interval, integers=integers)
        if expression is None:
            self.others.add("integer" if integers else "number")
        else:
            self.scalars.append(f"({expression})")

    def _add_strings(self, language: str, sure: str | None) -> None:
        self.strings.append(language)
        if sure is None:
            self.is_exact = False
        else:
            self.sure.append(sure)
            self.is_exact = self.is_exact and sure == language

    def _strings(self, view: forms.StringView) -> None:
        parts = list(self._languages(view))
        low, high = view.min_length or 0, view.max_length
        is_counted = max(low, high or 0) <= MAXIMUM_LENGTH
        low, high = min(low, MAXIMUM_LENGTH), None if high is None or high > MAXIMUM_LENGTH else high
        languages = [language for language, _ in parts if language is not None]
        if low or high is not None or not languages or languages[0].startswith("~"):
            bounds = "*" if low == 0 and high is None else f"{{{low},{'' if high is None else high}}}"
            languages.insert(0, f"/(?s:.{bounds})/")
        language = _together(languages)
        surer = [more for _, more in parts]
        if not is_counted or None in surer or view.content_media_types or view.content_encodings:
            self._add_strings(language, None)
        else:
            self._add_strings(language, _together([*languages, *filter(None, surer)]))

    def _languages(self, view: forms.StringView) -> Iterator[tuple[str | None, str | None]]:
        """What strings have to be, each with what makes sure of the rest: nothing where that is all, None where that
        is not known."""
        for pattern in view.patterns:
            yield _known(_of_pattern(pattern), "")
        for name in view.formats:
            language = format_terminal(name, AS_TEXT)
            yield (None if language is None else f"({language})"), _SURE.get(name) if name in GUARDED else ""
        for pattern in view.excluded_patterns:
            yield _known(_of_pattern(pattern), "~")
        for name in view.excluded_formats:
            yield _known(None if name in GUARDED else format_terminal(name, AS_TEXT), "~")
        if view.excluded:
            yield f"~({' | '.join(map(_literal, view.excluded))})", ""


_ALL = ("null", "boolean", "number", "string", "array", "object")
_SURE = {"hostname": r"(~/(?s:.*)[Xx][Nn]--(?s:.*)/ & /(?s:.{0,253})/)"}
"""What makes a string of a guarded format sure to be one."""


def _known(language: str | None, sign: str) -> tuple[str | None, str | None]:
    return (None, None) if language is None else (f"{sign}({language})", "")


def _together(languages: list[str]) -> str:
    return languages[0] if len(languages) == 1 else f"({' & '.join(languages)})"


def _of_pattern(pattern: str) -> str | None:
    try:
        return terminal(pattern, AS_TEXT)
    except UnsupportedPatternError:
        return None


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
