"""Any JSON Schema as what the grammar engine takes, plus guards for the rest.

`lower` reads a schema of draft 4, 6, 7, 2019-09 or 2020-12 and says by a grammar which JSON texts are its values:
exactly where a grammar can, and with a guard (`isogloss.schema.guards`) where it cannot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isogloss.errors import UnsatisfiableSchemaError
from isogloss.schema.canonical import Canonical, Schema
from isogloss.schema.guards import GuardPlan, Guards
from isogloss.schema.instance_order import ordered
from isogloss.schema.json_grammar import RULE_PREFIX, TERMINAL_PREFIX, GrammarWriter, JsonGrammar
from isogloss.schema.key_order import KeyOrder


class Lowered:
    """A schema, ready for the engine."""

    def __init__(self, schema: Schema, *, registry: Mapping[str, Any] | None = None, formats: bool = True) -> None:
        self.canonical = Canonical(schema, registry=registry, formats=formats)
        self.order = KeyOrder([schema, *(registry or {}).values()])
        self._writer = GrammarWriter(self.canonical, self.order)
        grammar = self._writer.write()
        if grammar is None:
            raise UnsatisfiableSchemaError("No value satisfies the schema", pointer="")
        self._grammar = grammar
        plan = GuardPlan(self.canonical, self._writer.inexact)
        self.guards = Guards(
            plan=plan if plan else None, open_keys=self._writer.open_keys, open_numbers=self._writer.open_numbers
        )
        """What the grammar leaves to a matcher."""

    def grammar(self, prefix: str = "json_") -> JsonGrammar:
        """The values as rules whose names start with ``prefix`` (lower-case letters, digits and ``_``)."""

        def named(text: str) -> str:
            return text.replace(RULE_PREFIX, prefix).replace(TERMINAL_PREFIX, prefix.upper())

        grammar = self._grammar
        return JsonGrammar(named(grammar.start), named(grammar.rules), grammar.shared)

    def in_schema_order(self, instance: Any) -> Any:
        """The instance with its keys in the order of the grammar."""
        return ordered(self.canonical, self.order, instance)


def lower(schema: Schema, *, registry: Mapping[str, Any] | None = None, formats: bool = True) -> Lowered:
    """What a schema stands for, as a grammar and guards.

    Args:
        schema: a JSON Schema; its draft is told by ``$schema``, 2020-12 by default.
        registry: schemas by URI, for references that leave the document; nothing is ever fetched.
        formats: whether ``format`` asserts; otherwise it is an annotation.

    Raises:
        SchemaError: it is no JSON Schema, or a reference leads nowhere.
        SchemaTooComplexError: it is over the bounds of time or memory.
        UnsatisfiableSchemaError: no value satisfies it.
    """
    return Lowered(schema, registry=registry, formats=formats)


def in_schema_order(schema: Schema, instance: Any, *, registry: Mapping[str, Any] | None = None) -> Any:
    """The instance with the keys of its objects in the order in which a grammar of the schema takes them."""
    return Lowered(schema, registry=registry).in_schema_order(instance)
