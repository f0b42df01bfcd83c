"""ECMA-262 regular expressions as terminals over JSON text.

A ``pattern`` of JSON Schema speaks of a decoded string and may match anywhere in it; a grammar speaks of the bytes of a
JSON string. `terminal` turns the one into the other: a Lark expression that matches the whole quoted string.

Each character has a fixed set of spellings, the same in every terminal, so that intersection (``&``) and complement
(``~``) of terminals are intersection and complement of sets of strings:

- itself, unless it is a control character, ``"`` or a backslash;
- its short escape (``\\n``, ``\\"``, ``\\/``);
- ``\\u00XX`` if it is a control character or one of ``" & ' < > \\ DEL``, which encoders are known to escape.

Look-ahead becomes intersection or complement of what follows. Look-behind, back-references and word boundaries are not
regular in a useful way: `UnsupportedPatternError` is raised and the caller falls back on a guard.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import msgspec

MAXIMUM_SEQUENCES = 128
"""Alternatives that anchors and look-aheads may unfold into."""
MAXIMUM_SIZE = 5_000
"""Repeated characters of one pattern, counted after unfolding."""

SHORT_ESCAPES = {0x08: "b", 0x09: "t", 0x0A: "n", 0x0C: "f", 0x0D: "r", 0x22: '"', 0x2F: "/", 0x5C: "\\"}
NUMERIC_ESCAPES = frozenset(range(0x20)) | {0x22, 0x26, 0x27, 0x3C, 0x3E, 0x5C, 0x7F}

_QUANTIFIER = re.compile(r"\{\d+(?:,\d*)?\}")
ASCII = (1 << 128) - 1
BEYOND_ASCII = r"[\x{80}-\x{10FFFF}]"


class UnsupportedPatternError(Exception):
    """The pattern needs more than a regular language; the message names the construct."""


class Characters(msgspec.Struct, frozen=True):
    """A set of characters: a bit mask over ASCII and a bracketed class of the Rust syntax beyond it."""

    ascii: int
    beyond: str = ""

    def complement(self) -> Characters:
        if not self.beyond:
            beyond = BEYOND_ASCII
        elif self.beyond == BEYOND_ASCII:
            beyond = ""
        else:
            beyond = f"[{BEYOND_ASCII}&&[^{self.beyond}]]"
        return Characters(ASCII & ~self.ascii, beyond)

    def union(self, other: Characters) -> Characters:
        both = {self.beyond, other.beyond} - {""}
        if BEYOND_ASCII in both:
            beyond = BEYOND_ASCII
        else:
            beyond = "".join(sorted(both)) if len(both) < 2 else f"[{''.join(sorted(both))}]"
        return Characters(self.ascii | other.ascii, beyond)


def _mask(text: str) -> int:
    return functools.reduce(lambda mask, char: mask | 1 << ord(char), text, 0)


_DIGITS = Characters(_mask("0123456789"))
_WORD = Characters(_mask("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"))
_SPACE = Characters(
    _mask("\t\n\v\f\r "),
    r"[\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}]",
)
_LINE_ENDS = Characters(_mask("\n\r"), r"[\x{2028}\x{2029}]")
_CLASS_ESCAPES = {
    "d": _DIGITS,
    "D": _DIGITS.complement(),
    "w": _WORD,
    "W": _WORD.complement(),
    "s": _SPACE,
    "S": _SPACE.complement(),
}
_CONTROL_ESCAPES = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "0": 0}
_ANY = Characters(ASCII, BEYOND_ASCII)


class Class(msgspec.Struct, frozen=True):
    characters: Characters


class Sequence(msgspec.Struct, frozen=True):
    items: tuple[Node, ...]


class Choice(msgspec.Struct, frozen=True):
    options: tuple[Node, ...]


class Repeat(msgspec.Struct, frozen=True):
    item: Node
    minimum: int
    maximum: int | None


class Anchor(msgspec.Struct, frozen=True):
    side: Literal["start", "end"]


class LookAhead(msgspec.Struct, frozen=True):
    item: Node
    negative: bool


Node = Class | Sequence | Choice | Repeat | Anchor | LookAhead


_QUANTIFIER_SIGNS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_SYNTAX = frozenset("([\\^$.*+?")


class _Parser:
    """A recursive descent over one pattern, with the leniency of browsers (lone braces are literal)."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.depth = 0

    def parse(self) -> Node:
        node = self._choice()
        if self.at < len(self.pattern):
            raise UnsupportedPatternError("unbalanced parenthesis")
        return node

    def _peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _take(self, text: str) -> bool:
        if self.pattern.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def _choice(self) -> Node:
        self.depth += 1
        if self.depth > 100:
            raise UnsupportedPatternError("nesting")
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        self.depth -= 1
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self) -> Node:
        items: list[Node] = []
        while self.at < len(self.pattern) and self._peek() not in "|)":
            items.append(self._quantified(self._atom()))
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    def _quantified(self, atom: Node) -> Node:
        bounds = self._quantifier()
        if bounds is None:
            return atom
        self._take("?")  # laziness does not change the language
        return Repeat(atom, *bounds)

    def _quantifier(self) -> tuple[int, int | None] | None:
        sign = self._peek()
        if sign in _QUANTIFIER_SIGNS:
            self.at += 1
            return _QUANTIFIER_SIGNS[sign]
        if sign != "{":
            return None
        end = self.pattern.find("}", self.at)
        low, comma, high = self.pattern[self.at + 1 : max(end, self.at)].partition(",")
        if not low.isdecimal() or not (high.isdecimal() or high == ""):
            return None
        self.at = end + 1
        maximum = int(low) if not comma else int(high) if high else None
        return int(low), maximum

    def _atom(self) -> Node:
        char = self._peek()
        self.at += 1
        if char not in _SYNTAX:
            return _literal(char)
        if char == "(":
            return self._group()
        if char == "[":
            return Class(self._bracket())
        if char == "\\":
            return self._escape()
        if char == "^":
            return Anchor("start")
        if char == "$":
            return Anchor("end")
        if char == ".":
            return Class(_LINE_ENDS.complement())
        raise UnsupportedPatternError("nothing to repeat")

    def _group(self) -> Node:
        look: bool | None = None
        if self._peek() != "?" or self._take("?:"):
            pass
        elif self._take("?="):
            look = False
        elif self._take("?!"):
            look = True
        elif self._take("?<=") or self._take("?<!"):
            raise UnsupportedPatternError("look-behind")
        elif self._take("?<"):
            self.at = self.pattern.find(">", self.at) + 1
        else:
            raise UnsupportedPatternError("group options")
        node = self._choice()
        if not self._take(")"):
            raise UnsupportedPatternError("unbalanced parenthesis")
        return node if look is None else LookAhead(node, look)

    def _escape(self) -> Node:
        char = self._peek()
        if char in "bB":
            raise UnsupportedPatternError("word boundary")
        if char == "k" or char in "123456789":
            raise UnsupportedPatternError("back-reference")
        return Class(self._class_escape())

    def _class_escape(self) -> Characters:
        char = self._peek()
        self.at += 1
        if char in _CLASS_ESCAPES:
            return _CLASS_ESCAPES[char]
        if char in ("p", "P") and self._peek() == "{":
            return self._property(negative=char == "P")
        return _single(self._code(char))

    def _property(self, *, negative: bool) -> Characters:
        end = self.pattern.find("}", self.at)
        if end < 0:
            raise UnsupportedPatternError("property")
        name = self.pattern[self.at + 1 : end]
        self.at = end + 1
        found = _property_characters(name)
        return found.complement() if negative else found

    def _code(self, char: str) -> int:
        if char in _CONTROL_ESCAPES:
            return _CONTROL_ESCAPES[char]
        if char == "c" and self._peek().isalpha() and self._peek().isascii():
            self.at += 1
            return ord(self.pattern[self.at - 1]) % 32
        if char == "x":
            return self._hexadecimal(2)
        if char == "u":
            return self._unicode_escape()
        if not char:
            raise UnsupportedPatternError("trailing backslash")
        return ord(char)

    def _unicode_escape(self) -> int:
        if self._take("{"):
            end = self.pattern.find("}", self.at)
            code = self._hexadecimal(end - self.at)
            self.at = end + 1
            return code
        code = self._hexadecimal(4)
        if 0xD800 <= code < 0xDC00 and self._take("\\u"):
            return 0x10000 + ((code - 0xD800) << 10) + (self._hexadecimal(4) - 0xDC00)
        if 0xD800 <= code < 0xE000:
            raise UnsupportedPatternError("lone surrogate")
        return code

    def _hexadecimal(self, width: int) -> int:
        digits = self.pattern[self.at : self.at + max(width, 0)]
        try:
            code = int(digits, 16)
        except ValueError:
            code = -1
        if not 0 <= code < 0x110000 or len(digits) != width:
            raise UnsupportedPatternError("malformed escape")
        self.at += width
        return code

    def _bracket(self) -> Characters:
        end = self.pattern.find("]", self.at)
        text = self.pattern[self.at : end + 1]
        if end < 0 or "\\" in text:
            return self.members()
        self.at = end + 1
        return _bracket_without_escape(text)

    def members(self) -> Characters:
        """The characters of a class, from behind its opening bracket on."""
        negative = self._take("^")
        found = Characters(0)
        while not self._take("]"):
            if self.at >= len(self.pattern):
                raise UnsupportedPatternError("unbalanced bracket")
            low = self._bracket_member()
            if self._peek() == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("]", "") and _code_of(low) >= 0:
                mark = self.at
                self.at += 1
                high = self._bracket_member()
                if _code_of(high) >= _code_of(low):
                    found = found.union(_span(_code_of(low), _code_of(high)))
                    continue
                self.at = mark
            found = found.union(low)
        return found.complement() if negative else found

    def _bracket_member(self) -> Characters:
        if self._take("\\"):
            if self._take("b"):
                return _single(8)
            if self._take("-"):
                return _single(0x2D)
            return self._class_escape()
        char = self._peek()
        if not char:
            raise UnsupportedPatternError("unbalanced bracket")
        self.at += 1
        return _single(ord(char))


