"""A grammar over an answer or a whole turn, independent of any vocabulary."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from isogloss.checks import expect_tokenizer
from isogloss.constraints.json_value import lowered
from isogloss.constraints.lark import write_announced
from isogloss.constraints.matcher import Matcher
from isogloss.errors import SchemaError
from isogloss.grammar import Grammar, JsonValue, Regex, Term, markers_of

if TYPE_CHECKING:
    from isogloss.constraints.call_watch import CallWatchMaker
    from isogloss.schema.guards import Guards
    from isogloss.schema.lowering import Lowered
    from isogloss.tokenizers import Tokenizer


class Constraint:
    """What may be written, as a term. The grammar of each vocabulary is written once.

    ``calls`` makes a watch over the calls in it, where the term does not say all of what their arguments must be.
    """

    def __init__(self, term: Term, calls: CallWatchMaker | None = None) -> None:
        self.term = term
        self.calls = calls
        self._lowered: Lowered | None = None
        self._larks: dict[frozenset[tuple[str, int]], tuple[str, list[Guards]]] = {}

    def __repr__(self) -> str:
        return f"Constraint({self.term!r})"

    @classmethod
    def from_json_schema(
        cls,
        schema: Mapping[str, Any] | bool,
        *,
        strict: bool = False,
        registry: Mapping[str, Any] | None = None,
    ) -> Constraint:
        """The JSON values that satisfy a schema, keys in the schema's order.

        Compact JSON is always accepted, more white space only within a bound. ``strict`` asks that the schema be in
        the strict subset of Structured Outputs; ``registry`` holds schemas by URI for references that leave this one
        (nothing is ever fetched). Raises `SchemaError` (`UnsatisfiableSchemaError` where no value
        satisfies it, `SchemaTooComplexError` over the bounds), `StrictSchemaError` with every violation.
        """
        if not isinstance(schema, Mapping | bool):
            raise SchemaError(f"Expected `object` or `bool`, got `{type(schema).__name__}`", pointer="")
        if strict:
            from isogloss.schema import ensure_strict

            ensure_strict(schema)
        if registry:
            from isogloss.schema.lowering import bundled

            schema = bundled(schema, registry)
        constraint = cls(JsonValue(schema))
        constraint._lowered = lowered(schema)  # whatever is wrong with it is raised at once
        return constraint

    @classmethod
    def json_object(cls) -> Constraint:
        """Any JSON object."""
        return cls(JsonValue({"type": "object"}))

    @classmethod
    def from_regex(cls, pattern: str) -> Constraint:
        """Text that a regular expression (Rust's syntax) matches as a whole."""
        return cls(Regex(pattern))

    @classmethod
    def from_lark(cls, lark: str) -> Constraint:
        """A grammar in llguidance's Lark, as it is."""
        return cls(Grammar(lark))

    @functools.cached_property
    def markers(self) -> frozenset[str]:
        """The texts of its markers."""
        return frozenset(markers_of(self.term))

    @property
    def lark(self) -> str:
        """The grammar in llguidance's Lark where every marker is text."""
        return self._lark({})

    def lark_for(self, tokenizer: Tokenizer) -> str:
        """The grammar in llguidance's Lark for a vocabulary that has some of the markers as control tokens."""
        return self._lark(self._special_of(tokenizer))

    def matcher(self, tokenizer: Tokenizer) -> Matcher:
        """A matcher at the start of the grammar. Raises `GrammarError` when it does not compile; where the whole is one
        JSON value whose schema is over the engine's means, `SchemaTooComplexError`.

        It also holds what a grammar cannot say of the JSON values in it. Where the whole is one such value and the
        engine's own compiler takes its schema exactly, it is compiled by that one, which is faster. Raises `TypeError`
        for what is no tokenizer of `isogloss.tokenizers`.
        """
        expect_tokenizer(tokenizer)
        if not isinstance(self.term, JsonValue):
            from isogloss.constraints.guarded_turn_matcher import GuardedTurnMatcher

            lark, guards = self._written(self._special_of(tokenizer))
            if self.calls is not None:
                from isogloss.constraints.watched_turn_matcher import WatchedTurnMatcher

                return WatchedTurnMatcher(lark, tokenizer, self.term, self.calls(tokenizer))
            return GuardedTurnMatcher(lark, tokenizer, self.term) if guards else Matcher(lark, tokenizer)
        from isogloss.constraints.guarded_matcher import json_matcher

        if self._lowered is None:
            self._lowered = lowered(self.term.schema)
        return json_matcher(self._lowered, tokenizer)

    def _special_of(self, tokenizer: Tokenizer) -> dict[str, int]:
        special = tokenizer.special_tokens
        return {marker: special[marker] for marker in self.markers if marker in special}

    def _lark(self, special_tokens: Mapping[str, int]) -> str:
        return self._written(special_tokens)[0]

    def _written(self, special_tokens: Mapping[str, int]) -> tuple[str, list[Guards]]:
        key = frozenset(special_tokens.items())
        if key not in self._larks:
            self._larks[key] = write_announced(self.term, special_tokens, None)
        return self._larks[key]
