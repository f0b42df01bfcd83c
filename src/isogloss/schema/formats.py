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

from isogloss.schema.patterns import IN_JSON, Spelling, terminal

_DATE = (
    r"(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))"
    r"|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
)
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d"
_OFFSET = rf"(?:[Zz]|[+-]{_CLOCK})"
_TIME = rf"{_CLOCK}:[0-5]\d(?:\.\d+)?{_OFFSET}"


def _leap_times() -> tuple[str, ...]:
    """Patterns that together hold for a second 60 exactly where it is 23:59 in universal time.

    Local time and offset differ by 23:59, which ties each digit of the one to a digit of the other: one pattern a
    digit, so that their conjunction stays small. The last shape lets ``Z`` stand for ``+00:00``.
    """
    minute_units, minute_tens, hour_units, hour_tens = [], [], [], []
    for u in range(10):
        minute_units += [rf"\d\d:\d{u}@+@\d\d:\d{(u + 1) % 10}", rf"\d\d:\d{u}@-@\d\d:\d{9 - u}"]
        hour_units += [rf"\d{u}:\d\d@+@\d{u}:(?:0[1-9]|[1-5]\d)", rf"\d{u}:\d\d@-@\d{(13 - u) % 10}:\d\d"]
        hour_units.append(rf"\d{u}:\d\d@+@\d{u + 1}:00" if u < 9 else r"\d9:\d\d@+@[12]0:00")
    for t in range(6):
        minute_tens += [rf"\d\d:{t}\d@+@\d\d:{t}[1-9]", rf"\d\d:{t}\d@+@\d\d:{(t + 1) % 6}0"]
        minute_tens.append(rf"\d\d:{t}\d@-@\d\d:{5 - t}\d")
    for t in range(3):
        hour_tens += [rf"{t}\d:\d\d@+@{t}\d:(?:0[1-9]|[1-5]\d)", rf"{t}\d:\d\d@+@{t}[1-9]:00"]
        hour_tens.append(rf"{t}[0-3]:\d\d@-@{2 - t}\d:\d\d")
    hour_tens += [r"0\d:\d\d@+@10:00", r"1\d:\d\d@+@20:00", r"0[4-9]:\d\d@-@1\d:\d\d", r"1[4-9]:\d\d@-@0\d:\d\d"]
    hour_units.append(r"23:\d\d@+@00:00")
    hour_tens.append(r"23:\d\d@+@00:00")
    relations = []
    for cases in (minute_units, minute_tens, hour_units, hour_tens):
        parts = [case.split("@") for case in cases]
        relations.append("|".join(rf"{left}:60[\d.]*[{sign}]{right}" for left, sign, right in parts))
    return (rf"{_CLOCK}:60(?:\.\d+)?[+-]{_CLOCK}", *relations)


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
        _anchored(rf"{_DATE}[Tt].*", *(rf"[\d-]+[Tt](?:{relation})" for relation in _LEAP)),
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