@functools.lru_cache(maxsize=1024)
def _bracket_without_escape(text: str) -> Characters:
    return _Parser(text).members()


@functools.lru_cache(maxsize=1024)
def _literal(char: str) -> Class:
    return Class(_single(ord(char)))


def _single(code: int) -> Characters:
    return _span(code, code)


def _span(low: int, high: int) -> Characters:
    mask = 0
    if low < 128:
        mask = (1 << (min(high, 127) + 1)) - (1 << low)
    if high < 128:
        return Characters(mask)
    low = max(low, 128)
    return Characters(mask, f"[\\x{{{low:X}}}-\\x{{{high:X}}}]" if low < high else f"[\\x{{{low:X}}}]")


def _code_of(characters: Characters) -> int:
    """The one code of a singleton, -1 for anything else."""
    if not characters.beyond:
        mask = characters.ascii
        return mask.bit_length() - 1 if mask and mask & (mask - 1) == 0 else -1
    if characters.ascii or "-" in characters.beyond or not characters.beyond.startswith("[\\x{"):
        return -1
    digits = characters.beyond[4:-2]
    return int(digits, 16) if "x" not in digits else -1


@functools.lru_cache(maxsize=256)
def _property_characters(name: str) -> Characters:
    """Characters of a Unicode property; the ASCII part is found by asking a regular expression engine."""
    import regex

    try:
        matcher = regex.compile(rf"\p{{{name}}}")
    except regex.error:
        raise UnsupportedPatternError(f"property {name}") from None
    mask = sum(1 << code for code in range(128) if matcher.match(chr(code)))
    return Characters(mask, rf"[\p{{{name}}}&&{BEYOND_ASCII}]")


