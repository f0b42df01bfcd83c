"""The `openai` package is what is served: its types bind every answer (see `wire`), and each field that a request may
have is either read or refused with a reason."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.chat import completion_create_params as chat_params
from openai.types.responses import response_create_params as response_params

from isogloss.server import chat_request, response_request

from .wire import faults_of

COMPLETION: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
}


@pytest.mark.parametrize(
    ("params", "module"),
    [
        (chat_params.CompletionCreateParamsNonStreaming, chat_request),
        (response_params.ResponseCreateParamsNonStreaming, response_request),
    ],
)
def test_every_field_of_a_request_is_read_or_refused(params: Any, module: Any) -> None:
    asked = {name for kind in params.__mro__[:-1] for name in getattr(kind, "__annotations__", {})}
    asked |= {name for kind in getattr(params, "__orig_bases__", ()) for name in getattr(kind, "__annotations__", {})}
    assert len(asked) > 20
    assert asked - module._KNOWN - module._REFUSED.keys() == set()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"created": "1"}, "created"),
        ({"choices": [{"index": 0}]}, "finish_reason"),
        ({"mood": "good"}, "unknown field ChatCompletion.mood"),
        ({"object": "chat.incompletion"}, "chat.incompletion"),
    ],
)
def test_what_the_types_do_not_allow_is_found(change: dict[str, Any], fault: str) -> None:
    assert list(faults_of(COMPLETION)) == []
    [found] = faults_of({**COMPLETION, **change})
    assert fault in found
