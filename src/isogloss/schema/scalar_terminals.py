"""Strings, numbers and literals of a schema, as terminals."""

from __future__ import annotations

import functools
import json
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from jsonschema_rs import CanonicalSchema
from jsonschema_rs import canonical as forms

from isogloss.schema import decimals
from isogloss.schema.formats import GUARDED, format_terminal
from isogloss.schema.pattern_spelling import ANY_CHARACTER, NUMERIC_ESCAPES, SHORT_ESCAPES, quoted_literal
from isogloss.schema.pattern_tree import UnsupportedPatternError
from isogloss.schema.patterns import terminal

if TYPE_CHECKING:
    from isogloss.schema.json_grammar import GrammarWriter

MAXIMUM_DIVISOR = 10_000
"""Above it (without powers of ten) multiples are not told by the grammar: the automaton has a state a remainder."""
MAXIMUM_LENGTH = 1_000_000
"""Above it a bound on length is not counted by the grammar."""

MAXIMUM_CONJUNCTION = 6
"""Expressions that one terminal may intersect."""
NO_EXTENSION = "NoExtension"
"""How the engine says that nothing can come next."""

FREE_CHARACTER = (
    r'(?:[^"\\\x00-\x1f]|\\(?:["\\\/bfnrt]|u(?:[0-9a-ce-fA-CE-F][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}'
    r"|[dD][89aAbB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})))"
)
"""One character of a string that only its length constrains: every spelling that JSON has for it."""

ANY_KEY = f'/"{ANY_CHARACTER}*"/'
NOTHING = r"/[^\x00-\x{10FFFF}]/"
"""A terminal that matches no text."""

_VARIABLE = frozenset(map(chr, NUMERIC_ESCAPES | SHORT_ESCAPES.keys())) - {"/"}


def quoted(text: str) -> str:
    """A Lark string literal."""
    return json.dumps(text, ensure_ascii=False)


def _literal_text(text: str) -> str:
    return quoted(quoted(text)) if _VARIABLE.isdisjoint(text) else f'/"{quoted_literal(text)}"/'


def literal(value: Any) -> list[str]:
    """The spellings of a scalar, each a Lark literal or expression."""
    if value is None:
        return ['"null"']
    if isinstance(value, bool):
        return ['"true"' if value else '"false"']
    if isinstance(value, str):
        return [_literal_text(value)]
    return [quoted(text) for text in decimals.spellings(value)]


def key(writer: GrammarWriter, name: str) -> str:
    """An expression for one key."""
    text = _literal_text(name)
    return writer.terminal(text) if text.startswith("/") else text


def key_alternatives(names: list[str]) -> str:
    """A regular expression for any of some keys, quotes included."""
    return f'/"(?:{"|".join(map(quoted_literal, names))})"/'


# --- strings -------------------------------------------------------------------------------------------------------


def string(writer: GrammarWriter, node: CanonicalSchema, view: forms.StringView) -> str | None:
    """An expression for the strings of a node."""
    parts = string_parts(writer, node, view)
    if parts is None:
        return writer.shared("JSON_STRING")
    parts = _within_means(writer, node, parts)
    expression = " & ".join(parts)
    if len(parts) > 1 and is_empty(expression):
        return None
    return writer.terminal(expression)


def _within_means(writer: GrammarWriter, node: CanonicalSchema, parts: list[str]) -> list[str]:
    """As many of the conjuncts as the engine can hold at once, the first ones; a guard holds the others.

    The states of a conjunction are the product of those of its parts.
    """
    if len(parts) == 1:
        return parts
    kept = parts[:MAXIMUM_CONJUNCTION]
    while len(kept) > 1 and _may_begin(" & ".join(kept)) is None:
        kept = kept[:-1]
    if len(kept) < len(parts):
        writer.mark(node, "value")
    return kept


