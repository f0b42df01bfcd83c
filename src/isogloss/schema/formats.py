"""String formats as terminals over JSON text.

Each entry is a conjunction of ECMA-262 patterns that are exact for the format, or nothing, where the format is no
regular language: then the value is checked when it closes (see `isogloss.schema.guards`). A format that is not listed
is an annotation and constrains nothing.

Sources: RFC 3339 (date-time, date, time, duration in appendix A), RFC 5321 (email), RFC 1123 (hostname), RFC 2673
(ipv4), RFC 4291 (ipv6), RFC 4122 (uuid), RFC 3986 and 3987 (uri, iri), RFC 6570 (uri-template), RFC 6901
(json-pointer), the Relative JSON Pointer draft.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from isogloss.schema.pattern_spelling import IN_JSON, Spelling
from isogloss.schema.patterns import terminal

_DATE = (
    r"(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))"
    r"|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
)
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d"
_OFFSET = rf"(?:[Zz]|[+-]{_CLOCK})"
_TIME = rf"{_CLOCK}:[0-5]\d(?:\.\d+)?{_OFFSET}"


_PLACE = "[0-:]"
"""A digit or a colon of a time of which another pattern tells the shape."""
_UP_TO_SIGN = "[.-:]*"
"""The rest of a local time, before the sign of its offset."""


def _tied(before: str, rows: Iterable[tuple[object, str, str]], after: str = "") -> str:
    """A pattern that ties digits of a local time, which stand behind ``before``, to those of its offset.

    A row has the digits, what is then in the offset after ``+``, and what after ``-``; ``after`` ends both.
    """
    ways = [f"{digits}{_UP_TO_SIGN}(?:[+]{ahead}|-{behind})" for digits, ahead, behind in rows]
    return f"{before}(?:{'|'.join(ways)}){after}"


_HOUR_TENS = (
    ("0[0-2]", "0[0-3]", "2[1-3]"),
    ("03", "0[34]", "20"),
    ("0[4-8]", "0[4-9]", "1[5-9]"),
    ("09", "(?:09|10)", "14"),
    ("1[0-2]", "1[0-3]", "1[1-3]"),
    ("13", "1[34]", "10"),
    ("1[4-8]", "1[4-9]", "0[5-9]"),
    ("19", "(?:19|20)", "04"),
    ("2[0-2]", "2[0-3]", "0[1-3]"),
    ("23", "(?:23|00)", "00"),
)
_EVEN, _ODD = "[02468]", "[13579]"


def _leap_times() -> tuple[str, ...]:
    """Patterns that together hold for a second 60 exactly where it is 23:59 in universal time.

    After ``+`` the offset is a minute more than the local time, after ``-`` what that lacks of 23:59. So each digit of
    the one is tied to a digit of the other: one pattern a digit, so that their conjunction stays small. Those of the
    hours leave open whether the hour after ``+`` is the same or the next. It is the next where the minutes come to 00,
    and then the one is even and the other odd: that is the last pattern.
    """
    more, next_hour = r"(?:0[1-9]|[1-5]\d)", {u: f"{u}{(u + 1) % 10}" for u in range(10)} | {3: "304"}
    minute_units = [(u, rf"{_PLACE}{{4}}{(u + 1) % 10}", rf"{_PLACE}{{4}}{9 - u}") for u in range(10)]
    minute_tens = [(t, rf"{_PLACE}{{3}}(?:{t}[1-9]|{(t + 1) % 6}0)", rf"{_PLACE}{{3}}{5 - t}\d") for t in range(6)]
    hour_units = [(u, rf"\d[{next_hour[u]}]", rf"\d{(13 - u) % 10}") for u in range(10)]
    parity = [
        (same, rf"\d(?:{same}:{more}|{other}:00)", rf"{_PLACE}{{5}}") for same, other in ((_EVEN, _ODD), (_ODD, _EVEN))
    ]
    return (
        rf"{_CLOCK}:60(?:\.\d+)?[+-]{_CLOCK}",
        _tied(rf"{_PLACE}{{4}}", minute_units),
        _tied(rf"{_PLACE}{{3}}", minute_tens),
        _tied(r"\d", hour_units, rf"{_PLACE}{{3}}"),
        _tied("", _HOUR_TENS, rf"{_PLACE}{{3}}"),
        _tied(r"\d", parity),
    )


_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOSTNAME = rf"{_LABEL}(?:\.{_LABEL})*"
_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_GROUP = r"[0-9A-Fa-f]{1,4}"


def _ipv6() -> str:
    """Eight groups, the last two possibly as an IPv4 address, one run of them possibly ``::``."""
    forms = [rf"(?:{_GROUP}:){{7}}{_GROUP}", rf"(?:{_GROUP}:){{6}}{_IPV4}"]
    for before in range(8):
        head = "" if before == 0 else _GROUP if before == 1 else rf"(?:{_GROUP}:){{{before - 1}}}{_GROUP}"
        after = 7 - before
        tail = [""] if after == 0 else ["", rf"(?:{_GROUP}:){{0,{after - 1}}}{_GROUP}"]
        if after >= 2:
            tail.append(rf"(?:{_GROUP}:){{0,{after - 2}}}{_IPV4}")
        forms.append(f"{head}::(?:{'|'.join(tail)})")
    return f"(?:{'|'.join(forms)})"


_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_IPV6 = _ipv6()
_EMAIL = (
    rf'(?:{_ATOM}(?:\.{_ATOM})*|"(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\[\x20-\x7e])*")'
    rf"@(?:{_HOSTNAME}|\[{_IPV4}\]|\[[Ii][Pp][Vv]6:{_IPV6}\])"
)

_PERCENT = r"%[0-9A-Fa-f]{2}"
_UNRESERVED = "A-Za-z0-9._~-"
_UCS = (
    r"\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef"
    r"\u{10000}-\u{1fffd}\u{20000}-\u{2fffd}\u{30000}-\u{3fffd}\u{40000}-\u{4fffd}\u{50000}-\u{5fffd}"
    r"\u{60000}-\u{6fffd}\u{70000}-\u{7fffd}\u{80000}-\u{8fffd}\u{90000}-\u{9fffd}\u{a0000}-\u{afffd}"
    r"\u{b0000}-\u{bfffd}\u{c0000}-\u{cfffd}\u{d0000}-\u{dfffd}\u{e1000}-\u{efffd}"
)
_PRIVATE = r"\ue000-\uf8ff\u{f0000}-\u{ffffd}\u{100000}-\u{10fffd}"


def _uri(*, relative: bool, international: bool) -> str:
    """RFC 3986 (3987 when ``international``), a reference when ``relative``."""
    plain = _UNRESERVED[:-1] + (_UCS if international else "") + "!$&'()*+,;="
    char = rf"(?:[{plain}:@-]|{_PERCENT})"
    query = rf"(?:[{plain}:@/?{_PRIVATE if international else ''}-]|{_PERCENT})*"
    fragment = rf"(?:[{plain}:@/?-]|{_PERCENT})*"
    host = rf"(?:\[(?:{_IPV6}|[Vv][0-9A-Fa-f]+\.[{_UNRESERVED[:-1]}!$&'()*+,;=:-]+)\]|(?:[{plain}-]|{_PERCENT})*)"
    authority = rf"(?:(?:[{plain}:-]|{_PERCENT})*@)?{host}(?::\d*)?"
    rooted = rf"/(?:{char}+(?:/{char}*)*)?"
    rest = rf"(?:\?{query})?(?:#{fragment})?"
    with_authority = rf"//{authority}(?:/{char}*)*"
    absolute = rf"[A-Za-z][A-Za-z0-9+.-]*:(?:{with_authority}|{rooted}|(?:{char}+(?:/{char}*)*)?){rest}"
    if not relative:
        return absolute
    first = rf"(?:[{plain}@-]|{_PERCENT})+"
    return rf"(?:{absolute}|(?:{with_authority}|{rooted}|(?:{first}(?:/{char}*)*)?){rest})"


_POINTER = r"(?:/(?:[^~/]|~[01])*)*"
_VARIABLE = rf"(?:[A-Za-z0-9_]|{_PERCENT})+(?:\.(?:[A-Za-z0-9_]|{_PERCENT})+)*(?::[1-9]\d{{0,3}}|\*)?"
_TEMPLATE = (
    r"(?:[\x21\x23\x24\x26-\x3b\x3d\x3f-\x5b\x5d\x5f\x61-\x7a\x7e" + _UCS + _PRIVATE + rf"]|{_PERCENT}"
    rf"|\{{[+#./;?&=,!@|]?{_VARIABLE}(?:,{_VARIABLE})*\}})*"
)


def _anchored(*patterns: str) -> tuple[str, ...]:
    return tuple(f"^(?:{pattern})$" for pattern in patterns)


_LEAP = _leap_times()
_LEAP_UTC = r"23:59:60(?:\.\d+)?[Zz]"

_ALTERNATIVES: dict[str, tuple[tuple[str, ...], ...]] = {
    "date": (_anchored(_DATE),),
    "time": (_anchored(rf"{_TIME}|{_LEAP_UTC}"), _anchored(*_LEAP)),
    "date-time": (
        _anchored(rf"{_DATE}[Tt](?:{_TIME}|{_LEAP_UTC})"),
        _anchored(rf"{_DATE}[Tt]{_LEAP[0]}", *(rf"[\d-]+[Tt]{relation}" for relation in _LEAP[1:])),
    ),
    "duration": (
        _anchored(
            r"P(?:\d+W|(?:\d+D|\d+M(?:\d+D)?|\d+Y(?:\d+M(?:\d+D)?)?)(?:T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S))?"
            r"|T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S))"
        ),
    ),
    "email": (_anchored(_EMAIL),),
    "hostname": ((*_anchored(_HOSTNAME), r"^(?!(?:.*\.)?(?![Xx][Nn])..--)"),),
    "ipv4": (_anchored(_IPV4),),
    "ipv6": (_anchored(_IPV6),),
    "uuid": (_anchored(r"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}"),),
    "uri": (_anchored(_uri(relative=False, international=False)),),
    "uri-reference": (_anchored(_uri(relative=True, international=False)),),
    "iri": (_anchored(_uri(relative=False, international=True)),),
    "iri-reference": (_anchored(_uri(relative=True, international=True)),),
    "uri-template": (_anchored(_TEMPLATE),),
    "json-pointer": (_anchored(_POINTER),),
    "relative-json-pointer": (_anchored(rf"(?:0|[1-9]\d*)(?:#|{_POINTER})"),),
}

GUARDED = frozenset({"regex", "idn-email", "idn-hostname", "hostname"})
"""Formats that no pattern tells exactly; a validator does. Of a hostname it tells only whether the labels that are
encoded (``xn--``) are well-formed and the whole is at most 253 characters; all else is in its pattern."""

KNOWN = frozenset(_ALTERNATIVES) | GUARDED


def format_alternatives(name: str) -> tuple[tuple[str, ...], ...]:
    """The patterns of a format: one conjunction of them has to hold."""
    return _ALTERNATIVES[name]


@functools.cache
def format_terminal(name: str, spelling: Spelling = IN_JSON) -> str | None:
    """A Lark expression for the strings of a format, None where only a guard can tell."""
    alternatives = _ALTERNATIVES.get(name)
    if alternatives is None:
        return None
    return " | ".join(
        "(" + " & ".join(f"({terminal(pattern, spelling)})" for pattern in patterns) + ")" for patterns in alternatives
    )
