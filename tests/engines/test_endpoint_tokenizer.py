"""The vocabulary of a server that is asked over HTTP, against a stand-in for the server with a vocabulary of bytes."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest

from isogloss.engines._endpoint_tokenizer import endpoint_tokenizer
from isogloss.errors import EngineUnavailableError

CONTROL = {"<|end|>": 256, "[INST]": 257}
USER_DEFINED = {"<think>": 258, "<tool>": 259}
SPECIAL = {**CONTROL, **USER_DEFINED}
SPELLING = {token: text for text, token in SPECIAL.items()}


class Server:
    """Answers as llama.cpp's server does; ``writes_control`` is its option ``--special``."""

    def __init__(self, *, writes_control: bool = False) -> None:
        self.writes_control = writes_control

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        return httpx.Response(200, json=getattr(self, request.url.path[1:])(body))

    def tokenize(self, body: dict[str, Any]) -> dict[str, Any]:
        known = SPECIAL if body["parse_special"] else USER_DEFINED
        parts = re.split("(" + "|".join(map(re.escape, known)) + ")", body["content"])
        return {"tokens": [token for part in parts for token in ([known[part]] if part in known else part.encode())]}

    def detokenize(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"content": "".join(SPELLING.get(token) or chr(token) for token in body["tokens"])}

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        assert body["n_probs"] >= 260
        entries = [{"id": token, "bytes": list(self.data(token)), "logprob": -1.0} for token in range(260)]
        return {"completion_probabilities": [{"id": 0, "logprob": -1.0, "top_logprobs": entries[::-1]}]}

    def data(self, token: int) -> bytes:
        if token < 256:
            return bytes([token])
        return SPELLING[token].encode() if token in USER_DEFINED.values() or self.writes_control else b""


def client_of(handler: Any) -> httpx.Client:
    return httpx.Client(base_url="http://server", transport=httpx.MockTransport(handler))


@pytest.mark.parametrize("writes_control", [False, True])
def test_special_tokens_are_found(writes_control: bool) -> None:
    tokenizer = endpoint_tokenizer(client_of(Server(writes_control=writes_control)), "tiny", "<|end|>")
    assert dict(tokenizer.special_tokens) == SPECIAL
    assert tokenizer.end_tokens == {256}
    assert tokenizer.vocabulary_size == 260
    assert [tokenizer.token_bytes(token) for token in (65, 255, 256, 258)] == [b"A", b"\xff", b"<|end|>", b"<think>"]
    assert not tokenizer.llguidance().is_special_token(65)
    assert tokenizer.llguidance().is_special_token(258)


def test_text_never_becomes_a_special_token() -> None:
    tokenizer = endpoint_tokenizer(client_of(Server()), "tiny", "<|end|>")
    for text in ("plain", "<|end|>[INST]", "<think>", "a<tool>b<think><tool><", "<th<think>ink>", ""):
        assert max(tokenizer.encode(text), default=0) < 256
        assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(httpx.Response(500, text="broken"), "500"), (httpx.Response(200, text="<html>"), "malformed")],
)
def test_a_server_that_does_not_tell(answer: httpx.Response, reason: str) -> None:
    with pytest.raises(EngineUnavailableError, match=f"does not tell its vocabulary: /completion: .*{reason}"):
        endpoint_tokenizer(client_of(lambda request: answer), "tiny", "<|end|>")
