"""vLLM's tool parsers, as its server calls them: all text so far, the delta, and the ids of both."""

from __future__ import annotations

import gc
import re
import sys
from pathlib import Path
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest, ChatCompletionToolsParam
from vllm.tool_parsers import ToolParserManager
from worker import BATCH, as_json, serve, summed

PARSERS = {
    "deepseek": "deepseek_v31",
    "dsml": "deepseek_v4",
    "functiongemma": "functiongemma",
    "gemma": "gemma4",
    "glm": "glm47",
    "granite": "granite",
    "hermes": "hermes",
    "kimi": "kimi_k2",
    "kimi_k3": "kimi_k3",
    "lfm": "lfm2",
    "llama3": "llama3_json",
    "minicpm5": "minicpm5",
    "minimax": "minimax_m2",
    "minimax_m3": "minimax_m3",
    "mistral": "mistral",
    "olmo3": "olmo3",
    "phi4": "phi4_mini_json",
    "pythonic": "pythonic",
    "qwen3": "hermes",
    "qwen3_coder": "qwen3_coder",
    "seed_oss": "seed_oss",
}
ORDINARY = 1
"""The id of whatever is not a control token: no parser looks at those."""


class Tokenizer:
    """As much of a tokenizer as the parsers ask for: the control tokens, and every marker as one token."""

    def __init__(self, markers: list[str]) -> None:
        self._ids = {marker: number for number, marker in enumerate(markers, 2)}
        self.all_special_tokens = markers
        self.vocab = self._ids
        self.eos_token_id = 0
        self.bos_token_id = 0

    def get_vocab(self) -> dict[str, int]:
        return self._ids

    def convert_tokens_to_ids(self, token: str) -> int | None:
        return self._ids.get(token)

    def encode(self, text: str, *_: Any, **__: Any) -> list[int]:
        if not self._ids:
            return [ORDINARY]
        found = re.split("(" + "|".join(map(re.escape, self._ids)) + ")", text)
        return [self._ids.get(part, ORDINARY) for part in found if part]

    def decode(self, ids: Any, *_: Any, **__: Any) -> str:
        names = {number: marker for marker, number in self._ids.items()}
        return "".join(names.get(number, "") for number in ([ids] if isinstance(ids, int) else ids))


class Stream:
    """One run of a parser over pieces, with the time spent inside it."""

    def __init__(self, dialect: str, tools: list[Any], markers: list[str]) -> None:
        offered = [ChatCompletionToolsParam.model_validate(tool) for tool in tools]
        tokenizer: Any = Tokenizer(markers)
        self._parser = ToolParserManager.get_tool_parser(PARSERS[dialect])(tokenizer, offered)
        message = {"role": "user", "content": ""}
        request = ChatCompletionRequest(model="m", messages=[message], tools=tools, tool_choice="auto")
        self._request = self._parser.adjust_request(request)
        self._ids = tokenizer.get_vocab()
        self._text = ""
        self._seen: list[int] = []
        self.seconds = 0.0
        self.said: list[str] = []

    def feed(self, piece: str) -> None:
        before, seen = self._text, self._seen
        delta = [self._ids.get(piece, ORDINARY)]
        self._text, self._seen = before + piece, [*seen, *delta]
        start = process_time()
        message = self._parser.extract_tool_calls_streaming(
            before, self._text, piece, seen, self._seen, delta, self._request
        )
        self.seconds += process_time() - start
        if message is not None and message.tool_calls:
            self.said += [c.function.arguments for c in message.tool_calls if c.function and c.function.arguments]

    def finish(self) -> None:
        self.said.append(self._parser.get_remaining_unstreamed_args())
        if hasattr(self._parser, "finish_streaming"):
            message = self._parser.finish_streaming()
            if message is not None and message.tool_calls:
                self.said += [c.function.arguments for c in message.tool_calls if c.function and c.function.arguments]


def scan(dialect: str, tools: list[Any], markers: list[str], pieces: list[str], limit: float) -> dict[str, Any]:
    stream = Stream(dialect, tools, markers)
    gc.collect()
    marks = [0.0]
    for at in range(0, len(pieces), BATCH):
        for piece in pieces[at : at + BATCH]:
            stream.feed(piece)
        marks.append(stream.seconds)
        if marks[-1] > limit:
            break
    return summed(marks, len(pieces))


def arguments(dialect: str, tools: list[Any], markers: list[str], pieces: list[str]) -> dict[str, Any]:
    stream = Stream(dialect, tools, markers)
    for piece in pieces:
        stream.feed(piece)
    deltas = len(stream.said)
    stream.finish()
    return {"arguments": as_json(stream.said), "deltas": deltas}


def dialects() -> dict[str, Any]:
    return {"dialects": list(PARSERS)}


serve({"arguments": arguments, "dialects": dialects, "scan": scan})
