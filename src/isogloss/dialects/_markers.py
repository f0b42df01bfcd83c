"""Every delimiter of a dialect, declared once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from isogloss.dialects._lexicon import Lexicon, arrives_as_control
from isogloss.dialects._scanner import Prose
from isogloss.events import ReasoningDelta, RefusalDelta, TextDelta
from isogloss.grammar import Marker

REFUSAL = "<refusal>"
REFUSAL_CLOSE = "</refusal>"


class ProseStates(NamedTuple):
    """The states of running text that most dialects have."""

    text: Prose
    reasoning: Prose
    refusal: Prose
    results: Lexicon


class Markers:
    """Delimiters by kind, each with its spellings, the one that is rendered first.

    The kinds that the shared machinery knows: ``call``, ``call_close``, ``think``, ``think_close``, ``result``,
    ``result_close``, ``turn_end``, ``refusal``, ``refusal_close``, and ``bare_call``, of calls outside their block,
    which a grammar keeps out of text. A dialect adds its own.

    ``patterns`` are kinds that are regular expressions, which begin as `Lexicon` says; those of a kind that has
    spellings too are further ones, not looked for where the engine delivers that kind as a control token. ``special``
    are the spellings that vocabularies of models trained on the dialect have as control tokens; ``stop`` the strings at
    which an engine should stop.
    """

    def __init__(
        self,
        kinds: Mapping[str, str | tuple[str, ...]],
        *,
        special: Iterable[str] = (),
        stop: Iterable[str] | None = None,
        patterns: Mapping[str, str] | None = None,
        first: Iterable[str] = ("<",),
        beginning: str = "",
    ) -> None:
        spellings = {kind: (spelled,) if isinstance(spelled, str) else spelled for kind, spelled in kinds.items()}
        self.kinds: Mapping[str, tuple[str, ...]] = MappingProxyType(spellings)
        self.patterns = MappingProxyType(dict(patterns or {}))
        self.first = tuple(first)
        self.beginning = beginning
        self.special = frozenset(special)
        self.stop = tuple(stop) if stop is not None else spellings.get("turn_end", ()) + spellings.get("result", ())
        self.lexicon = lru_cache(maxsize=64)(self._lexicon)
        self.prose = lru_cache(maxsize=16)(self._prose)

    def __getitem__(self, kind: str) -> str:
        """The spelling of a kind that is rendered."""
        return self.kinds[kind][0]

    def term(self, spelled: str) -> Marker:
        """A spelling as a part of a grammar, with the control token that it holds in vocabularies of the family."""
        token = next((token for token in self.special if token in spelled and token != spelled), "")
        return Marker(spelled, "" if spelled in self.special else token)

    @property
    def all(self) -> tuple[str, ...]:
        """Every spelling of every kind."""
        return tuple(marker for spelled in self.kinds.values() for marker in spelled)

    def _lexicon(self, kinds: tuple[str, ...], control: frozenset[str] = frozenset()) -> Lexicon:
        literals = {kind: self.kinds[kind] for kind in kinds if kind in self.kinds}
        patterns = {
            kind: self.patterns[kind]
            for kind in kinds
            if kind in self.patterns
            and not any(arrives_as_control(marker, control) for marker in self.kinds.get(kind, ()))
        }
        return Lexicon(literals, control, patterns=patterns, first=self.first, beginning=self.beginning)

    def _prose(
        self,
        control: frozenset[str] = frozenset(),
        extra: tuple[str, ...] = (),
        trims: tuple[str, ...] = ("call", "call_close", "think", "result", "refusal"),
    ) -> ProseStates:
        """The states of running text. ``extra`` are further kinds that interrupt text; ``trims`` own the white space in
        front of them, and none does where all are control tokens."""
        text = ("call", "call_close", "think", "think_close", "result", "refusal", "turn_end", *extra)
        return ProseStates(
            Prose(TextDelta, self.lexicon(text, control), trims),
            Prose(ReasoningDelta, self.lexicon(("think_close", "turn_end"), control), trims and ("think_close",)),
            Prose(RefusalDelta, self.lexicon(("refusal_close", "turn_end"), control), trims and ("refusal_close",)),
            self.lexicon(("result_close", "turn_end", "call"), control),
        )


THINK: Mapping[str, str] = MappingProxyType({"think": "<think>", "think_close": "</think>"})
"""How most families mark reasoning."""

REFUSALS: Mapping[str, str] = MappingProxyType({"refusal": REFUSAL, "refusal_close": REFUSAL_CLOSE})
"""How a refusal is marked where the family has no way of its own."""
