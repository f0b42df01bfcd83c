"""outlines-core: a schema as a regular expression, indexed over the whole vocabulary before the first mask."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from outlines_core import Guide, Index, Vocabulary
from outlines_core.json_schema import build_regex_from_schema
from vocabulary import END, ordinary_tokens
from worker import serve


@cache
def words(folder: str) -> Vocabulary:
    return Vocabulary(END, {token: [number] for number, token in enumerate(ordinary_tokens(folder))})


def first_mask(schema: Any, tokens: list[int], vocabulary: str) -> dict[str, Any]:
    made = words(vocabulary)
    start = process_time()
    try:
        guide = Guide(Index(build_regex_from_schema(json.dumps(schema)), made))
    except Exception as error:
        return {"refused": str(error)[:200]}
    guide.get_tokens()
    seconds, masks = process_time() - start, []
    for token in tokens:
        start = process_time()
        guide.get_tokens()
        masks.append(process_time() - start)
        try:
            guide.advance(token, return_tokens=False)
        except ValueError:
            break
    return {"seconds": seconds, "masks": masks}


serve({"first_mask": first_mask})
