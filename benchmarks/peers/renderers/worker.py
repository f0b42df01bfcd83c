"""PrimeIntellect's renderers, over the vocabulary that every side has, with each family's control tokens added."""

from __future__ import annotations

import base64
import os
import re
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from tiktoken import Encoding
from worker import serve, timed

RENDERERS = {
    "deepseek": "deepseek_v3.DeepSeekV3Renderer",
    "dsml": "deepseek_v4.DeepSeekV4Renderer",
    "gemma": "gemma4.Gemma4Renderer",
    "glm": "glm5.GLM5Renderer",
    "harmony": "gpt_oss.GptOssRenderer",
    "kimi": "kimi_k2.KimiK2Renderer",
    "llama3": "llama_3.Llama3Renderer",
    "minimax": "minimax_m2.MiniMaxM2Renderer",
    "qwen3": "qwen3.Qwen3Renderer",
    "qwen3_coder": "qwen35.Qwen35Renderer",
}
PATTERN = "|".join(
    [
        r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
        r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
        r"""\p{N}{1,3}""",
        r""" ?[^\s\p{L}\p{N}]+[\r\n/]*""",
        r"""\s*[\r\n]+""",
        r"""\s+(?!\S)""",
        r"""\s+""",
    ]
)
"""Where o200k may not join."""
CONTROL = re.compile(r"<[|｜][^<>|｜]+[|｜]>")
"""A text that is one control token: some renderers ask for its id by encoding it."""


class Tokenizer:
    """What a renderer asks for. Control tokens get their ids as they are asked for, before anything is encoded."""

    name_or_path = "o200k"
    unk_token_id = None

    def __init__(self, vocabulary: str) -> None:
        lines = (Path(vocabulary) / "o200k_base.tiktoken").read_bytes().splitlines()
        pairs = (line.split() for line in lines)
        self._ranks = {base64.b64decode(token): int(number) for token, number in pairs}
        self.special: dict[str, int] = {}
        self._encoding: Encoding | None = None
        self.eos_token_id = self.convert_tokens_to_ids("<|endoftext|>")

    def convert_tokens_to_ids(self, token: str) -> int:
        if token not in self.special:
            self.special[token] = len(self._ranks) + len(self.special)
            self._encoding = None
        return self.special[token]

    @property
    def encoding(self) -> Encoding:
        if self._encoding is None:
            self._encoding = Encoding(
                "o200k", pat_str=PATTERN, mergeable_ranks=self._ranks, special_tokens=self.special
            )
        return self._encoding

    def encode(self, text: str, add_special_tokens: bool = False, **_: Any) -> list[int]:
        if CONTROL.fullmatch(text):
            self.convert_tokens_to_ids(text)
        return self.encoding.encode(text, allowed_special="all")

    def decode(self, ids: Any, skip_special_tokens: bool = False, **_: Any) -> str:
        if skip_special_tokens:
            ids = [token for token in ids if token < len(self._ranks)]
        return self.encoding.decode(ids)


@cache
def made(dialect: str, vocabulary: str) -> tuple[Any, Tokenizer]:
    module, name = RENDERERS[dialect].split(".")
    tokenizer = Tokenizer(vocabulary)
    os.environ["TIKTOKEN_ENCODINGS_BASE"] = vocabulary
    renderer = getattr(import_module(f"renderers.{module}"), name)(tokenizer)
    return renderer, tokenizer


def special_tokens(dialect: str, vocabulary: str, markers: list[str]) -> dict[str, Any]:
    """The control tokens, the dialect's ``markers`` among them, in the order of their ids."""
    _, tokenizer = made(dialect, vocabulary)
    for marker in markers:
        tokenizer.convert_tokens_to_ids(marker)
    return {"special_tokens": list(tokenizer.special)}


def render_tokens(dialect: str, vocabulary: str, request: dict[str, Any], times: int, **_: Any) -> dict[str, Any]:
    renderer, _tokenizer = made(dialect, vocabulary)
    tools = request["tools"]

    def run() -> list[int]:
        ids: list[int] = renderer.render_ids(request["messages"], tools=tools, add_generation_prompt=True)
        return ids

    length = len(run())
    return {**timed(run, times), "length": length}


def parse_tokens(dialect: str, vocabulary: str, tools: list[Any], text: str, times: int, **_: Any) -> dict[str, Any]:
    """A whole output, from token ids."""
    renderer, tokenizer = made(dialect, vocabulary)
    ids = tokenizer.encode(text)
    calls = renderer.parse_response(ids, tools=tools).tool_calls
    answer = timed(lambda: renderer.parse_response(ids, tools=tools), times)
    return {**answer, "ids": ids, "arguments": calls[0].arguments if calls else None}


def dialects() -> dict[str, Any]:
    return {"dialects": list(RENDERERS)}


works = {"dialects": dialects, "parse_tokens": parse_tokens, "render_tokens": render_tokens}
serve({**works, "special_tokens": special_tokens})
