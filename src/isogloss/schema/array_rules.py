"""Arrays of a schema, as rules.

Without ``contains`` and ``uniqueItems`` an array is a sequence of items with bounds on its length. With ``contains``
the rules are parametric and count the items of each kind; with ``uniqueItems`` over a small set of values each value
has a bit. Uniqueness of anything else is left to a guard.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from jsonschema_rs import CanonicalSchema
from jsonschema_rs import canonical as forms

from isogloss.schema import scalar_terminals
from isogloss.schema.rule_text import repeated, when

if TYPE_CHECKING:
    from isogloss.schema.json_grammar import GrammarWriter

MAXIMUM_UNIQUE_VALUES = 60
MAXIMUM_FLAT = 8
MAXIMUM_UNROLLED = 64
"""Positions that get a rule of their own, so that no item is taken that leaves too little room for what must come."""


def write(writer: GrammarWriter, name: str, node: CanonicalSchema, view: forms.ArrayView) -> None:
    """Define the rule ``name`` as the arrays of a node."""
    body = _body(writer, node, view)
    opening, closing = writer.shared("JSON_ARRAY_OPEN"), writer.shared("JSON_ARRAY_CLOSE")
    writer.define(name, f"{opening} {body} {closing}")


def _body(writer: GrammarWriter, node: CanonicalSchema, view: forms.ArrayView) -> str:
    low, high = view.min_items or 0, view.max_items
    if view.distinctness is forms.Distinctness.ALL_DISTINCT and high != 0 and high != 1:
        values = _finite_values(writer, view)
        if values is not None:
            return _distinct(writer, values, low, high)
        writer.mark(node, "unique")
    elif view.distinctness is forms.Distinctness.SOME_REPEATED:
        writer.mark(node, "value")
    if view.contains:
        found = _at_least(writer, node, view)
        if found is not None:
            return found
        counting = _Counting(writer, node, view)
        if counting.fits():
            return counting.start()
        writer.mark(node, "value")
    return _sequence(writer, view, low, high)


def _sequence(writer: GrammarWriter, view: forms.ArrayView, low: int, high: int | None) -> str:
    heads = []
    for schema in view.prefix_items:
        value = writer.value(schema)
        if value is None:
            break
        heads.append(value)
    cut = len(heads) < len(view.prefix_items)
    rest = None if cut or (high is not None and high <= len(heads)) else writer.value(view.items)
    if rest is None:
        high = len(heads) if high is None else min(high, len(heads))
    if high is not None:
        if low > high:
            return scalar_terminals.NOTHING
        heads = heads[:high]
    return _nested(writer, heads, rest, low, high)


def _nested(writer: GrammarWriter, heads: list[str], rest: str | None, low: int, high: int | None) -> str:
    """The heads in their order, as many as there are but at least ``low``; then the rest, if they all are there."""
    comma = writer.shared("JSON_COMMA")
    count = len(heads)
    if not count:
        if rest is None:
            return ""
        most = None if high is None else high - 1
        inner = f"{rest} {repeated(f'{comma} {rest}', max(low - 1, 0), most)}"
        return inner if low else f"({inner})?"
    tail = ""
    if rest is not None:
        tail = repeated(f"{comma} {rest}", max(low - count, 0), None if high is None else high - count)
    pieces = [head if index == 0 else f"{comma} {head}" for index, head in enumerate(heads)]
    required = " ".join(pieces[:low])
    if low >= count:
        return f"{required} {tail}".strip()
    some, every = _prefixes(writer, pieces[low:])
    return f"{required} ({some} | {every} {tail})".strip()


def _prefixes(writer: GrammarWriter, pieces: list[str]) -> tuple[str, str]:
    """Expressions for the first some of the pieces but not all, and for all of them.

    They halve the pieces, so that expressions are nested to a depth that is logarithmic.
    """
    if len(pieces) > MAXIMUM_FLAT:
        middle = len(pieces) // 2
        first_some, first_every = _prefixes(writer, pieces[:middle])
        second_some, second_every = _prefixes(writer, pieces[middle:])
        first_every = writer.rule(first_every)
        return writer.rule(f"{first_some} | {first_every} {second_some}"), f"{first_every} {second_every}"
    some = '""'
    for piece in reversed(pieces[:-1]):
        some = f"({piece} {some})?" if some != '""' else f"({piece})?"
    return some, " ".join(pieces)


# --- uniqueItems over few values -----------------------------------------------------------------------------------


def _finite_values(writer: GrammarWriter, view: forms.ArrayView) -> list[Any] | None:
    if view.prefix_items or view.contains or view.items is None:
        return None
    values = finite_values(writer, view.items)
    return values if values is not None and len(values) <= MAXIMUM_UNIQUE_VALUES else None


def finite_values(writer: GrammarWriter, node: CanonicalSchema) -> list[Any] | None:
    """All values of a node where they are finitely many and simple to list, else None."""
    resolved, is_exact = writer.canonical.resolve(node)
    if not is_exact:
        return None
    view = resolved.view()
    if isinstance(view, forms.ConstView):
        return [view.value]
    if isinstance(view, forms.EnumView):
        return list(view.values)
    if isinstance(view, forms.MultiTypeView) and set(view.types) <= {"null", "boolean"}:
        return [*([None] if "null" in view.types else []), *([False, True] if "boolean" in view.types else [])]
    if isinstance(view, forms.IntegerView) and not view.multiple_of and not view.not_multiple_of:
        if view.minimum is not None and view.maximum is not None and view.maximum - view.minimum < 64:
            return list(range(view.minimum, view.maximum + 1))
        return None
    if isinstance(view, forms.TypedGroupView):
        return finite_values(writer, view.body)
    if isinstance(view, forms.AnyOfView):
        parts = [finite_values(writer, branch) for branch in view.branches]
        if any(part is None for part in parts):
            return None
        return [value for part in parts if part is not None for value in part]
    return None


def _distinct(writer: GrammarWriter, values: list[Any], low: int, high: int | None) -> str:
    comma = writer.shared("JSON_COMMA")
    name = writer.fresh()
    count = len(values)
    most = count if high is None else min(high, count)
    if low > most:
        return scalar_terminals.NOTHING
    options = ['""' + (f" %if bit_count_ge(_, {low})" if low else "")]
    for index, value in enumerate(values):
        item = writer.literals([value])
        free = f"bit_clear({index})"
        if most < count:
            free = f"and({free}, bit_count_lt(_, {most}))"
        options.append(f"{item} {name}::set_bit({index}) %if and(is_zeros(_), {free})")
        options.append(f"{comma} {item} {name}::set_bit({index}) %if and(not(is_zeros(_)), {free})")
    writer.define_parametric(name, options)
    return f"{name}::0"


# --- contains ------------------------------------------------------------------------------------------------------


def _at_least(writer: GrammarWriter, node: CanonicalSchema, view: forms.ArrayView) -> str | None:
    """Arrays that contain some items of one kind and are bounded in no other way, without counting; None for others."""
    (contains, *more), least = view.contains, view.contains[0].min_contains
    least = 1 if least is None else least
    if more or contains.max_contains is not None or view.prefix_items or view.max_items is not None:
        return None
    if not least or (view.min_items or 0) > least:
        return None
    comma = writer.shared("JSON_COMMA")
    item = writer.value(view.items)
    wanted = writer.value(
        writer.conjunction([n for n in (view.items, contains.schema) if n is not None], node, view.items)
    )
    if wanted is None:
        return scalar_terminals.NOTHING
    between = f"({comma} {item})* {comma} {wanted}"
    return f"({item} {comma})* {wanted} {repeated(between, least - 1, least - 1)} ({comma} {item})*"


class _Counting:
    """Parametric rules that count the items of each ``contains``, position by position where the length is bounded.

    One symbol of a rule can change the parameter once: an item takes one counter, the comma after it another.
    """

    def __init__(self, writer: GrammarWriter, node: CanonicalSchema, view: forms.ArrayView) -> None:
        self.writer = writer
        self.node = node
        self.view = view
        self.low, self.high = view.min_items or 0, view.max_items
        self.needs = [(1 if c.min_contains is None else c.min_contains, c.max_contains) for c in view.contains]
        self.kinds = [c.schema for c in view.contains]
        self.unrolled = max(len(view.prefix_items), min(max(self.low, self.high or 0), MAXIMUM_UNROLLED))
        self.counts_length = max(self.low, self.high or 0) > MAXIMUM_UNROLLED
        if self.counts_length:
            self.needs.append((self.low, self.high))
        self.fields: list[str] = []
        self.bits = 0
        for least, most in self.needs:
            width = max(least, most or 0).bit_length() + 1
            self.fields.append(f"[{self.bits}:{self.bits + width}]")
            self.bits += width
        self.items: dict[int, str] = {}
        self.afters: dict[tuple[int, int | None], str] = {}

    def fits(self) -> bool:
        return self.bits <= 62 and len(self.needs) <= 2 and len(self.view.prefix_items) <= MAXIMUM_UNROLLED

    def start(self) -> str:
        name = self.writer.fresh()
        options = [f'"" {when(self._done(0, None))}', *self._choices(0)]
        self.writer.define_parametric(name, options)
        return f"{name}::0"

    def _choices(self, position: int) -> list[str]:
        """An item at a position and what follows it."""
        options = []
        for item, counted in self._alternatives(position):
            conditions = self._room(position, counted)
            if conditions is None:
                continue
            pending = counted[1] if len(counted) > 1 else None
            change = f"incr({self.fields[counted[0]]})" if counted else "_"
            options.append(f"{item} {self._after(position, pending)}::{change} {when(conditions)}")
        return options

    def _after(self, position: int, pending: int | None) -> str:
        """The rule that comes after the item at a position, with a counter that the comma still has to raise."""
        found = self.afters.get((position, pending))
        if found is None:
            found = self.afters[position, pending] = self.writer.fresh()
            options = [f'"" {when(self._done(position + 1, pending))}']
            if self.high is None or self.counts_length or position + 1 < self.high:
                following = self._expected(min(position + 1, self.unrolled))
                if following is not None:
                    change = "_" if pending is None else f"incr({self.fields[pending]})"
                    options.append(f"{self.writer.shared('JSON_COMMA')} {following}::{change}")
            self.writer.define_parametric(found, options)
        return found

    def _expected(self, position: int) -> str | None:
        """The rule for an item at a position; None where there can be none."""
        found = self.items.get(position)
        if found is None:
            found = self.items[position] = self.writer.fresh()
            choices = self._choices(position)
            self.writer.define_parametric(found, choices)
        return found

    def _done(self, length: int, pending: int | None) -> list[str]:
        if not self.counts_length and length < self.low:
            return ["lt([0:1], 0)"]
        conditions = []
        for number, (least, _) in enumerate(self.needs):
            wanted = least - (number == pending)
            if wanted > 0:
                conditions.append(f"ge({self.fields[number]}, {wanted})")
        return conditions

    def _room(self, position: int, counted: tuple[int, ...]) -> list[str] | None:
        """When an item of these kinds may come at a position; None for never."""
        conditions = []
        for number, (least, most) in enumerate(self.needs):
            if number in counted:
                if most == 0:
                    return None
                if most is not None:
                    conditions.append(f"lt({self.fields[number]}, {most})")
            elif self.high is not None and not self.counts_length:
                missing = least - (self.high - position - 1)
                if missing > 0:
                    conditions.append(f"ge({self.fields[number]}, {missing})")
        return conditions

    def _alternatives(self, position: int) -> list[tuple[str, tuple[int, ...]]]:
        """Items by the kinds they are counted as. One that has no upper bound need not be told apart from the rest."""
        prefix = self.view.prefix_items
        schema = prefix[position] if position < len(prefix) else self.view.items
        found = []
        for choice in itertools.product((True, False), repeat=len(self.kinds)):
            schemas = [] if schema is None else [schema]
            for wanted, kind, (_, most) in zip(choice, self.kinds, self.needs, strict=False):
                if wanted:
                    schemas.append(kind)
                elif most is not None:
                    try:
                        schemas.append(kind.negate())
                    except forms.CanonicalizationError:
                        self.writer.mark(self.node, "value")
            value = self.writer.value(self.writer.conjunction(schemas, self.node, schema))
            if value is not None:
                counted = tuple(i for i, wanted in enumerate(choice) if wanted)
                found.append((value, (*counted, len(self.kinds)) if self.counts_length else counted))
        return found
