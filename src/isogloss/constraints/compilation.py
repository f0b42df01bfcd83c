"""Grammars compiled by llguidance, kept for the next one who asks.

Compiling takes milliseconds and copying what was compiled microseconds, so every grammar is compiled once a vocabulary
and then copied. What is kept is bounded in bytes; the least recently used goes first.
"""

from __future__ import annotations

import functools
import re
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Any

from isogloss.errors import GrammarError

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLParserLimits

    from isogloss.tokenizers import Tokenizer

LIMITS: dict[str, Any] = {
    "max_lexer_states": 50_000,  # of 1 to 2 KB each
    "verbose_errors": False,  # they would quote the whole grammar
}
"""What a grammar may cost, where llguidance's own limits are not the ones to have. Its bounds on the size of a grammar
and on the work of one step stand: compiling takes a few seconds at most, a mask some ten milliseconds."""

LONGEST_MESSAGE = 500

DEAD_END = "NoExtension"
"""How the engine's message begins where a grammar asks for what no token can write."""

BASE_SIZE = 50_000
SIZE_OF_A_CHARACTER = 100


class CompiledGrammars:
    """Prototypes of matchers by grammar and vocabulary, which callers copy and never advance.

    ``maximum_size`` is in bytes, by the estimate of `estimated_size`.
    """

    def __init__(self, maximum_size: int) -> None:
        self._maximum_size = maximum_size
        self._prototypes: OrderedDict[tuple[str, Any], LLMatcher] = OrderedDict()
        self._size = 0
        self._lock = Lock()
        self.hits = 0
        self.misses = 0

    @property
    def size(self) -> int:
        """The estimated bytes of what is kept."""
        return self._size

    def __len__(self) -> int:
        return len(self._prototypes)

    def get(self, lark: str, tokenizer: Tokenizer) -> LLMatcher:
        """The prototype of a grammar's matcher. Raises `GrammarError` with the engine's words."""
        key = (lark, tokenizer.llguidance())
        with self._lock:
            found = self._prototypes.get(key)
            if found is not None:
                self._prototypes.move_to_end(key)
                self.hits += 1
                return found
            self.misses += 1
        prototype = _compile(*key)
        with self._lock:
            if key not in self._prototypes:
                self._prototypes[key] = prototype
                self._size += estimated_size(lark)
                while self._size > self._maximum_size and len(self._prototypes) > 1:
                    (oldest, _), _ = self._prototypes.popitem(last=False)
                    self._size -= estimated_size(oldest)
        return prototype

    def discard(self, lark: str, tokenizer: Tokenizer) -> None:
        """Forget a grammar. Copies share their lexer's states with the prototype, so that where one of them ran into a
        limit, the others would too."""
        with self._lock:
            if self._prototypes.pop((lark, tokenizer.llguidance()), None) is not None:
                self._size -= estimated_size(lark)


def estimated_size(lark: str) -> int:
    """Bytes that a compiled grammar takes at most, as measured on grammars of all sizes (2 to 90 a character)."""
    return BASE_SIZE + SIZE_OF_A_CHARACTER * len(lark)


def _compile(lark: str, vocabulary: Any) -> LLMatcher:
    from llguidance import LLMatcher

    matcher = LLMatcher(vocabulary, lark, log_level=0, limits=_limits())
    check(matcher)
    return matcher


@functools.cache
def _limits() -> LLParserLimits:
    from llguidance import LLParserLimits

    return LLParserLimits(**LIMITS)


def check(matcher: LLMatcher) -> None:
    """Raise `GrammarError` when the engine gave up: it reports nothing by itself."""
    if matcher.is_error():
        message = re.split(r"<state>|<non-verbose/>|<backtrace>", matcher.get_error(), maxsplit=1)[0].strip()
        if message.startswith(DEAD_END):
            message = "No token can come next, and the text may not end here either"
        raise GrammarError(message[:LONGEST_MESSAGE] or "The grammar engine gave up without a reason")


COMPILED_GRAMMARS = CompiledGrammars(maximum_size=256_000_000)
"""Those of this process."""


def compile_check(lark: str, tokenizer: Tokenizer) -> None:
    """Raise `GrammarError` when a grammar does not compile. To be called before a grammar is sent to any engine: some
    drop one that does not compile without a word, and answer unconstrained."""
    COMPILED_GRAMMARS.get(lark, tokenizer)
