"""An OpenAI-compatible chat endpoint that costs next to nothing: a fixed answer in ``TOKENS`` pieces.

`python -m benchmarks.endpoint PORT` serves it on loopback.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

MODEL = "stub"
TOKENS = 50

app = FastAPI()


def _chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": [choice]}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


PIECES = [
    _chunk({"role": "assistant", "content": ""}),
    *[_chunk({"content": "word "}) for _ in range(TOKENS)],
    _chunk({}, "stop"),
    b"data: [DONE]\n\n",
]


@app.get("/health")
async def health() -> dict[str, str]:
    return {"status": "ok"}


@app.get("/v1/models")
async def models() -> dict[str, Any]:
    return {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 1, "owned_by": "benchmarks"}]}


@app.post("/v1/chat/completions")
async def chat_completions() -> StreamingResponse:
    async def pieces() -> AsyncIterator[bytes]:
        for piece in PIECES:
            yield piece

    return StreamingResponse(pieces(), media_type="text/event-stream")


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
