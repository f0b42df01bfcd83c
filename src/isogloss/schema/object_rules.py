"""Objects of a schema, as rules.

Declared keys come in schema order, each at most once, then the extra ones. Where the number of keys matters, or a key
of some kind has to be there, the rules count: a parametric rule carries the number of keys so far in its low bits and
one bit above for each such kind.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import jsonschema_rs
import msgspec
from jsonschema_rs import CanonicalSchema
from jsonschema_rs import canonical as forms

from isogloss.schema import scalar_terminals
from isogloss.schema.pattern_placements import matches_all
from isogloss.schema.pattern_tree import UnsupportedPatternError
from isogloss.schema.patterns import terminal
from isogloss.schema.rule_text import repeated, when

if TYPE_CHECKING:
    from isogloss.schema.json_grammar import GrammarWriter

MAXIMUM_PATTERNS = 8
"""Patterns of one ``patternProperties`` whose overlaps are told apart."""
COUNTER_BITS = 40
MAXIMUM_COUNTED = 500
"""Declared keys of one object that are counted; their rules form a chain."""
MAXIMUM_FLAT = 6


class Entry(msgspec.Struct):
    """One way to write a key and its value, and the kinds of key (by number) that it is known to be."""

    key: str
    value: str
    kinds: tuple[int, ...] = ()


class Slot(msgspec.Struct):
    """A declared key: the ways to write it, the most general one first."""

    entries: list[Entry]
    required: bool = False


class _Names:
    """The languages of keys that one object speaks of."""

    def __init__(self, writer: GrammarWriter, node: CanonicalSchema, view: forms.ObjectView) -> None:
        self.writer = writer
        self.node = node
        self.finite: list[str] | None = None
        """Every key there may be, where they are finitely many."""
        self.expression: str | None = None
        """The language of keys; None for all."""
        self.validator = None
        if view.property_names is not None:
            self.finite = writer.canonical.finite_strings(view.property_names)
            if self.finite is None:
                self.expression = scalar_terminals.key_expression(writer, view.property_names, node)
                self.validator = writer.canonical.validator(view.property_names)

    def admits(self, name: str) -> bool:
        if self.finite is not None:
            return name in self.finite
        return self.validator is None or self.validator.is_valid(name)


def write(writer: GrammarWriter, name: str, node: CanonicalSchema, view: forms.ObjectView) -> None:
    """Define the rule ``name`` as the objects of a node."""
    names = _Names(writer, node, view)
    properties, required = view.properties, dict.fromkeys(view.required)
    listed = list(dict.fromkeys([*properties, *required]))
    if names.finite is not None:
        known = set(names.finite)
        listed = list(dict.fromkeys([*(n for n in listed if n in known), *names.finite]))
    matchers = _matchers(writer, view)
    slots = []
    taken = []
    kinds = _witness_kinds(writer, node, view)
    ordered = writer.order.of_object(listed, required, additions=names.finite is None)
    for key in ordered:
        taken.append(key)
        if not names.admits(key):
            continue
        slot = _slot(writer, node, view, key, properties.get(key), matchers, kinds)
        if slot is not None:
            slot.required = key in required
            slots.append(slot)
        elif key in required:
            writer.define(name, scalar_terminals.NOTHING)
            return
    extras = [] if names.finite is not None else _extras(writer, node, view, names, taken, kinds)
    if extras:
        writer.open_keys = True
    low, high = view.min_properties or 0, view.max_properties
    body = _body(writer, slots, extras, low, high, kinds=len(kinds))
    if body is None:
        writer.mark(node, "value")
        body = _plain_body(writer, slots, extras)
    writer.define(name, f"{writer.shared('JSON_OBJECT_OPEN')} {body} {writer.shared('JSON_OBJECT_CLOSE')}")


# --- what is in it -------------------------------------------------------------------------------------------------


def _matchers(writer: GrammarWriter, view: forms.ObjectView) -> list[tuple[str, CanonicalSchema, _Matcher]]:
    return [(pattern, schema, _Matcher(pattern)) for pattern, schema in view.pattern_properties.items()]


class _Matcher:
    """Whether a pattern matches a string, asked of the validator so that both always agree."""

    def __init__(self, pattern: str) -> None:
        self._validator = jsonschema_rs.validator_for({"pattern": pattern})

    def matches(self, text: str) -> bool:
        return self._validator.is_valid(text)


def _slot(
    writer: GrammarWriter,
    node: CanonicalSchema,
    view: forms.ObjectView,
    key: str,
    found: CanonicalSchema | None,
    matchers: list[tuple[str, CanonicalSchema, _Matcher]],
    kinds: list[_Kind],
) -> Slot | None:
    schemas = [found] if found is not None else []
    matching = [schema for _, schema, matcher in matchers if matcher.matches(key)]
    schemas += matching
    if found is None and not matching and view.additional_properties is not None:
        schemas.append(view.additional_properties)
    followed = found if found is not None else _only(schemas)
    text = scalar_terminals.key(writer, key)
    entries = []
    for noted, narrowed in _combinations(
        kinds, [i for i, kind in enumerate(kinds) if kind.matches(key)], declared=True
    ):
        value = writer.value(writer.conjunction([*schemas, *narrowed], node, followed))
        if value is not None:
            entries.append(Entry(text, value, noted))
    return Slot(entries) if entries else None


def _only(schemas: list[CanonicalSchema]) -> CanonicalSchema | None:
    """The one schema that all are; a guard follows the value of a key to it."""
    return schemas[0] if schemas and schemas.count(schemas[0]) == len(schemas) else None


def _combinations(
    kinds: list[_Kind], matching: list[int], *, declared: bool
) -> Iterator[tuple[tuple[int, ...], list[CanonicalSchema]]]:
    """The sets of kinds that a key may be chosen to be of, with what its value then has to be.

    A declared key is of a kind that only names decide without being chosen.
    """
    always = tuple(i for i in matching if kinds[i].value is None) if declared else ()
    chosen = [i for i in matching if i not in always]
    for count in range(len(chosen) + 1):
        for some in itertools.combinations(chosen, count):
            yield (*always, *some), [value for i in some if (value := kinds[i].value) is not None]


def _extras(
    writer: GrammarWriter,
    node: CanonicalSchema,
    view: forms.ObjectView,
    names: _Names,
    taken: list[str],
    kinds: list[_Kind],
) -> list[Entry]:
    shared = [] if names.expression is None else [f"({names.expression})"]
    without = [f"~({scalar_terminals.key_alternatives(taken)})"] if taken else []
    extras = []
    for included, excluded, schemas in _classes(writer, node, view):
        for noted, narrowed in _combinations(kinds, list(range(len(kinds))), declared=False):
            value = writer.value(writer.conjunction([*schemas, *narrowed], node, _only(schemas)))
            if value is None:
                continue
            parts = [*included, *shared, *(e for i in noted for e in kinds[i].included)]
            outside = [*excluded, *(e for i in noted for e in kinds[i].excluded)]
            negative = [*(f"~({expression})" for expression in outside), *without]
            if not parts and not negative:
                extras.append(Entry(writer.shared("JSON_KEY"), value, noted))
                continue
            if not parts:
                parts = [writer.shared("JSON_KEY")]
            expression = " & ".join([*parts, *negative])
            if len(parts) + len(outside) > 1 and scalar_terminals.is_empty(_expanded(expression)):
                continue
            extras.append(Entry(writer.terminal(expression), value, noted))
    return extras


def _expanded(expression: str) -> str:
    """The expression by itself, outside the grammar that defines ``JSON_KEY``."""
    return expression.replace("JSON_KEY", scalar_terminals.ANY_KEY)


def _classes(
    writer: GrammarWriter, node: CanonicalSchema, view: forms.ObjectView
) -> list[tuple[list[str], list[str], list[CanonicalSchema]]]:
    """Undeclared keys by the patterns they match: the languages they are in, those they are not in, their schemas."""
    additional = [view.additional_properties] if view.additional_properties is not None else []
    grouped: dict[CanonicalSchema, list[str]] = {}
    for pattern, schema in view.pattern_properties.items():
        expression = scalar_terminals.pattern_language(writer, node, pattern)
        if expression is not None:
            grouped.setdefault(schema, []).append(f"({expression})")
    languages = [(" | ".join(expressions), schema) for schema, expressions in grouped.items()]
    if len(languages) > MAXIMUM_PATTERNS:
        writer.mark(node, "value")
        classes: list[tuple[list[str], list[str], list[CanonicalSchema]]] = [
            ([f"({expression})"], [], [schema]) for expression, schema in languages
        ]
    else:
        classes = [([], [], [])]
        for expression, schema in languages:
            split = []
            for included, excluded, schemas in classes:
                inside = [*included, f"({expression})"]
                if len(inside) == 1 or not scalar_terminals.is_empty(" & ".join(inside)):
                    split.append((inside, excluded, [*schemas, schema]))
                split.append((included, [*excluded, expression], schemas))
            classes = split
        classes = [entry for entry in classes if entry[0]]
    if not any(map(matches_all, view.pattern_properties)):
        classes.append(([], [expression for expression, _ in languages], additional))
    return classes


# --- what has to be in it ------------------------------------------------------------------------------------------


class _Kind(msgspec.Struct):
    """A kind of key of which there has to be one: its language, and what its value has to be (None: anything)."""

    included: list[str]
    excluded: list[str]
    value: CanonicalSchema | None
    matches: Callable[[str], bool]


def _witness_kinds(writer: GrammarWriter, node: CanonicalSchema, view: forms.ObjectView) -> list[_Kind]:
    return [kind for violation in view.violations if (kind := _kind_or_none(writer, node, violation)) is not None]


_Violation = forms.NameFailsView | forms.UndeclaredValueFailsView | forms.PatternValueFailsView


def _kind_or_none(writer: GrammarWriter, node: CanonicalSchema, violation: _Violation) -> _Kind | None:
    try:
        return _kind(writer, node, violation)
    except (forms.CanonicalizationError, UnsupportedPatternError):
        writer.mark(node, "value")
        return None


def _kind(writer: GrammarWriter, node: CanonicalSchema, violation: _Violation) -> _Kind:
    if isinstance(violation, forms.NameFailsView):
        validator = writer.canonical.validator(violation.schema)
        expression = scalar_terminals.key_expression(writer, violation.schema, violation.schema)
        if violation.schema in writer.inexact:
            raise UnsupportedPatternError("Expected names that a grammar can tell")
        excluded = [scalar_terminals.ANY_KEY if expression is None else expression]
        return _Kind([], excluded, None, lambda key: not validator.is_valid(key))
    if isinstance(violation, forms.PatternValueFailsView):
        included = [f"({terminal(violation.pattern)})"]
        return _Kind(included, [], violation.schema.negate(), _Matcher(violation.pattern).matches)
    listed = set(violation.names)
    matchers = [_Matcher(pattern) for pattern in violation.patterns]
    excluded = [terminal(pattern) for pattern in violation.patterns]
    if listed:
        excluded.append(scalar_terminals.key_alternatives(sorted(listed)))
    return _Kind(
        [],
        excluded,
        violation.additional.negate(),
        lambda key: key not in listed and not any(matcher.matches(key) for matcher in matchers),
    )


# --- rules ---------------------------------------------------------------------------------------------------------


def _body(
    writer: GrammarWriter, slots: list[Slot], extras: list[Entry], low: int, high: int | None, *, kinds: int
) -> str | None:
    """What stands between the braces; None where counting is over the engine's means."""
    needed = sum(slot.required for slot in slots)
    if high is not None and needed > high:
        return scalar_terminals.NOTHING
    if not extras:
        if low > len(slots):
            return scalar_terminals.NOTHING
        high = None if high is not None and high >= len(slots) else high
    if low <= needed and high is None and not kinds:
        return _plain_body(writer, slots, extras)
    if not kinds and needed == len(slots):
        return _counted_extras(writer, slots, extras, low, high)
    noted = [len(entry.kinds) for slot in slots for entry in slot.entries] + [len(entry.kinds) for entry in extras]
    if (
        len(slots) > MAXIMUM_COUNTED
        or max(low, high or 0) >= 1 << (COUNTER_BITS - 2)
        or kinds > 60 - COUNTER_BITS
        or max(noted, default=0) > 2
    ):
        return None
    return _Counting(writer, slots, extras, low, high, kinds).start()


