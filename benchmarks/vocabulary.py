"""The vocabulary that every side has: the ordinary tokens of o200k as a file, which peers read."""

from __future__ import annotations

import base64

from benchmarks.environments import FOLDER
from isogloss.tokenizers import o200k_harmony

FILE = FOLDER / "o200k_base.tiktoken"


def vocabulary_folder() -> str:
    """The folder of the file, written the first time: a line a token, base64 and id, as tiktoken has them."""
    if not FILE.is_file():
        FOLDER.mkdir(exist_ok=True)
        tokenizer = o200k_harmony()
        ordinary = range(min(tokenizer.special_tokens.values()))
        lines = [base64.b64encode(tokenizer.token_bytes(token)) + b" %d\n" % token for token in ordinary]
        temporary = FILE.with_suffix(".part")
        temporary.write_bytes(b"".join(lines))
        temporary.replace(FILE)
    return str(FOLDER)
