"""ECMA-262 regular expressions, read into a tree."""

from __future__ import annotations

import functools

from isogloss.schema.characters import BEYOND_ASCII, DIGITS, LINE_ENDS, SPACE, WORD, Characters, code_of, single, span
from isogloss.schema.pattern_tree import (
    Anchor,
    Choice,
    Class,
    LookAhead,
    Node,
    Repeat,
    Sequence,
    UnsupportedPatternError,
)

_CLASS_ESCAPES = {
    "d": DIGITS,
    "D": DIGITS.complement(),
    "w": WORD,
    "W": WORD.complement(),
    "s": SPACE,
    "S": SPACE.complement(),
}
_CONTROL_ESCAPES = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "0": 0}
_QUANTIFIER_SIGNS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_SYNTAX = frozenset("([\\^$.*+?")


class PatternParser:
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
            return literal(char)
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
            return Class(LINE_ENDS.complement())
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
        return single(self._code(char))

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
            if self._peek() == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("]", "") and code_of(low) >= 0:
                mark = self.at
                self.at += 1
                high = self._bracket_member()
                if code_of(high) >= code_of(low):
                    found = found.union(span(code_of(low), code_of(high)))
                    continue
                self.at = mark
            found = found.union(low)
        return found.complement() if negative else found

    def _bracket_member(self) -> Characters:
        if self._take("\\"):
            if self._take("b"):
                return single(8)
            if self._take("-"):
                return single(0x2D)
            return self._class_escape()
        char = self._peek()
        if not char:
            raise UnsupportedPatternError("unbalanced bracket")
        self.at += 1
        return single(ord(char))


@functools.lru_cache(maxsize=1024)
def _bracket_without_escape(text: str) -> Characters:
    return PatternParser(text).members()


@functools.lru_cache(maxsize=1024)
def literal(char: str) -> Class:
    return Class(single(ord(char)))


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