def _item(writer: GrammarWriter, slot: Slot) -> str:
    entry = slot.entries[0]
    return f"{entry.key} {writer.shared('JSON_COLON')} {entry.value}"


def _extra(writer: GrammarWriter, extras: list[Entry]) -> str:
    colon = writer.shared("JSON_COLON")
    items = [f"{entry.key} {colon} {entry.value}" for entry in extras if not entry.kinds]
    if len(items) < 2:
        return items[0] if items else ""
    return writer.rule(" | ".join(items))


def _plain_body(writer: GrammarWriter, slots: list[Slot], extras: list[Entry]) -> str:
    comma = writer.shared("JSON_COMMA")
    extra = _extra(writer, extras)
    first_required = next((i for i, slot in enumerate(slots) if slot.required), len(slots))
    optional, others = slots[:first_required], slots[first_required:]
    following = f" ({comma} {extra})*" if extra else ""
    if others:
        parts = [_item(writer, others[0])]
        for slot in others[1:]:
            item = f"{comma} {_item(writer, slot)}"
            parts.append(item if slot.required else f"({item})?")
        rest = " ".join(parts) + following
        if not optional:
            return rest
        some, _ = _some_of(writer, [_item(writer, slot) for slot in optional])
        rest = writer.rule(rest)
        return f"({some} {comma} {rest} | {rest})"
    ways = [f"{extra}{following}"] if extra else []
    if optional:
        some, _ = _some_of(writer, [_item(writer, slot) for slot in optional])
        ways.insert(0, f"{some}{following}")
    return f"({' | '.join(ways)})?" if ways else ""


