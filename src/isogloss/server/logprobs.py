"""Log probabilities as both APIs write them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from isogloss.engines import TokenLogprob


def logprob_entries(logprobs: Iterable[TokenLogprob]) -> list[dict[str, Any]]:
    """One entry a token, with its bytes and its alternatives."""
    return [
        {
            **_token(entry.token, entry.logprob, entry.data),
            "top_logprobs": [_token(*alternative) for alternative in entry.top],
        }
        for entry in logprobs
    ]


def _token(token: str, logprob: float, data: bytes) -> dict[str, Any]:
    return {"token": token, "bytes": list(data), "logprob": logprob}