# --- quoting -------------------------------------------------------------------------------------------------------


def _class_member(code: int) -> str:
    char = chr(code)
    return char if char.isalnum() else f"\\x{code:02X}"


def _ranges(mask: int) -> Iterator[tuple[int, int]]:
    while mask:
        low = (mask & -mask).bit_length() - 1
        above = (mask >> low) + 1
        size = (above & -above).bit_length() - 1
        yield low, low + size - 1
        mask &= -1 << (low + size)


def _bracketed(mask: int) -> str:
    return "".join(
        _class_member(low) if low == high else f"{_class_member(low)}-{_class_member(high)}"
        for low, high in _ranges(mask)
    )


_RAW = ASCII & ~((1 << 32) - 1) & ~_mask('"\\')
_ESCAPABLE = functools.reduce(lambda mask, code: mask | 1 << code, [*SHORT_ESCAPES, *NUMERIC_ESCAPES], 0)


def _escaped_spellings(mask: int) -> list[str]:
    """Alternatives that spell members of ``mask`` with a backslash."""
    options = []
    short = "".join(f"\\{e}" if e in '"/\\' else e for code, e in SHORT_ESCAPES.items() if mask >> code & 1)
    if short:
        options.append(f"[{short}]")
    digits: dict[int, list[str]] = {}
    for code in NUMERIC_ESCAPES:
        if mask >> code & 1:
            last = f"{code & 15:x}"
            digits.setdefault(code >> 4, []).append(last + (last.upper() if last.isalpha() else ""))
    by_tail: dict[str, str] = {}
    for high, tails in digits.items():
        tail = "".join(sorted(tails))
        by_tail[tail] = by_tail.get(tail, "") + f"{high:x}"
    options.extend(f"u00[{highs}][{tail}]" for tail, highs in by_tail.items())
    return options


