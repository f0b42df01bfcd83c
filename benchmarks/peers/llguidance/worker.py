"""llguidance by itself, with its own reading of JSON Schema."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper
from vocabulary import END, all_tokens, ordinary_tokens
from worker import serve


class Table:
    """What `TokenizerWrapper` reads."""

    def __init__(self, folder: str) -> None:
        self.tokens = all_tokens(folder)
        self.special_token_ids = list(range(len(ordinary_tokens(folder)), len(self.tokens)))
        self.eos_token_id = END
        self.bos_token_id = None
        self._ids = {token: number for number, token in enumerate(self.tokens)}

    def __call__(self, text: str | bytes) -> list[int]:
        data = text.encode() if isinstance(text, str) else text
        return [self._ids[bytes([byte])] for byte in data]


@cache
def tokenizer(folder: str) -> LLTokenizer:
    table = Table(folder)
    return LLTokenizer(TokenizerWrapper(table), n_vocab=len(table.tokens), eos_token=[END])


def first_mask(schema: Any, tokens: list[int], vocabulary: str) -> dict[str, Any]:
    made = tokenizer(vocabulary)
    start = process_time()
    matcher = LLMatcher(made, LLMatcher.grammar_from_json_schema(json.dumps(schema)), log_level=0)
    if matcher.is_error():
        return {"refused": matcher.get_error()[:200]}
    matcher.compute_bitmask()
    seconds, masks = process_time() - start, []
    for token in tokens:
        start = process_time()
        matcher.compute_bitmask()
        masks.append(process_time() - start)
        if not matcher.consume_token(token):
            break
    return {"seconds": seconds, "masks": masks}


serve({"first_mask": first_mask})
