"""xgrammar, its cache off, since every schema is new."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
import xgrammar
from vocabulary import END, SIZE, all_tokens
from worker import serve


@cache
def compiler(folder: str) -> xgrammar.GrammarCompiler:
    raw = xgrammar.VocabType.RAW
    info = xgrammar.TokenizerInfo(all_tokens(folder), raw, vocab_size=SIZE, stop_token_ids=[END])
    return xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)


def first_mask(schema: Any, tokens: list[int], vocabulary: str) -> dict[str, Any]:
    made = compiler(vocabulary)
    mask = xgrammar.allocate_token_bitmask(1, SIZE)
    start = process_time()
    try:
        matcher = xgrammar.GrammarMatcher(made.compile_json_schema(json.dumps(schema)))
    except Exception as error:
        return {"refused": str(error)[:200]}
    matcher.fill_next_token_bitmask(mask)
    seconds, masks = process_time() - start, []
    for token in tokens:
        start = process_time()
        matcher.fill_next_token_bitmask(mask)
        masks.append(process_time() - start)
        if not matcher.accept_token(token):
            break
    return {"seconds": seconds, "masks": masks}


serve({"first_mask": first_mask})
