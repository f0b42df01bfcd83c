"""JSON text of the values of a schema, as an llguidance grammar.

`GrammarWriter` turns the canonical form of a schema into rules. Keys come in schema order, extra ones after them;
white space is bounded; numbers are bounded in length. What a grammar cannot say is left out, so that every valid value
is still accepted, and noted in `GrammarWriter.inexact` for the guards.

Names in the text carry a placeholder for the prefix, so that one grammar may stand in another several times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Literal

import msgspec
from jsonschema_rs import CanonicalSchema
from jsonschema_rs import canonical as forms

from isogloss.errors import SchemaTooComplexError
from isogloss.schema import array_rules, object_rules, scalar_terminals
from isogloss.schema.canonical import Canonical
from isogloss.schema.decimals import INTEGER, NUMBER
from isogloss.schema.key_order import KeyOrder

MAXIMUM_RULES = 50_000
MAXIMUM_LITERALS = 20_000
MAXIMUM_TEXT = 8_000_000

RULE_PREFIX = "\x00"
TERMINAL_PREFIX = "\x01"

Inexactness = Literal["value", "unique"]

_SPACE = r"(?:[ \t]{0,2}|\r?\n[ \t]{0,40})"
_PRELUDE = {
    "JSON_OBJECT_OPEN": rf"/\{{{_SPACE}/",
    "JSON_OBJECT_CLOSE": rf"/{_SPACE}\}}/",
    "JSON_ARRAY_OPEN": rf"/\[{_SPACE}/",
    "JSON_ARRAY_CLOSE": rf"/{_SPACE}\]/",
    "JSON_COMMA": rf"/{_SPACE},{_SPACE}/",
    "JSON_COLON": rf"/{_SPACE}:{_SPACE}/",
    "JSON_STRING": f'/"{scalar_terminals.FREE_CHARACTER}*"/',
    "JSON_KEY": scalar_terminals.ANY_KEY,
    "JSON_INTEGER": INTEGER,
    "JSON_NUMBER": NUMBER,
    "JSON_BOOLEAN": "/true|false/",
    "json_any": 'JSON_STRING | JSON_NUMBER | JSON_BOOLEAN | "null" | json_any_object | json_any_array',
    "json_any_object": (
        "JSON_OBJECT_OPEN (JSON_KEY JSON_COLON json_any (JSON_COMMA JSON_KEY JSON_COLON json_any)*)? JSON_OBJECT_CLOSE"
    ),
    "json_any_array": "JSON_ARRAY_OPEN (json_any (JSON_COMMA json_any)*)? JSON_ARRAY_CLOSE",
}
_NEEDS = {
    "json_any": (
        *("JSON_STRING", "JSON_NUMBER", "JSON_BOOLEAN", "JSON_KEY", "JSON_COLON", "JSON_COMMA", "JSON_OBJECT_OPEN"),
        *("JSON_OBJECT_CLOSE", "JSON_ARRAY_OPEN", "JSON_ARRAY_CLOSE", "json_any_object", "json_any_array"),
    ),
    "json_any_object": ("json_any",),
    "json_any_array": ("json_any",),
}
_TYPE_RULES = {
    "string": "JSON_STRING",
    "integer": "JSON_INTEGER",
    "number": "JSON_NUMBER",
    "boolean": "JSON_BOOLEAN",
    "object": "json_any_object",
    "array": "json_any_array",
}


class JsonGrammar(msgspec.Struct, frozen=True):
    """A grammar fragment: the rule to refer to, its rules, and the shared definitions they use, by name.

    Several fragments may stand in one grammar when their prefixes differ; the shared definitions are written once.
    """

    start: str
    rules: str
    shared: dict[str, str]

    def text(self) -> str:
        """The fragment as a whole grammar, with ``start`` as its first rule."""
        shared = "".join(f"{name}: {body}\n" for name, body in self.shared.items())
        return f"start: {self.start}\n{self.rules}{shared}"


class GrammarWriter:
    """Writes the rules of one schema."""

    def __init__(self, canonical: Canonical, order: KeyOrder) -> None:
        self.canonical = canonical
        self.order = order
        self.inexact: dict[CanonicalSchema, set[Inexactness]] = {}
        """Nodes (resolved) of which the rules admit more than the values, and what would tell."""
        self.derived: dict[CanonicalSchema, set[CanonicalSchema]] = {}
        """Nodes made on the way, and the objects and arrays that they were made for."""
        self.open_keys = False
        """Whether some object takes keys that are not listed, which may then come twice."""
        self.open_numbers = False
        """Whether some number may be written with digits for ever."""
        self._lines: list[str] = []
        self._size = 0
        self._shared: dict[str, str] = {}
        self._terminals: dict[str, str] = {}
        self._values: dict[CanonicalSchema, str | None] = {}
        self._pending: deque[Callable[[], None]] = deque()
        self._count = 0
        self._literal_count = 0

    def write(self) -> JsonGrammar | None:
        """The grammar of the document, None when no value is left."""
        start = self.value(self.canonical.root)
        while self._pending:
            self._pending.popleft()()
        return None if start is None else JsonGrammar(start, "".join(self._lines), dict(self._shared))

    # What the modules for each type build on ---------------------------------------------------------------------

    def shared(self, name: str) -> str:
        if name not in self._shared:
            self.open_keys = self.open_keys or name == "json_any_object"
            self._shared[name] = _PRELUDE[name]
            for need in _NEEDS.get(name, ()):
                self.shared(need)
        return name

    def fresh(self) -> str:
        self._count += 1
        if self._count > MAXIMUM_RULES:
            raise SchemaTooComplexError(f"Expected a schema that needs at most {MAXIMUM_RULES} grammar rules, got more")
        return f"{RULE_PREFIX}{self._count}"

    def define(self, name: str, body: str) -> None:
        line = f"{name}: {body}\n"
        self._size += len(line)
        if self._size > MAXIMUM_TEXT:
            raise SchemaTooComplexError("Expected a schema whose grammar has a bounded size, got more")
        self._lines.append(line)

    def define_parametric(self, name: str, options: list[str]) -> None:
        """A rule over a parameter. One with a single alternative would be inlined by the engine, which loses count, and
        one that has no use for the parameter would be refused."""
        if len(options) < 2 or not any("::" in option or "%if" in option for option in options):
            options = [*options, f"{scalar_terminals.NOTHING} %if bit_set(63)"]
        self.define(f"{name}::_", " | ".join(options))

    def rule(self, body: str) -> str:
        name = self.fresh()
        self.define(name, body)
        return name

    def terminal(self, expression: str) -> str:
        """The name of a terminal; the same expression has one name."""
        name = self._terminals.get(expression)
        if name is None:
            name = self.fresh().replace(RULE_PREFIX, TERMINAL_PREFIX)
            self._terminals[expression] = name
            self.define(name, expression)
        return name

    def mark(self, node: CanonicalSchema, kind: Inexactness) -> None:
        self.inexact.setdefault(node, set()).add(kind)

    def conjunction(
        self, nodes: list[CanonicalSchema], owner: CanonicalSchema, followed: CanonicalSchema | None
    ) -> CanonicalSchema | None:
        """The values that all nodes admit; None for all values.

        A guard follows a value to ``followed``. Where something else comes out, ``owner`` is noted as where it comes
        from, and is marked when it is not exact.
        """
        merged: CanonicalSchema | None = None
        for node in nodes:
            if merged is None:
                merged = node
            elif node != merged:
                try:
                    merged = merged.intersect(node)
                except forms.CanonicalizationError:
                    self.mark(owner, "value")
        if merged is not None and merged != followed:
            self.derived.setdefault(merged, set()).add(owner)
        return merged

    # Values ------------------------------------------------------------------------------------------------------

    def value(self, node: CanonicalSchema | None) -> str | None:
        """An expression for the values of a node (None: any value), None when there are none."""
        if node is None:
            return self.shared("json_any")
        if node in self._values:
            return self._values[node]
        resolved, exact = self.canonical.resolve(node)
        if not exact:
            self.mark(node, "value")
        if resolved is not node and resolved in self._values:
            found = self._values[resolved]
        else:
            found = self._expression(resolved)
        self._values[node] = self._values[resolved] = found
        return found

    def _expression(self, node: CanonicalSchema) -> str | None:
        view = node.view()
        if isinstance(view, forms.TrueView):
            return self.shared("json_any")
        if isinstance(view, forms.FalseView):
            return None
        if isinstance(view, forms.MultiTypeView):
            return self._types(view.types)
        if isinstance(view, forms.ConstView):
            return self.literals([view.value])
        if isinstance(view, forms.EnumView):
            return self.literals(view.values)
        if isinstance(view, forms.StringView):
            return scalar_terminals.string(self, node, view)
        if isinstance(view, (forms.IntegerView, forms.NumberView)):
            return scalar_terminals.number(self, node, view)
        if isinstance(view, forms.TypedGroupView):
            return self.value(view.body)
        if isinstance(view, forms.ArrayView):
            return self._deferred(node, lambda name: array_rules.write(self, name, node, view))
        if isinstance(view, forms.ObjectView):
            return self._deferred(node, lambda name: object_rules.write(self, name, node, view))
        if isinstance(view, forms.AnyOfView):
            return self._choice(node, view.branches)
        if isinstance(view, forms.OneOfView):
            branches, exact = self.canonical.exclusive(node)
            if not exact:
                self.mark(node, "value")
            for branch in branches:
                if branch not in view.branches:
                    self.derived.setdefault(branch, set()).add(node)
            return self._choice(node, branches)
        self.mark(node, "value")
        return self.shared("json_any")

    def _deferred(self, node: CanonicalSchema, write: Callable[[str], None]) -> str | None:
        if node.satisfiability() is forms.Satisfiability.NO:
            return None
        name = self.fresh()
        self._pending.append(lambda: write(name))
        return name

    def _choice(self, node: CanonicalSchema, branches: list[CanonicalSchema]) -> str | None:
        name = self.fresh()
        self._values[node] = name  # a branch may lead back here
        options = list(dict.fromkeys(filter(None, map(self.value, branches))))
        if not options:
            return None
        if len(options) == 1 and options[0] != name:
            self.define(name, options[0])
            return options[0]
        self.define(name, " | ".join(option for option in options if option != name))
        return name

    def _types(self, types: list[str]) -> str:
        if set(types) >= {"null", "boolean", "number", "string", "array", "object"}:
            return self.shared("json_any")
        options = ['"null"' if name == "null" else self.shared(_TYPE_RULES[name]) for name in types]
        return options[0] if len(options) == 1 else f"({' | '.join(options)})"

    def literals(self, values: list[Any]) -> str | None:
        """An expression for a finite set of values."""
        self._literal_count += len(values)
        if self._literal_count > MAXIMUM_LITERALS:
            raise SchemaTooComplexError(f"Expected a schema of at most {MAXIMUM_LITERALS} enumerated values, got more")
        scalars = [value for value in values if not isinstance(value, (list, dict))]
        options = []
        if scalars:
            texts = [text for value in scalars for text in scalar_terminals.literal(value)]
            options.append(texts[0] if len(texts) == 1 else self.terminal(" | ".join(texts)))
        for value in values:
            if isinstance(value, list):
                options.append(self._literal_array(value))
            elif isinstance(value, dict):
                options.append(self._literal_object(value))
        if not options:
            return None
        return options[0] if len(options) == 1 else self.rule(" | ".join(options))

    def _literal_array(self, items: list[Any]) -> str:
        comma = f" {self.shared('JSON_COMMA')} "
        body = comma.join(filter(None, (self.literals([item]) for item in items)))
        return self.rule(f"{self.shared('JSON_ARRAY_OPEN')} {body} {self.shared('JSON_ARRAY_CLOSE')}")

    def _literal_object(self, members: dict[str, Any]) -> str:
        comma = f" {self.shared('JSON_COMMA')} "
        body = comma.join(
            f"{scalar_terminals.key(self, name)} {self.shared('JSON_COLON')} {self.literals([members[name]])}"
            for name in self.order.of_literal(members)
        )
        return self.rule(f"{self.shared('JSON_OBJECT_OPEN')} {body} {self.shared('JSON_OBJECT_CLOSE')}")
