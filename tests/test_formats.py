"""String formats: what the grammar of each accepts, exactly."""

from __future__ import annotations

import itertools
import json
import re

import pytest

from isogloss.constraints import Constraint
from isogloss.schema.formats import GUARDED, KNOWN, format_alternatives
from isogloss.schema.lowering import lower
from isogloss.schema.patterns import engine_pattern
from isogloss.tokenizers import byte_level

CASES: dict[str, tuple[list[str], list[str]]] = {
    "date": (
        ["2024-02-29", "2000-02-29", "1999-12-31", "2023-04-30"],
        ["2023-02-29", "1900-02-29", "2023-04-31", "2023-13-01", "2023-00-10", "2023-1-01", "২023-01-01", ""],
    ),
    "time": (
        ["08:30:06Z", "08:30:06.283185z", "23:59:60Z", "23:59:60+00:00", "22:59:60-01:00", "01:29:60.5+01:30"],
        [
            "24:00:00Z",
            "08:30:06",
            "08:60:06Z",
            "22:59:60Z",
            "23:58:60Z",
            "23:59:60+01:00",
            "08:30:06+24:00",
            "8:30:06Z",
        ],
    ),
    "date-time": (
        ["1963-06-19T08:30:06.283185Z", "1998-12-31T23:59:60Z", "1998-12-31t15:59:60.123-08:00"],
        ["1990-02-31T15:59:59Z", "1998-12-31T23:58:60Z", "1963-06-19 08:30:06Z", "1963-06-19T08:30:06", "1963-06-19"],
    ),
    "duration": (
        ["P4DT12H30M5S", "P4Y", "PT0S", "P1M", "PT36H", "P2W", "P1DT12H"],
        ["P", "PT", "4DT1H", "P2D1Y", "P1YT", "P1Y2W", "PT1D", "P1", "P1Y2D"],
    ),
    "email": (
        ["a@b.org", "te~st@example.com", '"joe bloggs"@example.com', "joe@[127.0.0.1]", "joe@[IPv6:::1]"],
        [
            "2962",
            ".t@example.com",
            "t.@example.com",
            "te..st@example.com",
            "a@",
            "@b",
            "joe bloggs@example.com",
            "a@b=c",
        ],
    ),
    "hostname": (
        ["www.example.com", "a", "xn--4gbwdl.xn--wgbh1c", "a--b.com", "a" * 63, "1host"],
        ["-a", "a-", "a_b", "a..b", ".a", "a.", "ab--cd", "a" * 64, "xn--X", ".".join(["a" * 49] * 6), ""],
    ),
    "ipv4": (
        ["192.168.0.1", "0.0.0.0", "255.255.255.255"],
        ["127.0.0.0.1", "256.0.0.1", "127.0", "087.10.0.1", "1.2.3.4 "],
    ),
    "ipv6": (
        ["::1", "::", "d6::", "1:2:3:4:5:6:7:8", "1::d6:192.168.0.1", "::ffff:1.2.3.4", "1:2::8"],
        ["12345::", "1:1:1:1:1:1:1:1:1", "::laptop", "1::2::3", "1:2:3", "::1%eth0", "1:2:3:4:5:6:7:1.2.3.4", ":"],
    ),
    "uuid": (
        ["2EB8AA08-AA98-11EA-B4AA-73B441D16380", "2eb8aa08-aa98-11ea-b4aa-73b441d16380"],
        [
            "2eb8aa08-aa98-11ea-b4aa-73b441d1638",
            "2eb8aa08aa9811eab4aa73b441d16380",
            "2eb8-aa08-aa98-11ea-b4aa73b44-1d16380",
        ],
    ),
    "uri": (
        [
            "http://foo.bar/?baz=qux#quux",
            "urn:oasis:names",
            "ldap://[2001:db8::7]/c=GB?objectClass?one",
            "mailto:a@b.c",
        ],
        ["//foo.bar/", "/abs", "\\\\W\\x", "http:// x", "http://a/%zz", "bar,baz:foo", "http://a[b]/", ":// x"],
    ),
    "uri-reference": (["//foo.bar/", "/abc", "abc", "#frag", "", "http://a"], ["\\\\W\\x", "#fr\\ag", "a b"]),
    "iri": (["http://ƒøø.ßår/?∂éœ=πîx#πîüx"], ["/abc", "http://a b", "âππ"]),
    "iri-reference": (["//ƒøø.ßår/?∂éœ=πîx", "#ƒrägmênt", "âππ"], ["\\\\W\\x", "#ƒräg\\mênt"]),
    "uri-template": (
        ["http://example.com/{term:1}/{term}", "dictionary/{+x,y}/{list*}", "a"],
        ["http://example.com/{term:1}/{term", "{}", "{a b}", "a b", "%z"],
    ),
    "json-pointer": (["/foo/bar~0/baz~1/%a", "", "/", "/a/"], ["/foo/bar~", "a", "#/a", "/~2"]),
    "relative-json-pointer": (["1", "0/foo/bar", "0#", "2/0/baz/1"], ["/foo", "-1/a", "01/a", "0##", ""]),
    "regex": (["([abc])+\\s+$", "^a$"], ["^(abc]", "a{2,1}", "\\a"]),
    "idn-email": (["실례@실례.테스트", "joe@example.com"], ["2962", "a@"]),
    "idn-hostname": (["실례.테스트", "example.com"], ["〮실례.테스트", "-a"]),
}