@functools.lru_cache(maxsize=4096)
def quoted_class(characters: Characters) -> str:
    """A regular expression of the Rust syntax for one character of the set as it is spelled inside a JSON string."""
    raw = _bracketed(characters.ascii & _RAW) + characters.beyond
    escaped = _escaped_spellings(characters.ascii & _ESCAPABLE) if characters.ascii & _ESCAPABLE else []
    options = [f"[{raw}]"] if raw else []
    if escaped:
        options.append(f"\\\\(?:{'|'.join(escaped)})")
    if not options:
        return r"[^\x00-\x{10FFFF}]"
    return options[0] if len(options) == 1 and not escaped else f"(?:{'|'.join(options)})"


ANY_CHARACTER = quoted_class(_ANY)


def quoted_literal(text: str) -> str:
    """A regular expression for every spelling of ``text`` inside a JSON string."""
    return "".join(quoted_class(_single(ord(char))) if ord(char) < 128 else char for char in text)


def _quoted(node: Node) -> str:
    """The node over the text of a JSON string."""
    if isinstance(node, Class):
        return quoted_class(node.characters)
    return _spelled(node, _quoted)


def _plainly(node: Node) -> str:
    """The node over decoded text."""
    if isinstance(node, Class):
        return _plain_class(node.characters)
    return _spelled(node, _plainly)


@functools.lru_cache(maxsize=4096)
def _plain_class(characters: Characters) -> str:
    members = _bracketed(characters.ascii) + characters.beyond
    return f"[{members}]" if members else r"[^\x00-\x{10FFFF}]"


class Spelling(NamedTuple):
    """How a terminal writes the characters of a string."""

    node: Callable[[Node], str]
    character: Callable[[Characters], str]
    any_character: str
    quote: str
    """What stands before and behind the string."""


IN_JSON = Spelling(_quoted, quoted_class, ANY_CHARACTER, '"')
AS_TEXT = Spelling(_plainly, _plain_class, "(?s:.)", "")


def _spelled(node: Node, spell: Callable[[Node], str]) -> str:
    """A compound node, its parts spelled by a function."""
    if isinstance(node, Sequence):
        return "".join(map(spell, node.items))
    if isinstance(node, Choice):
        return f"(?:{'|'.join(map(spell, node.options))})"
    if isinstance(node, Repeat):
        inner = f"(?:{spell(node.item)})"
        if (node.minimum, node.maximum) == (0, None):
            return inner + "*"
        if (node.minimum, node.maximum) == (1, None):
            return inner + "+"
        if (node.minimum, node.maximum) == (0, 1):
            return inner + "?"
        return f"{inner}{{{node.minimum},{'' if node.maximum is None else node.maximum}}}"
    raise AssertionError(node)


# --- anchors and look-ahead ----------------------------------------------------------------------------------------


def has_assertion(node: Node) -> bool:
    """Whether an anchor or a look-ahead is inside."""
    if isinstance(node, Class):
        return False
    if isinstance(node, Sequence):
        return any(map(has_assertion, node.items))
    if isinstance(node, Choice):
        return any(map(has_assertion, node.options))
    if isinstance(node, Repeat):
        return has_assertion(node.item)
    return True


def _nullable(node: Node) -> bool:
    if isinstance(node, Class):
        return False
    if isinstance(node, Sequence):
        return all(map(_nullable, node.items))
    if isinstance(node, Choice):
        return any(map(_nullable, node.options))
    if isinstance(node, Repeat):
        return node.minimum == 0 or _nullable(node.item)
    return True