def key_expression(writer: GrammarWriter, node: CanonicalSchema, owner: CanonicalSchema) -> str | None:
    """An expression for the keys that a schema of property names admits; None where it admits all."""
    resolved, is_exact = writer.canonical.resolve(node)
    if not is_exact:
        writer.mark(owner, "value")
    view = resolved.view()
    if isinstance(view, forms.StringView):
        parts = string_parts(writer, owner, view, free=False)
        return None if parts is None else " & ".join(parts)
    if isinstance(view, (forms.ConstView, forms.EnumView)):
        values = [view.value] if isinstance(view, forms.ConstView) else view.values
        names = [value for value in values if isinstance(value, str)]
        return key_alternatives(names) if names else NOTHING
    if isinstance(view, forms.AnyOfView):
        options = [key_expression(writer, branch, owner) for branch in view.branches]
        if any(option is None for option in options):
            return None
        return " | ".join(f"({option})" for option in options)
    if isinstance(view, forms.TypedGroupView):
        return key_expression(writer, view.body, owner)
    if isinstance(view, forms.MultiTypeView):
        return None if "string" in view.types else NOTHING
    if isinstance(view, (forms.NumberView, forms.IntegerView, forms.ArrayView, forms.ObjectView, forms.FalseView)):
        return NOTHING
    if not isinstance(view, forms.TrueView):
        writer.mark(owner, "value")
    return None


def string_parts(
    writer: GrammarWriter, owner: CanonicalSchema, view: forms.StringView, *, free: bool = True
) -> list[str] | None:
    """The conjuncts of a string's terminal, None for no constraint. ``owner`` is marked where a guard has to help."""
    low, high = view.min_length or 0, view.max_length
    if high is not None and high > MAXIMUM_LENGTH:
        writer.mark(owner, "value")
        high = None
    parts = _languages(writer, owner, view)
    if low > MAXIMUM_LENGTH:
        writer.mark(owner, "value")
        low = 0
    if low or high is not None or not parts or parts[0].startswith("~"):
        if not (low or high is not None or parts):
            return None
        bounds = "*" if low == 0 and high is None else f"{{{low},{'' if high is None else high}}}"
        unit = FREE_CHARACTER if free and not parts else ANY_CHARACTER
        parts.insert(0, f'/"(?:{unit}){bounds}"/')
    return parts


def strings_terminal(patterns: tuple[str, ...], low: int, high: int | None) -> str:
    """The strings that match all patterns and have a length within bounds.

    Raises `UnsupportedPatternError` as `terminal` does.
    """
    bounds = f"{{{low},{'' if high is None else high}}}"
    return " & ".join([f'/"(?:{ANY_CHARACTER}){bounds}"/', *(f"({terminal(pattern)})" for pattern in patterns)])


def _languages(writer: GrammarWriter, owner: CanonicalSchema, view: forms.StringView) -> list[str]:
    parts = []
    excluded = []
    for pattern in view.patterns:
        expression = pattern_language(writer, owner, pattern)
        if expression is not None:
            parts.append(f"({expression})")
    for name in view.formats:
        expression = format_terminal(name)
        if expression is not None:
            parts.append(f"({expression})")
        if name in GUARDED:
            writer.mark(owner, "value")
    for pattern in view.excluded_patterns:
        expression = pattern_language(writer, owner, pattern)
        if expression is not None:
            excluded.append(f"~({expression})")
    for name in view.excluded_formats:
        expression = format_terminal(name)
        if expression is None or name in GUARDED:
            writer.mark(owner, "value")
        else:
            excluded.append(f"~({expression})")
    if view.content_media_types or view.content_encodings:
        writer.mark(owner, "value")
    if view.excluded:
        excluded.append(f"~({key_alternatives(view.excluded)})")
    return parts + excluded


def pattern_language(writer: GrammarWriter, owner: CanonicalSchema, pattern: str) -> str | None:
    """The strings that a pattern matches; None, and ``owner`` marked, where no grammar can tell."""
    try:
        return terminal(pattern)
    except UnsupportedPatternError:
        writer.mark(owner, "value")
        return None


def is_empty(expression: str) -> bool:
    """Whether a terminal matches nothing, as the grammar engine sees it."""
    return _may_begin(expression) is False