def _some_of(writer: GrammarWriter, items: list[str]) -> tuple[str, str]:
    """Rules for at least one of some items in their order, and for any of them, each after a comma.

    They halve the items, so that rules refer to each other to a depth that is logarithmic.
    """
    comma = writer.shared("JSON_COMMA")
    if len(items) > MAXIMUM_FLAT:
        middle = len(items) // 2
        first_some, first_any = _some_of(writer, items[:middle])
        second_some, second_any = _some_of(writer, items[middle:])
        some = writer.rule(f"{first_some} {second_any} | {second_some}")
        return some, writer.rule(f"{first_any} {second_any}")
    if len(items) > 1:
        items = [writer.rule(item) for item in items]
    after = [f"({comma} {item})?" for item in items]
    some = " | ".join(" ".join([item, *after[i + 1 :]]) for i, item in enumerate(items))
    return writer.rule(some), writer.rule(" ".join(after))


def _counted_extras(writer: GrammarWriter, slots: list[Slot], extras: list[Entry], low: int, high: int | None) -> str:
    """All declared keys, then a number of extra ones within bounds."""
    comma = writer.shared("JSON_COMMA")
    extra = _extra(writer, extras)
    least = max(low - len(slots), 0)
    most = None if high is None else high - len(slots)
    declared = f" {comma} ".join(_item(writer, slot) for slot in slots)
    if not extra:
        return declared if least == 0 else scalar_terminals.NOTHING
    if most == 0:
        return declared
    if declared:
        return f"{declared} {repeated(f'{comma} {extra}', least, most)}"
    tail = f"{extra} {repeated(f'{comma} {extra}', max(least - 1, 0), None if most is None else most - 1)}"
    return tail if least else f"({tail})?"


