"""Any JSON Schema as what the grammar engine takes, plus guards for the rest.

`lower` reads a schema of draft 4, 6, 7, 2019-09 or 2020-12 and says by a grammar which JSON texts are its values:
exactly where a grammar can, and with a guard (`isogloss.schema.guards`) where it cannot.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import msgspec

from isogloss.errors import UnsatisfiableSchemaError
from isogloss.schema.canonical import Canonical, Schema
from isogloss.schema.guards import GuardPlan, Guards
from isogloss.schema.instance_order import ordered, ordered_plainly
from isogloss.schema.json_grammar import RULE_PREFIX, TERMINAL_PREFIX, GrammarWriter, JsonGrammar
from isogloss.schema.key_order import KeyOrder
from isogloss.schema.plain import plain_schema


class Lowered:
    """A schema, ready for the engine: always as a grammar with `guards`, and as it is where that is exact too."""

    def __init__(self, schema: Schema, *, registry: Mapping[str, Any] | None = None, formats: bool = True) -> None:
        self._document = schema
        self._registry = registry
        self._formats = formats
        self.plain = plain_schema(schema, formats=formats)
        """The schema as the engine's own compiler takes it, None where a grammar has to be written."""
        if self.plain is None:
            _ = self.guards  # whatever is wrong with the schema is raised at once

    def compilable(self) -> tuple[str, Guards]:
        """A whole grammar in the form that the engine compiles soonest, and what it leaves to a matcher."""
        if self.plain is None:
            return self.grammar().text(), self.guards
        return msgspec.json.encode({"grammars": [{"json_schema": self.plain.form}]}).decode(), self.plain.guards

    @property
    def guards(self) -> Guards:
        """What the grammar leaves to a matcher."""
        return self._written[1]

    def grammar(self, prefix: str = "json_") -> JsonGrammar:
        """The values as rules whose names start with ``prefix`` (lower-case letters, digits and ``_``)."""

        def named(text: str) -> str:
            return text.replace(RULE_PREFIX, prefix).replace(TERMINAL_PREFIX, prefix.upper())

        grammar = self._written[0]
        return JsonGrammar(named(grammar.start), named(grammar.rules), grammar.shared)

    def in_schema_order(self, instance: Any) -> Any:
        """The instance with its keys in the order of the grammar."""
        if self.plain is not None and not isinstance(self._document, bool):
            return ordered_plainly(self._document, self._document, instance)
        return ordered(self._canonical, self._order, instance)

    @functools.cached_property
    def _canonical(self) -> Canonical:
        return Canonical(self._document, registry=self._registry, formats=self._formats)

    @functools.cached_property
    def _order(self) -> KeyOrder:
        return KeyOrder([self._document, *(self._registry or {}).values()])

    @functools.cached_property
    def _written(self) -> tuple[JsonGrammar, Guards]:
        writer = GrammarWriter(self._canonical, self._order)
        grammar = writer.write()
        if grammar is None:
            raise UnsatisfiableSchemaError("No value satisfies the schema", pointer="")
        plan = GuardPlan(self._canonical, writer.inexact, writer.derived)
        guards = Guards(plan if plan else None, open_keys=writer.open_keys, open_numbers=writer.open_numbers)
        return grammar, guards


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


def bundled(schema: Schema, registry: Mapping[str, Any]) -> Schema:
    """The schema with the documents of a registry inside, so that it needs none. Their order of keys is kept."""
    if isinstance(schema, bool):
        return schema
    documents = {
        uri: {**document, "$id": uri} if isinstance(document, Mapping) else {"$id": uri, **({} if document else _NEVER)}
        for uri, document in registry.items()
    }
    return {**schema, "$defs": {**documents, **schema.get("$defs", {})}}


_NEVER: dict[str, Any] = {"not": {}}


def in_schema_order(schema: Schema, instance: Any, *, registry: Mapping[str, Any] | None = None) -> Any:
    """The instance with the keys of its objects in the order in which a grammar of the schema takes them."""
    return Lowered(schema, registry=registry).in_schema_order(instance)
