"""Ranges of numbers as terminals: Lark expressions over the decimal spelling of a JSON number.

Numbers are bounded in length: `MAXIMUM_DIGITS` before the point and as many after it, so that a model cannot write
digits for ever. Where there is a range, the spelling has no exponent; each value still has a spelling. Integers are
spelled without a point.
"""

from __future__ import annotations

import math
from fractions import Fraction

import msgspec

MAXIMUM_DIGITS = 64

_ANY_INTEGER = rf"(?:0|[1-9][0-9]{{0,{MAXIMUM_DIGITS - 1}}})"
_FRACTION = rf"\.[0-9]{{1,{MAXIMUM_DIGITS}}}"
INTEGER = f"/-?{_ANY_INTEGER}/"
NUMBER = (
    rf"/-?{_ANY_INTEGER}(?:{_FRACTION})?(?:[eE](?:-0*[0-9]{{1,3}}|\+?0?(?:[0-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9])))?/"
)
FEW_DIGITS = rf"(/-?{_ANY_INTEGER}(?:{_FRACTION})?/ & /-?[0-9.]{{1,16}}/)"
"""Numbers without an exponent, of so few digits that a double holds them all."""
NOT_INTEGER = rf"(/-?{_ANY_INTEGER}\.[0-9]*[1-9]0*/ & {FEW_DIGITS})"


class Range(msgspec.Struct, frozen=True):
    """An interval; None is unbounded."""

    minimum: Fraction | None = None
    maximum: Fraction | None = None
    excludes_minimum: bool = False
    excludes_maximum: bool = False


def _digits(low: int, high: int) -> str:
    return str(low) if low == high else f"[{low}-{high}]"


def _some(count: int) -> str:
    return "" if count == 0 else "[0-9]" if count == 1 else f"[0-9]{{{count}}}"


def _same_length_above(text: str, *, strictly: bool) -> list[str]:
    """Digit strings of the same length that are greater (or equal)."""
    options = [
        text[:i] + _digits(int(digit) + 1, 9) + _some(len(text) - i - 1) for i, digit in enumerate(text) if digit < "9"
    ]
    return options if strictly else [*options, text]


def _same_length_below(text: str, *, strictly: bool) -> list[str]:
    """Digit strings of the same length, without a leading zero, that are less (or equal)."""
    options = []
    for i, digit in enumerate(text):
        lowest = 1 if i == 0 and len(text) > 1 else 0
        if int(digit) > lowest:
            options.append(text[:i] + _digits(lowest, int(digit) - 1) + _some(len(text) - i - 1))
    return options if strictly else [*options, text]


def _above(integer: int, *, strictly: bool) -> list[str]:
    text = str(integer)
    options = _same_length_above(text, strictly=strictly)
    if len(text) < MAXIMUM_DIGITS:
        options.append(f"[1-9][0-9]{{{len(text)},{MAXIMUM_DIGITS - 1}}}")
    return options


def _below(integer: int, *, strictly: bool) -> list[str]:
    text = str(integer)
    options = _same_length_below(text, strictly=strictly)
    if len(text) == 2:
        options.append("[0-9]")
    elif len(text) > 2:
        options.append(f"(?:0|[1-9][0-9]{{0,{len(text) - 2}}})")
    return options


def _decimal_expansion(value: Fraction) -> tuple[int, str]:
    """Integer part and the digits after the point, without trailing zeros; at most `MAXIMUM_DIGITS`."""
    integer, rest = divmod(value, 1)
    digits = ""
    while rest and len(digits) < MAXIMUM_DIGITS:
        digit, rest = divmod(rest * 10, 1)
        digits += str(digit)
    return int(integer), digits.rstrip("0")


def _magnitude_above(bound: Fraction, *, strictly: bool) -> list[str]:
    integer, digits = _decimal_expansion(bound)
    options = [f"{option}(?:{_FRACTION})?" for option in _above(integer, strictly=True)]
    if not digits:
        options.append(rf"{integer}\.0*[1-9][0-9]*" if strictly else rf"{integer}(?:{_FRACTION})?")
        return options
    for i, digit in enumerate(digits):
        if digit < "9":
            options.append(rf"{integer}\.{digits[:i]}{_digits(int(digit) + 1, 9)}[0-9]*")
    options.append(rf"{integer}\.{digits}" + ("0*[1-9][0-9]*" if strictly else "[0-9]*"))
    return options


