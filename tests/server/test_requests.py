"""Whatever JSON is sent, it is read or refused with an error that names the place."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.errors import IsoglossError
from isogloss.server.chat_request import read_chat_request
from isogloss.server.errors import error_body
from isogloss.server.response_request import read_response_request

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text("ab<|", max_size=4)
WORDS = st.sampled_from(
    [
        "user",
        "assistant",
        "tool",
        "function",
        "custom",
        "text",
        "json_schema",
        "json_object",
        "auto",
        "object",
        "string",
    ]
)
NAMES = st.sampled_from(
    [
        *("role", "content", "type", "function", "name", "parameters", "properties", "strict", "schema", "json_schema"),
        *("format", "grammar", "syntax", "definition", "items", "required", "include_usage", "effort", "text", "tools"),
    ]
)
VALUES = st.recursive(
    SCALARS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=15,
)
MESSAGES = [{"role": "user", "content": "As json."}]
CHAT_FIELDS = st.sampled_from(
    [
        *("messages", "tools", "tool_choice", "response_format", "stop", "n", "logprobs", "top_logprobs", "logit_bias"),
        *("temperature", "stream", "stream_options", "max_tokens", "modalities", "parallel_tool_calls", "seed"),
    ]
)
RESPONSE_FIELDS = st.sampled_from(
    [
        *("input", "tools", "tool_choice", "text", "reasoning", "include", "instructions", "store", "truncation"),
        *(
            "background",
            "conversation",
            "max_tool_calls",
            "stream_options",
            "max_output_tokens",
            "top_logprobs",
            "parallel_tool_calls",
            "metadata",
            "stream",
        ),
    ]
)


def outcome(read: Any, body: dict[str, Any]) -> tuple[int, str | None]:
    """The status of the answer, and the type of its error."""
    try:
        read(body)
    except IsoglossError as error:
        return error.status, error_body(error)["type"]
    return 200, None


FINE = [(200, None), (400, "invalid_request_error")]


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(CHAT_FIELDS, VALUES, max_size=4))
def test_chat_requests(fields: dict[str, Any]) -> None:
    assert outcome(read_chat_request, {"model": "m", "messages": MESSAGES, **fields}) in FINE


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(RESPONSE_FIELDS, VALUES, max_size=4))
def test_response_requests(fields: dict[str, Any]) -> None:
    assert outcome(read_response_request, {"model": "m", "input": MESSAGES, **fields}) in FINE
