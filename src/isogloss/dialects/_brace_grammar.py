"""The grammar of ``call:NAME{...}``."""

from __future__ import annotations

from collections.abc import Sequence

from isogloss.dialects._brace_calls import spelled, write_opening
from isogloss.dialects._markers import Markers
from isogloss.grammar import Literal, Marker, Term, choice, sequence
from isogloss.messages import Tool
from isogloss.notations.gemma_grammar import GemmaGrammar


def call_grammar(tools: Sequence[Tool], markers: Markers) -> Term:
    """The rest of a call to one of the tools, behind its opening token. Raises as `write_opening` does."""
    grammar = GemmaGrammar(spelled(markers), markers["call"])
    close = Marker(markers["call_close"])
    return choice(
        *[sequence(Literal(write_opening(tool.name)), grammar.arguments(tool.parameters), close) for tool in tools]
    )