def _tempered(node: Node) -> bool:
    """``((?!x).)*``: a run of characters at none of which ``x`` matches."""
    return (
        isinstance(node, Repeat)
        and (node.minimum, node.maximum) in ((0, None), (1, None))
        and isinstance(node.item, Sequence)
        and len(node.item.items) == 2
        and isinstance(node.item.items[0], LookAhead)
        and node.item.items[0].negative
        and isinstance(node.item.items[1], Class)
    )


def _unfold(node: Node) -> list[tuple[Node, ...]]:
    """Alternatives without groups, so that anchors and look-aheads stand at the top."""
    if not has_assertion(node) or isinstance(node, (Anchor, LookAhead)) or _tempered(node):
        return [(node,)]
    if isinstance(node, Choice):
        found = [sequence for option in node.options for sequence in _unfold(option)]
    elif isinstance(node, Sequence):
        found = [()]
        for item in node.items:
            tails = _unfold(item)
            if len(found) * len(tails) > MAXIMUM_SEQUENCES:
                raise UnsupportedPatternError("alternatives with anchors")
            found = [head + tail for head in found for tail in tails]
    elif isinstance(node, Repeat):
        if node.maximum is None or node.maximum > 2:
            raise UnsupportedPatternError("repeated look-ahead")
        found = []
        for count in range(node.minimum, node.maximum + 1):
            found.extend(_unfold(Sequence((node.item,) * count)))
    else:
        raise AssertionError(node)
    if len(found) > MAXIMUM_SEQUENCES:
        raise UnsupportedPatternError("alternatives with anchors")
    return found


def _anchored(sequence: tuple[Node, ...]) -> tuple[tuple[Node, ...], bool, bool] | None:
    """The sequence without its anchors and whether it is tied to the start and the end; None if it cannot match."""
    items = list(sequence)
    start = end = False
    starts = [i for i, item in enumerate(items) if isinstance(item, Anchor) and item.side == "start"]
    if starts:
        head = items[: starts[-1]]
        if not all(map(_nullable, head)):
            return None
        items = [item for item in head if isinstance(item, LookAhead)] + items[starts[-1] + 1 :]
        start = True
    ends = [i for i, item in enumerate(items) if isinstance(item, Anchor)]
    if ends:
        tail = items[ends[0] + 1 :]
        if not all(map(_nullable, tail)) or any(isinstance(item, LookAhead) for item in tail):
            return None
        items = items[: ends[0]]
        end = True
    return tuple(items), start, end


def _tail(items: tuple[Node, ...], end: bool, spelling: Spelling) -> str:
    """A Lark expression for the rest of the string, its closing quote included."""
    anything, quote = f"(?:{spelling.any_character})*", spelling.quote
    for index, item in enumerate(items):
        if not has_assertion(item):
            continue
        head = "".join(map(spelling.node, items[:index]))
        rest = _tail(items[index + 1 :], end, spelling)
        if isinstance(item, LookAhead):
            ahead = _ahead(item.item, spelling)
            clause = f"({rest} & {'~' if item.negative else ''}({ahead}))"
        elif isinstance(item, Repeat) and isinstance(item.item, Sequence) and index == len(items) - 1 and end:
            look, unit = item.item.items
            assert isinstance(look, LookAhead)
            assert isinstance(unit, Class)
            sign = "*" if item.minimum == 0 else "+"
            run = f"/(?:{spelling.character(unit.characters)}){sign}{quote}/"
            if _nullable(look.item):
                raise UnsupportedPatternError("empty look-ahead")
            clause = f"({run} & ~(/{anything}/ ({_ahead(look.item, spelling)})))"
        else:
            raise UnsupportedPatternError("repeated look-ahead")
        return f"{_regex(head)} {clause}" if head else clause
    body = "".join(map(spelling.node, items))
    return _regex(f"{body}{'' if end else anything}{quote}")


def _regex(text: str) -> str:
    """A regular expression as a terminal, where there may be none of it."""
    return f"/{text}/" if text else '""'


def _ahead(node: Node, spelling: Spelling) -> str:
    options = []
    for sequence in _unfold(node):
        placed = _anchored(sequence)
        if placed is None:
            continue
        items, start, end = placed
        if start:
            raise UnsupportedPatternError("anchor in a look-ahead")
        options.append(f"({_tail(items, end, spelling)})")
    return " | ".join(options) or _NEVER


_NEVER = r"/[^\x00-\x{10FFFF}]/"