def _magnitude_below(bound: Fraction, *, strictly: bool) -> list[str]:
    integer, digits = _decimal_expansion(bound)
    options = [f"{option}(?:{_FRACTION})?" for option in _below(integer, strictly=True)]
    if not digits:
        return options if strictly else [*options, rf"{integer}(?:\.0+)?"]
    options.append(rf"{integer}(?:\.0+)?")
    for i, digit in enumerate(digits):
        if digit > "0":
            options.append(rf"{integer}\.{digits[:i]}{_digits(0, int(digit) - 1)}[0-9]*")
            if i:
                options.append(rf"{integer}\.{digits[:i]}0*")
    if not strictly:
        options.append(rf"{integer}\.{digits}0*")
    return options


def _joined(options: list[str]) -> str:
    return f"/(?:{'|'.join(options)})/"


def _magnitudes(low: Fraction, high: Fraction | None, strict: tuple[bool, bool], *, integers: bool) -> str | None:
    """An expression for the numbers without sign in an interval that starts at 0 or above."""
    if high is not None and (low > high or (low == high and any(strict))):
        return None
    if integers:
        first = math.floor(low) + 1 if strict[0] else math.ceil(low)
        last = None if high is None else math.ceil(high) - 1 if strict[1] else math.floor(high)
        if last is not None and last < first:
            return None
        parts = [_joined(_above(first, strictly=False))] if first else []
        if last is not None:
            parts.append(_joined(_below(last, strictly=False)))
        return " & ".join(parts) or f"/{_ANY_INTEGER}/"
    shape = f"/{_ANY_INTEGER}(?:{_FRACTION})?/"
    parts = [] if low == 0 and not strict[0] else [_joined(_magnitude_above(low, strictly=strict[0]))]
    if high is not None:
        below = _magnitude_below(high, strictly=strict[1])
        if not below:
            return None
        parts.append(_joined(below))
    return " & ".join([shape, *parts])


def range_terminal(interval: Range, *, integers: bool) -> str | None:
    """An expression for the numbers of an interval, None when there is none.

    Zero may be spelled ``-0`` where the interval goes on below it.
    """
    low, high = interval.minimum, interval.maximum
    if low is None and high is None:
        return INTEGER if integers else NUMBER
    options = []
    if high is None or high >= 0:
        bounded = low is not None and low >= 0
        strict = (bounded and interval.excludes_minimum, interval.excludes_maximum)
        positive = _magnitudes(low if bounded and low is not None else Fraction(0), high, strict, integers=integers)
        if positive is not None:
            options.append(f"({positive})")
    if low is None or low < 0:
        bounded = high is not None and high < 0
        strict = (bounded and interval.excludes_maximum, interval.excludes_minimum)
        if high == 0 and interval.excludes_maximum:
            bounded, strict = True, (True, interval.excludes_minimum)
        start = -high if bounded and high is not None else Fraction(0)
        negative = _magnitudes(start, None if low is None else -low, strict, integers=integers)
        if negative is not None:
            options.append(f"(/-/ ({negative}))")
    return " | ".join(options) or None


def power_of_ten(divisor: Fraction) -> int | None:
    """``k`` where the divisor is 10**k, None for any other."""
    exponent = round(math.log10(divisor)) if divisor > 0 else 0
    return exponent if divisor == Fraction(10) ** exponent else None


def multiple_terminal(exponent: int) -> str:
    """An expression for the multiples of 10**exponent, of any sign and size."""
    if exponent < 0:
        return rf"/-?[0-9]+(?:\.[0-9]{{1,{-exponent}}}0*)?/"
    return rf"/-?(?:0|[1-9][0-9]*{'0' * exponent})(?:\.0+)?/"


def spellings(value: int | float) -> list[str]:
    """How one number is written: its shortest form, and without an exponent."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int):
        return [str(value)]
    integer, digits = _decimal_expansion(abs(Fraction(repr(value))))
    plain = f"{'-' if value < 0 else ''}{integer}" + (f".{digits}" if digits else "")
    return list(dict.fromkeys([repr(value), plain]))
