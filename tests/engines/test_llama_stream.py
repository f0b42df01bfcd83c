from __future__ import annotations

import json
import math
from typing import Any

import pytest

from isogloss.engines import Chunk, TokenLogprob, Usage
from isogloss.engines._llama_stream import LEAST_LOGPROB, CompletionStream, Vocabulary
from isogloss.errors import EngineCapabilityError, EngineError
from isogloss.events import Piece
from isogloss.tokenizers import byte_level

VOCABULARY = Vocabulary(byte_level(["<|end|>"]))
END = 256


def stream(logprobs: int | None = None) -> CompletionStream:
    return CompletionStream(VOCABULARY, logprobs)


def event(content: str, token: int, predicted: int, **more: Any) -> str:
    return json.dumps({"content": content, "tokens": [token], "tokens_predicted": predicted, "stop": False, **more})


def test_ids_that_have_no_event_are_found_by_their_bytes() -> None:
    reader = stream()
    assert reader.read(event("a", ord("a"), 1)) == Chunk((Piece("a"),), (ord("a"),))
    fox = "🦊".encode()
    assert reader.read(event("🦊", fox[-1], 5)) == Chunk((Piece("🦊"),), tuple(fox))
    assert reader.knows_every_token


def test_ids_that_cannot_be_found_leave_the_text() -> None:
    reader = stream()
    assert reader.read(event("�", 0xA5, 3)) == Chunk((Piece("�"),), (0xA5,))
    assert not reader.knows_every_token
    flood = stream()
    long = "é" * 100
    assert flood.read(event(long, 0xA9, 200)) == Chunk((Piece(long),), (0xA9,))
    assert not flood.knows_every_token


@pytest.mark.parametrize("content", ["", "<|end|>"], ids=["not written", "written"])
def test_a_control_token_whether_the_server_writes_it_or_not(content: str) -> None:
    assert stream().read(event(content, END, 1)) == Chunk((Piece("<|end|>", is_control=True),), (END,))


def test_a_control_token_after_half_a_character() -> None:
    chunk = stream().read(event("�<|end|>", END, 2))
    assert chunk == Chunk((Piece("�"), Piece("<|end|>", is_control=True)), (END,))


def test_progress_says_nothing_but_is_counted() -> None:
    reader = stream()
    progress = {"total": 9, "cache": 6, "processed": 9}
    assert reader.read(event("", 0, 0, tokens_evaluated=9, prompt_progress=progress)) is None
    reader.read(event("a", 97, 1, tokens_evaluated=9))
    assert reader.usage == Usage(9, 1, 6)


@pytest.mark.parametrize(("stop_type", "finish"), [("eos", "stop"), ("word", "stop"), ("limit", "length")])
def test_the_end(stop_type: str, finish: str) -> None:
    last = {"stop": True, "stop_type": stop_type, "tokens_predicted": 2, "tokens_evaluated": 3, "content": ""}
    chunk = stream().read(json.dumps({**last, "timings": {"cache_n": 1, "prompt_n": 2}}))
    assert chunk == Chunk(finish=finish, usage=Usage(3, 2, 1))


def test_log_probabilities() -> None:
    likely = {"id": 97, "token": "a", "bytes": [97], "logprob": -0.5}
    silent = {"id": END, "token": "", "bytes": [], "logprob": -math.inf}
    entry = {**likely, "top_logprobs": [likely, {**silent, "logprob": -3.4e38}, likely]}
    chunk = stream(2).read(event("a", 97, 1, completion_probabilities=[entry]))
    assert chunk is not None
    top = (("a", -0.5, b"a"), ("<|end|>", LEAST_LOGPROB, b"<|end|>"))
    assert chunk.logprobs == (TokenLogprob("a", -0.5, b"a", top),)
    unasked = stream().read(event("a", 97, 1, completion_probabilities=[entry]))
    assert unasked is not None
    assert unasked.logprobs == ()


def test_a_probability_of_nothing() -> None:
    entry = {"id": 97, "token": "a", "bytes": [97], "logprob": None, "top_logprobs": []}
    chunk = stream(0).read(event("a", 97, 1, completion_probabilities=[entry]))
    assert chunk is not None
    assert chunk.logprobs == (TokenLogprob("a", LEAST_LOGPROB, b"a"),)


def test_what_is_no_event() -> None:
    with pytest.raises(EngineError, match="failed: out of slots"):
        stream().read('{"error": {"code": 500, "message": "out of slots"}}')
    with pytest.raises(EngineError, match="no completion event"):
        stream().read('{"content": 5}')
    with pytest.raises(EngineCapabilityError, match="too old"):
        stream().read('{"content": "a", "stop": false}')