@functools.lru_cache(maxsize=1024)
def _may_begin(expression: str) -> bool | None:
    """Whether a terminal matches something; None where the engine cannot tell within its bounds."""
    import llguidance

    matcher = llguidance.LLMatcher(_byte_tokenizer(), f"start: T\nT: {expression}\n", log_level=0)
    if matcher.is_error():
        return None
    found = any(matcher.compute_bitmask())
    if matcher.is_error():
        return False if matcher.get_error().startswith(NO_EXTENSION) else None
    return found


@functools.cache
def _byte_tokenizer() -> Any:
    from isogloss.tokenizers import byte_level

    return byte_level().llguidance()


# --- numbers -------------------------------------------------------------------------------------------------------


def number(writer: GrammarWriter, node: CanonicalSchema, view: forms.IntegerView | forms.NumberView) -> str | None:
    """An expression for the numbers of a node."""
    integers = isinstance(view, forms.IntegerView)
    interval = interval_of(view)
    expression = decimals.range_terminal(interval, integers=integers)
    if expression is None:
        return None
    divisor = functools.reduce(_least_common_multiple, (_exact(d) for d in view.multiple_of), Fraction(0))
    parts = [f"({expression})"]
    if divisor and not (integers and divisor == 1):
        exponent = decimals.power_of_ten(divisor)
        if exponent is not None:
            parts.append(decimals.multiple_terminal(exponent))
        elif not (view.not_multiple_of or getattr(view, "excludes_integers", False)):
            schema = _multiples(interval, divisor, integers=integers)
            if schema is not None:
                writer.open_numbers = True
                return writer.rule(f"%json {schema}")
            writer.mark(node, "value")
        else:
            writer.mark(node, "value")
    if isinstance(view, forms.NumberView) and view.excludes_integers:
        parts.append(decimals.NOT_INTEGER)
    for factor in view.not_multiple_of:
        exponent = decimals.power_of_ten(_exact(factor))
        if exponent is None:
            writer.mark(node, "value")
        else:
            parts += [decimals.FEW_DIGITS, f"~({decimals.multiple_terminal(exponent)})"]
    if len(parts) == 1 and interval == decimals.Range():
        return writer.shared("JSON_INTEGER" if integers else "JSON_NUMBER")
    return writer.terminal(" & ".join(parts))


def interval_of(view: forms.IntegerView | forms.NumberView) -> decimals.Range:
    """The range of the numbers of a view."""
    return decimals.Range(
        _fraction(view.minimum),
        _fraction(view.maximum),
        isinstance(view, forms.NumberView) and view.exclusive_minimum,
        isinstance(view, forms.NumberView) and view.exclusive_maximum,
    )


def _multiples(interval: decimals.Range, divisor: Fraction, *, integers: bool) -> str | None:
    """Multiples of what is no power of ten, left to the engine's own automaton: a JSON Schema, None where it is over
    the engine's means. The digits have no bound there."""
    coefficient = divisor.numerator * 10**18 // divisor.denominator
    while coefficient % 10 == 0:
        coefficient //= 10
    if coefficient > MAXIMUM_DIVISOR:
        return None
    members: dict[str, Any] = {"type": "integer" if integers else "number", "multipleOf": _json_number(divisor)}
    if interval.minimum is not None:
        members["exclusiveMinimum" if interval.excludes_minimum else "minimum"] = _json_number(interval.minimum)
    if interval.maximum is not None:
        members["exclusiveMaximum" if interval.excludes_maximum else "maximum"] = _json_number(interval.maximum)
    schema = json.dumps({"x-guidance": {"whitespace_flexible": False}, **members})
    return schema if _compiles(schema) else None


@functools.lru_cache(maxsize=1024)
def _compiles(schema: str) -> bool:
    import llguidance

    return not llguidance.LLMatcher(_byte_tokenizer(), f"start: %json {schema}\n", log_level=0).is_error()


def _exact(value: Any) -> Fraction:
    return Fraction(str(value))


def _fraction(value: Any) -> Fraction | None:
    return None if value is None else _exact(value)


def _json_number(value: Fraction) -> int | float:
    return value.numerator if value.denominator == 1 else float(value)


def _least_common_multiple(first: Fraction, second: Fraction) -> Fraction:
    if not first:
        return second
    scale = math.lcm(first.denominator, second.denominator)
    return Fraction(math.lcm(int(first * scale), int(second * scale)), scale)