def _size(node: Node) -> int:
    if isinstance(node, Sequence):
        return sum(map(_size, node.items))
    if isinstance(node, Choice):
        return sum(map(_size, node.options))
    if isinstance(node, Repeat):
        return _size(node.item) * max(node.minimum, node.maximum or 1, 1)
    if isinstance(node, LookAhead):
        return _size(node.item)
    return 1


class Placement(NamedTuple):
    """One alternative of a pattern: its parts, and whether it is tied to the start and to the end of the string."""

    items: tuple[Node, ...]
    at_start: bool
    at_end: bool


@functools.lru_cache(maxsize=1024)
def placements(pattern: str) -> tuple[Placement, ...]:
    """The alternatives of a pattern, anchors and look-aheads at the top of each; none where it cannot match.

    Raises `UnsupportedPatternError` when the pattern is no regular language that can be told, or is over the bounds.
    """
    node = _Parser(pattern).parse()
    if _size(node) > MAXIMUM_SIZE:
        raise UnsupportedPatternError("size")
    return tuple([Placement(*found) for sequence in _unfold(node) if (found := _anchored(sequence)) is not None])


def matches_all(pattern: str) -> bool:
    """Whether it is seen at once that a pattern matches every string: nothing at an end that it is not tied to."""
    try:
        return any(
            not (at_start and at_end) and not any(map(has_assertion, items)) and all(map(_nullable, items))
            for items, at_start, at_end in placements(pattern)
        )
    except UnsupportedPatternError:
        return False


@functools.lru_cache(maxsize=1024)
def terminal(pattern: str, spelling: Spelling = IN_JSON) -> str:
    """A Lark expression for the strings that ``pattern`` matches somewhere, as they are spelled in JSON or as text.

    Raises `UnsupportedPatternError` when the pattern is no regular language that can be told, or is over the bounds.
    """
    options = []
    for items, start, end in placements(pattern):
        lead = f"{spelling.quote}{'' if start else f'(?:{spelling.any_character})*'}"
        tail = _tail(items, end, spelling)
        if tail.startswith("/"):
            options.append(f"/{lead}{tail[1:]}")
        else:
            options.append(f"{_regex(lead)} {tail}" if lead else tail)
    return " | ".join(options) or _NEVER


@functools.lru_cache(maxsize=1024)
def engine_pattern(pattern: str) -> str | None:
    """The pattern as the engine's own JSON Schema compiler takes it, in the syntax of Rust's ``regex``; None where it
    cannot be told so.

    That compiler takes no numeric escape of some characters where a pattern is, and DEL by its escape only, so that a
    string has fewer spellings than in `terminal`.
    """
    try:
        placed = placements(pattern)
    except UnsupportedPatternError:
        return None
    if not placed or any(has_assertion(item) or _is_loose(item) for items, _, _ in placed for item in items):
        return None
    options = [
        f"{'' if start else _ANYTHING}{''.join(map(_plainly, items))}{'' if end else _ANYTHING}"
        for items, start, end in placed
    ]
    return f"^{options[0]}$" if len(options) == 1 else f"^(?:{'|'.join(options)})$"


_ANYTHING = r"[\s\S]*"
_ESCAPED = _mask('"\\')


def _is_loose(node: Node) -> bool:
    """Whether the compiler would take ``\\"`` or ``\\\\`` for a character that is none of the node's: it does where all
    control characters are allowed (llguidance 1.9)."""
    if isinstance(node, Class):
        return bool(node.characters.ascii & 1) and node.characters.ascii & _ESCAPED != _ESCAPED
    if isinstance(node, Sequence):
        return any(map(_is_loose, node.items))
    if isinstance(node, Choice):
        return any(map(_is_loose, node.options))
    return isinstance(node, Repeat) and _is_loose(node.item)


def strict_spelling(pattern: str) -> str:
    """The pattern with lone brackets and braces escaped, which browsers take as they are and strict engines do not."""
    parts = []
    in_class = False
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            parts.append(pattern[at : at + 2])
            at += 2
            continue
        quantifier = _QUANTIFIER.match(pattern, at) if char == "{" and not in_class else None
        if quantifier is not None:
            parts.append(quantifier.group())
            at = quantifier.end()
            continue
        if in_class:
            in_class = char != "]"
            parts.append("\\[" if char == "[" else char)
        else:
            in_class = char == "["
            parts.append(f"\\{char}" if char in "]{}" else char)
        at += 1
    return "".join(parts)