class _Counting:
    """Parametric rules for declared keys that may be left out while their number, or their kinds, matter.

    One symbol of a rule can change the parameter once; the key takes the count, the colon and the value a kind each.
    """

    def __init__(
        self, writer: GrammarWriter, slots: list[Slot], extras: list[Entry], low: int, high: int | None, kinds: int
    ) -> None:
        self.writer = writer
        self.slots = slots
        self.extras = extras
        self.low = low
        self.high = high
        self.kinds = kinds
        self.width = max(low, high or 0).bit_length() + 1
        self.count = f"[0:{self.width}]"
        self.names = [writer.fresh() for _ in range(len(slots) + 1)]

    def start(self) -> str:
        for index in range(len(self.slots)):
            self._slot(index)
        self._tail()
        return f"{self.names[0]}::0"

    def _bit(self, kind: int) -> int:
        return self.width + kind

    def _options(self, entry: Entry, following: str, conditions: list[str]) -> list[str]:
        colon, comma = self.writer.shared("JSON_COLON"), self.writer.shared("JSON_COMMA")
        if not entry.kinds:
            item = f"{entry.key} {colon} {entry.value} {following}::incr({self.count})"
        else:
            last = f"{entry.value} {following}::set_bit({self._bit(entry.kinds[-1])})"
            if len(entry.kinds) == 2:
                inner = self.writer.fresh()
                self.writer.define_parametric(inner, [last])
                last = f"{inner}::set_bit({self._bit(entry.kinds[0])})"
            rest = self.writer.fresh()
            self.writer.define_parametric(rest, [f"{colon} {last}"])
            item = f"{entry.key} {rest}::incr({self.count})"
        return [
            f"{item} {when([f'is_zeros({self.count})', *conditions])}",
            f"{comma} {item} {when([f'gt({self.count}, 0)', *conditions])}",
        ]

    def _slot(self, index: int) -> None:
        slot, following = self.slots[index], self.names[index + 1]
        later = self.slots[index + 1 :]
        room = []
        most = None if self.high is None else self.high - sum(s.required for s in later)
        options = []
        if most is None or most > 0:
            room = [] if most is None else [f"lt({self.count}, {most})"]
            for entry in slot.entries:
                options += self._options(entry, following, room)
        if not slot.required:
            options.append(f"{following}::_ {when(self._skipping(later))}")
        self.writer.define_parametric(self.names[index], options)

    def _skipping(self, later: list[Slot]) -> list[str]:
        """When the key may be left out: what is needed can still come."""
        conditions = []
        if not self.extras and self.low > len(later):
            conditions.append(f"ge({self.count}, {self.low - len(later)})")
        open_kinds = {kind for slot in later for entry in slot.entries for kind in entry.kinds}
        open_kinds.update(kind for entry in self.extras for kind in entry.kinds)
        conditions += [f"bit_set({self._bit(kind)})" for kind in range(self.kinds) if kind not in open_kinds]
        return conditions

    def _tail(self) -> None:
        name = self.names[-1]
        done = [f"ge({self.count}, {self.low})"] if self.low else []
        done += [f"bit_set({self._bit(kind)})" for kind in range(self.kinds)]
        options = [f'"" {when(done)}']
        room = [] if self.high is None else [f"lt({self.count}, {self.high})"]
        for entry in self.extras:
            options += self._options(entry, name, room)
        self.writer.define_parametric(name, options)
