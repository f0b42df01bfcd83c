"""lm-format-enforcer: a character-level parser walked over a tree of the vocabulary."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from lmformatenforcer import JsonSchemaParser
from lmformatenforcer.tokenenforcer import TokenEnforcer, TokenEnforcerTokenizerData
from vocabulary import END, SIZE, ordinary_tokens
from worker import serve


@cache
def data(folder: str) -> TokenEnforcerTokenizerData:
    table = ordinary_tokens(folder)
    texts = [token.decode("utf-8", "replace") for token in table]
    regular = [(number, text, True) for number, text in enumerate(texts)]

    def decode(ids: list[int]) -> str:
        return b"".join(table[token] for token in ids if token < len(table)).decode("utf-8", "replace")

    return TokenEnforcerTokenizerData(regular, decode, END, False, SIZE)


def first_mask(schema: Any, tokens: list[int], vocabulary: str) -> dict[str, Any]:
    made = data(vocabulary)
    start = process_time()
    try:
        enforcer = TokenEnforcer(made, JsonSchemaParser(schema))
        enforcer.get_allowed_tokens([])
    except Exception as error:
        return {"refused": f"{type(error).__name__}: {error}"[:200]}
    seconds, masks, said = process_time() - start, [0.0], []
    for token in tokens:
        said.append(token)
        start = process_time()
        enforcer.get_allowed_tokens(said)
        masks.append(process_time() - start)
    return {"seconds": seconds, "masks": masks[1:]}


serve({"first_mask": first_mask})
