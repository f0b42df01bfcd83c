"""Terms as llguidance's Lark, for one vocabulary: which markers are control tokens decides how free text ends.

Every kind of free text is one rule, however often it occurs: a lexeme that ends with the first marker
(``[suffix=...]``) where the marker is text, and a plain lexeme before a control token, which ends text by itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from isogloss.constraints.json_value import lowered
from isogloss.errors import GrammarError
from isogloss.grammar import (
    Choice,
    FreeText,
    Grammar,
    JsonValue,
    Literal,
    Loose,
    Marker,
    Nested,
    Reference,
    Regex,
    Repeat,
    Rule,
    Sequence,
    Term,
)

if TYPE_CHECKING:
    from isogloss.schema.guards import Guards

HEADER = "%llguidance {}"
"""By this first line an engine that knows several grammar languages tells this one."""

ANY_TEXT = "(?s:.*)"

_RULE_NAME = re.compile("[a-z][a-z0-9_]*")
_META_CHARACTERS = re.compile(r"[\\.+*?()|\[\]{}^$#&~/-]")


def write_lark(term: Term, special_tokens: Mapping[str, int]) -> str:
    """The grammar of a term, where ``special_tokens`` are control tokens and every other marker is text.

    Raises `GrammarError` for a reference without its rule, and for a `Grammar` inside another term.
    """
    return write_announced(term, special_tokens, None)[0]


def write_announced(
    term: Term, special_tokens: Mapping[str, int], announcement: int | None
) -> tuple[str, list[Guards]]:
    """As `write_lark`, with what the grammar leaves open of the JSON values in it.

    With an ``announcement``, a control token (an id), each of those values comes only behind it and then the number of
    its guards in the list, as that many letters ``j`` and a ``;``.
    """
    if isinstance(term, Grammar):
        return term.lark, []
    writer = _Writer(special_tokens, announcement)
    return writer.grammar(term), writer.guards


class _Writer:
    def __init__(self, special_tokens: Mapping[str, int], announcement: int | None = None) -> None:
        self._special = special_tokens
        self._announcement = announcement
        self._names: dict[str, str] = {}  # what follows a rule's name -> its name
        self._rules: dict[str, str] = {}  # the named ones
        self._json_starts: dict[bytes, str] = {}  # by schema
        self._json_rules: list[str] = []
        self._json_shared: dict[str, str] = {}
        self._referenced: set[str] = set()
        self.guards: list[Guards] = []

    def grammar(self, term: Term) -> str:
        start = self._expression(term)
        missing = sorted(self._referenced - self._rules.keys())
        if missing:
            raise GrammarError(f"Expected a rule for every reference, got none named `{missing[0]}`")
        lines = [HEADER, f"start: {start}"]
        lines += [f"rule_{name}: {body}" for name, body in self._rules.items()]
        lines += [f"{name}{body}" for body, name in self._names.items()]
        lines += self._json_rules
        lines += [f"{name}: {body}" for name, body in self._json_shared.items()]
        return "\n".join(lines) + "\n"

    def _expression(self, term: Term) -> str:
        match term:
            case Literal(text):
                return quoted(text)
            case Marker():
                before, token, after = self._parts(term)
                return " ".join([*map(quoted, filter(None, [before])), *token, *map(quoted, filter(None, [after]))])
            case Regex(pattern, max_length, excluding):
                but = f" & ~/({_alternatives(list(excluding))})/" if excluding else ""
                return self._named("REGEX", f": {_lexeme(pattern, max_length)}{but}")
            case FreeText():
                return self._free_text(term)
            case Loose(inner):
                return self._expression(inner)
            case JsonValue(schema):
                return self._json(schema)
            case Sequence(terms):
                return " ".join([self._expression(part) for part in terms]) or '""'
            case Choice(terms):
                return f"({' | '.join([self._expression(part) for part in terms])})"
            case Repeat(inner, minimum, maximum):
                return f"({self._expression(inner)}){_times(minimum, maximum)}"
            case Rule(name, inner):
                return self._rule(name, inner)
            case Reference(name):
                self._referenced.add(name)
                return f"rule_{name}"
            case Nested(lark):
                return self._named("nested", f": %lark {{\n{lark}\n}}")
            case Grammar():
                raise GrammarError("Expected a whole grammar to stand alone, got one within another term")

    def _rule(self, name: str, term: Term) -> str:
        if not _RULE_NAME.fullmatch(name):
            raise GrammarError(f"Expected a rule's name of lower-case letters, digits and `_`, got `{name}`")
        body = self._expression(term)
        if self._rules.setdefault(name, body) != body:
            raise GrammarError(f"Expected one rule named `{name}`, got two that differ")
        return f"rule_{name}"

    def _json(self, schema: Mapping[str, Any] | bool) -> str:
        key = msgspec.json.encode(schema)
        if key not in self._json_starts:
            value = lowered(schema)
            grammar = value.grammar(f"json_{len(self._json_starts)}_")
            self._json_starts[key] = grammar.start
            if value.guards:
                if self._announcement is not None:
                    number = quoted("j" * len(self.guards) + ";")
                    self._json_starts[key] = f"(<[{self._announcement}]> {number} {grammar.start})"
                self.guards.append(value.guards)
            self._json_rules += grammar.rules.splitlines()
            self._json_shared.update(grammar.shared)
        return self._json_starts[key]

    def _free_text(self, term: FreeText) -> str:
        text = term.language or _lexeme(ANY_TEXT if term.pattern is None else term.pattern, None)
        excluded = self._spelled(term.excluding)
        if excluded:
            text = f"({text})" if term.language else text
            text += f" & ~/(?s:.*)({_alternatives(excluded)})(?s:.*)/"
        controls = [
            str(self._special[end.text]) for end in term.until if isinstance(end, Marker) and end.text in self._special
        ]
        halves = [end for end in term.until if isinstance(end, Marker) and self._holds_token(end)]
        spelled = self._spelled(term.until)
        ways = []
        if spelled:
            ways.append(self._named("text", f"[suffix={_suffix(spelled)}]: {text}"))
        if controls:
            ways.append(f"{self._named('TEXT', f': {text}')} <[{','.join(controls)}]>")
        for half in halves:
            before, token, after = self._parts(half)
            ending = self._named("TEXT", f": ({text}) {quoted(before)}" if before else f": {text}")
            ways.append(" ".join([ending, *token, *map(quoted, filter(None, [after]))]))
        if not term.until:
            ways.append(self._named("TEXT", f": {text}"))
        return ways[0] if len(ways) == 1 else f"({' | '.join(ways)})"

    def _spelled(self, ends: tuple[Marker | Literal, ...]) -> list[str]:
        """Those that are text in this vocabulary."""
        return [
            end.text
            for end in ends
            if isinstance(end, Literal) or not (end.text in self._special or self._holds_token(end))
        ]

    def _holds_token(self, marker: Marker) -> bool:
        return marker.text not in self._special and marker.token in self._special

    def _parts(self, marker: Marker) -> tuple[str, list[str], str]:
        """The text in front of a marker's control token, the token if there is one, and the text behind it."""
        for token in (marker.text, marker.token):
            if token in self._special:
                before, _, after = marker.text.partition(token)
                return before, [f"<[{self._special[token]}]>"], after
        return marker.text, [], ""

    def _named(self, kind: str, body: str) -> str:
        return self._names.setdefault(body, f"{kind}_{len(self._names)}")


def quoted(text: str) -> str:
    """Text as a string of Lark. Lone surrogates become U+FFFD."""
    return json.dumps(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"), ensure_ascii=False)


def _lexeme(pattern: str, max_length: int | None) -> str:
    from llguidance import regex_to_lark

    if max_length is None:
        return f"/{regex_to_lark(pattern, '')}/"
    bound = f"(?s:.{{0,{max_length}}})"
    if pattern == ANY_TEXT:
        return f"/{bound}/"
    return f"/{regex_to_lark(pattern, '')}/ & /{bound}/"


def _suffix(texts: list[str]) -> str:
    if len(texts) == 1:
        return quoted(texts[0])
    return f"/{_alternatives(texts)}/"


def _alternatives(texts: list[str]) -> str:
    return "|".join([_META_CHARACTERS.sub(_escaped, text) for text in texts]).replace("\n", "\\n")


def _escaped(match: re.Match[str]) -> str:
    return "\\" + match.group()


def _times(minimum: int, maximum: int | None) -> str:
    match minimum, maximum:
        case 0, None:
            return "*"
        case 1, None:
            return "+"
        case 0, 1:
            return "?"
        case _, None:
            return f"{{{minimum},}}"
    return f"{{{minimum},{maximum}}}"