def accepts(schema: object, text: str) -> bool:
    matcher = Constraint.from_json_schema(schema).matcher(byte_level())  # type: ignore[arg-type]
    tokens = list(json.dumps(text, ensure_ascii=False).encode())
    return matcher.accept_all(tokens) == len(tokens) and matcher.is_complete


@pytest.mark.parametrize("name", CASES)
def test_a_format_accepts_what_it_says(name: str) -> None:
    valid, invalid = CASES[name]
    for text in valid:
        assert accepts({"type": "string", "format": name}, text), text
    for text in invalid:
        assert not accepts({"type": "string", "format": name}, text), text


def test_every_known_format_has_cases() -> None:
    assert set(CASES) == KNOWN


@pytest.mark.parametrize("offset", [-1439, -721, -60, -59, -1, 0, 1, 30, 60, 90, 600, 721, 1439])
def test_a_leap_second_is_where_it_is_midnight_in_universal_time(offset: int) -> None:
    sign, size = "+-"[offset < 0], abs(offset)
    for shift in (0, 1, -1, 60, 600):
        hours, minutes = divmod((1439 + offset + shift) % 1440, 60)
        text = f"{hours:02}:{minutes:02}:60{sign}{size // 60:02}:{size % 60:02}"
        assert accepts({"type": "string", "format": "time"}, text) == (shift == 0), text


def test_an_unknown_format_says_nothing() -> None:
    assert accepts({"type": "string", "format": "color"}, "anything at all")


def test_formats_may_be_annotations() -> None:
    lowered = lower({"type": "string", "format": "date"}, formats=False)
    assert "JSON_STRING" in lowered.grammar().start


def test_a_format_may_be_excluded_and_combined() -> None:
    schema = {"type": "string", "not": {"format": "ipv4"}, "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]}
    assert accepts(schema, "::1")
    assert not accepts(schema, "1.2.3.4")
    assert accepts({"type": "string", "format": "date", "pattern": "^2024"}, "2024-05-05")
    assert not accepts({"type": "string", "format": "date", "pattern": "^2024"}, "2023-05-05")


def test_a_leap_second_is_told_to_the_minute() -> None:
    _, patterns = format_alternatives("time")
    shape, *relations = [re.compile(pattern) for pattern in patterns]
    sample = [hour * 60 + minute for hour in range(24) for minute in (0, 1, 9, 10, 29, 58, 59)]
    for local, sign in itertools.product(sample, "+-"):
        right = (local + 1) % 1440 if sign == "+" else 1439 - local
        for offset in {*sample, right}:
            text = f"{local // 60:02}:{local % 60:02}:60.5{sign}{offset // 60:02}:{offset % 60:02}"
            assert shape.match(text)
            assert all(relation.match(text) for relation in relations) == (offset == right), text


def test_every_format_that_no_guard_holds_is_told_to_the_engine() -> None:
    for name in KNOWN - GUARDED:
        assert all(
            engine_pattern(pattern) is not None for together in format_alternatives(name) for pattern in together
        )
