"""Results of calls in plain text, read back by the way in which a dialect writes them."""

from __future__ import annotations

import json
import re
from functools import lru_cache

import msgspec

from isogloss.dialects import Dialect
from isogloss.messages import ToolMessage


class _Results(msgspec.Struct, frozen=True):
    """How a dialect writes results, found out from what its renderer makes of stand-ins."""

    one: re.Pattern[str]
    run: re.Pattern[str]
    is_framed: bool
    """Whether results can be told from any other text."""
    between: str
    """What stands between two of them."""
    is_escaped: bool
    """Whether their text is the inside of a JSON string."""


def read_results(dialect: Dialect, text: str, expected: int = 0) -> list[ToolMessage]:
    """The results that `Dialect.render_results` wrote as ``text``; an empty list where it is something else.

    Where the format puts nothing around results, a text is ``expected`` of them if it has as many lines (or one is
    expected), and none without any being expected.
    """
    written = _results_of(dialect)
    if not written.is_framed:
        lines = [text] if expected == 1 else text.split(written.between)
        return [ToolMessage("", "", line) for line in lines] if expected and len(lines) == expected else []
    if written.run.fullmatch(text) is None:
        return []
    return [_result(match, is_escaped=written.is_escaped) for match in written.one.finditer(text)]


def _result(match: re.Match[str], *, is_escaped: bool) -> ToolMessage:
    groups = match.groupdict()
    is_error = match["text"] is None
    text: str = match["error_text"] if is_error else match["text"]
    if is_escaped:
        text = json.loads(f'"{text}"')
    name = groups.get("error_name") if is_error else groups.get("name")
    return ToolMessage(groups.get("id") or "", name or "", text, is_error)


@lru_cache(maxsize=64)
def _results_of(dialect: Dialect) -> _Results:
    one, other = (ToolMessage(f"IDX{n}", f"NAMEX{n}", f"TEXTX{n}") for n in (1, 2))
    single, both = dialect.render_results([one]), dialect.render_results([one, other])
    start, end = _frame(single, both)
    body = single[len(start) : len(single) - len(end)]
    between = both[len(start) + len(body) : len(both) - len(end) - len(body)]
    body = _counted(body, both[len(both) - len(end) - len(body) : len(both) - len(end)])
    escaped = "\\n" in dialect.render_results([msgspec.structs.replace(one, text="a\nb")])
    failed = dialect.render_results([msgspec.structs.replace(one, is_error=True)])
    text = r'(?:[^"\\]|\\.)*' if escaped else ".*?"
    pattern = _pattern(body, text)
    if failed != single:
        pattern += "|" + _pattern(failed[len(start) : len(failed) - len(end)], text, "error_")
    plain = re.sub(r"\(\?P<\w+>", "(?:", re.sub(r"\(\?P=\w+\)", r"[^\\n]*?", pattern))
    run = rf"{re.escape(start)}(?:{plain})(?:{re.escape(between)}(?:{plain}))*{re.escape(end)}"
    is_framed = single != one.text
    return _Results(re.compile(pattern, re.DOTALL), re.compile(run, re.DOTALL), is_framed, between, escaped)


def _frame(single: str, both: str) -> tuple[str, str]:
    """What stands around a run of results, once, however many there are: the longest ends that both renders share and
    that hold nothing of a result."""
    first = min(single.find(word) for word in ("IDX1", "NAMEX1", "TEXTX1") if word in single)
    second = min(both.find(word) for word in ("IDX2", "NAMEX2", "TEXTX2") if word in both)
    lead = single[:first]
    opener = _common_suffix(lead, both[:second])
    closing = _common_suffix(single, both.replace("X2", "X1"))
    last = max(single.rfind(word) + len(word) for word in ("IDX1", "NAMEX1", "TEXTX1") if word in single)
    tail = single[last:]
    before_second = both[: second - len(opener)] if opener else both[:second]
    closer = _common_prefix(tail, before_second[before_second.rfind("X1") + 2 :])
    return lead[: len(lead) - len(opener)], tail[len(closer) :] if len(closing) >= len(tail) else ""


def _common_prefix(one: str, other: str) -> str:
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return one[:length]


def _common_suffix(one: str, other: str) -> str:
    return _common_prefix(one[::-1], other[::-1])[::-1]


def _counted(first: str, second: str) -> str:
    """The text of a first result with a stand-in for what only counts the results."""
    second = second.replace("X2", "X1")
    return "".join([a if a == b or not a.isdecimal() else "COUNT" for a, b in zip(first, second, strict=True)])


def _pattern(body: str, text: str, prefix: str = "") -> str:
    pattern = re.escape(body)
    for word, group, content in (
        ("COUNT", f"{prefix}count", r"\d+"),
        ("IDX1", f"{prefix}id", r"[^\n]*?"),
        ("NAMEX1", f"{prefix}name", r"[^\n]*?"),
        ("TEXTX1", f"{prefix}text", text),
    ):
        pattern = pattern.replace(word, f"(?P<{group}>{content})", 1).replace(word, f"(?P={group})")
    return pattern
