"""The vocabulary of gpt-oss: o200k with the control tokens of harmony.

The ordinary tokens are those of ``o200k_base.tiktoken`` (SHA-256 446a9538...), which lists them in the order of their
ids. They are stored as ``data/o200k_base.xz``: the length of each token as one byte, then the tokens themselves,
compressed; this is a quarter of the size of the list and loads in a fraction of its time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from itertools import accumulate, pairwise
from threading import Lock

from isogloss.tokenizers._vocabulary import Vocabulary

ORDINARY_TOKENS = 199_998
VOCABULARY_SIZE = 201_088

NAMED_SPECIAL_TOKENS = {
    "<|startoftext|>": 199_998,
    "<|endoftext|>": 199_999,
    "<|return|>": 200_002,
    "<|constrain|>": 200_003,
    "<|channel|>": 200_005,
    "<|start|>": 200_006,
    "<|end|>": 200_007,
    "<|message|>": 200_008,
    "<|call|>": 200_012,
}

SPLIT_PATTERN = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)

# The look-ahead in the pattern above keeps one entry of a stack for every blank of a run, and the stack is bounded:
# some 300,000 blanks in a row would be an error. Runs of this length and above are encoded in slices of it, which
# changes which tokens stand at the slices' ends and nothing else.
LONG_RUN_OF_BLANKS = 131_072
_BLANK = "[\t\v\f \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
_LONG_RUN_OF_BLANKS = re.compile(f"(?<!{_BLANK}){_BLANK}{{{LONG_RUN_OF_BLANKS},}}")

_lock = Lock()


def o200k_harmony() -> Vocabulary:
    """The vocabulary of gpt-oss, loaded from the package at the first call (no network), the same object ever after.

    Its 1,091 control tokens have the names that harmony gives them. The last of them, 201088, lies just outside the
    model's logits, which are 201,088 wide.
    """
    with _lock:
        return _load()


@cache
def _load() -> Vocabulary:
    tokens = ordinary_tokens()
    special_tokens = harmony_special_tokens()
    return Vocabulary(
        "o200k_harmony",
        tokens + [text.encode() for text in special_tokens],
        special_tokens,
        _Encoder(tokens),
        vocabulary_size=VOCABULARY_SIZE,
    )


class _Encoder:
    """Text to ids. Its tables take twice the time that the vocabulary takes to load, so they are built when the first
    text comes: who only reads ids needs none."""

    def __init__(self, tokens: list[bytes]) -> None:
        self._tokens = tokens
        self._encode: Callable[[str], list[int]] | None = None

    def __call__(self, text: str) -> list[int]:
        encode = self._encode or self._built()
        if len(text) < LONG_RUN_OF_BLANKS or not _may_have_long_run_of_blanks(text):
            return encode(text)
        return [token for piece in _cut_long_runs_of_blanks(text) for token in encode(piece)]

    def _built(self) -> Callable[[str], list[int]]:
        from tiktoken import Encoding

        with _lock:
            if self._encode is None:
                self._encode = Encoding(
                    "o200k_harmony",
                    pat_str=SPLIT_PATTERN,
                    mergeable_ranks={token: rank for rank, token in enumerate(self._tokens)},
                    special_tokens={},
                ).encode_ordinary
            return self._encode


def ordinary_tokens() -> list[bytes]:
    """The bytes of the ordinary tokens, in the order of their ids."""
    import lzma
    from importlib.resources import files

    packed = lzma.decompress((files("isogloss") / "data" / "o200k_base.xz").read_bytes())
    bounds = accumulate(packed[:ORDINARY_TOKENS], initial=ORDINARY_TOKENS)
    return [packed[start:end] for start, end in pairwise(bounds)]


def harmony_special_tokens() -> dict[str, int]:
    """Every control token, in the order of their ids: those that have a purpose, and the reserved ones between."""
    names = {token: text for text, token in NAMED_SPECIAL_TOKENS.items()}
    return {names.get(token, f"<|reserved_{token}|>"): token for token in range(ORDINARY_TOKENS, VOCABULARY_SIZE + 1)}


def _may_have_long_run_of_blanks(text: str) -> bool:
    """Whether a search is worth its time: a run twice as long as a stride covers a whole one."""
    stride = LONG_RUN_OF_BLANKS // 2
    return any(text[start : start + stride].isspace() for start in range(0, len(text), stride))


def _cut_long_runs_of_blanks(text: str) -> list[str]:
    pieces = []
    start = 0
    for match in _LONG_RUN_OF_BLANKS.finditer(text):
        pieces.append(text[start : match.start()])
        start = match.end()
        run = match.group()
        pieces += [run[at : at + LONG_RUN_OF_BLANKS] for at in range(0, len(run), LONG_RUN_OF_BLANKS)]
    pieces.append(text[start:])
    return pieces
