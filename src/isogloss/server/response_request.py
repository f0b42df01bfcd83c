"""What a request for a response asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from isogloss.engines import Sampling
from isogloss.json_fields import Fields, as_choice, as_string, invalid
from isogloss.messages import Conversation
from isogloss.openai_responses import conversation_from_responses
from isogloss.server.request_fields import MOST_TOP_LOGPROBS, TUNING, check_fields, sampling
from isogloss.server.strict_schemas import check_strict_schemas

_LOGPROBS = "message.output_text.logprobs"
_INCLUDABLE = (
    _LOGPROBS,
    "reasoning.encrypted_content",
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
)
"""What ``include`` may name. All but the first belong to items that this server never makes."""

_KNOWN = (TUNING - {"prediction", "verbosity"}) | {
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "model",
    "parallel_tool_calls",
    "previous_response_id",
    "reasoning",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "background",
}
_REFUSED = {
    "background_options": "Responses are not made in the background.",
    "context_management": "The context is never changed here.",
    "conversation": "Conversations are not kept here: use 'previous_response_id'.",
    "moderation": "Nothing is moderated here.",
    "prompt": "There are no stored prompts here.",
}


class ResponseRequest(msgspec.Struct, frozen=True):
    """A request that was checked whole. ``input_items`` are its own input, with ids."""

    conversation: Conversation
    sampling: Sampling
    stream: bool
    store: bool
    wants_logprobs: bool
    input_items: tuple[dict[str, Any], ...]
    body: dict[str, Any]

    @property
    def custom_tools(self) -> frozenset[str]:
        """The names of the tools whose calls carry free text."""
        return frozenset(tool.name for tool in self.conversation.tools if tool.is_custom)


def read_response_request(body: dict[str, Any], history: Sequence[dict[str, Any]]) -> ResponseRequest:
    """``history`` are the items that came before. Raises `RequestError` for the first thing that is wrong."""
    fields = Fields(body, "")
    check_fields(fields, _KNOWN, _REFUSED)
    conversation = conversation_from_responses(body, history)
    check_strict_schemas(conversation, "/text/format/schema", "/tools/{}/parameters", format_code="invalid_json_schema")
    if fields.boolean("background", False):
        raise invalid("Responses are not made in the background.", "/background", "unsupported_parameter")
    if fields.has("truncation"):
        fields.choice("truncation", ("disabled",))
    included = [as_choice(as_string(name, place), _INCLUDABLE, place) for name, place in fields.array("include")]
    top_logprobs = fields.integer("top_logprobs", 0, MOST_TOP_LOGPROBS) or 0
    wants_logprobs = _LOGPROBS in included
    return ResponseRequest(
        conversation=conversation,
        sampling=sampling(fields, fields.integer("max_output_tokens", 1), top_logprobs if wants_logprobs else None),
        stream=fields.boolean("stream", False),
        store=fields.boolean("store", True),
        wants_logprobs=wants_logprobs,
        input_items=_input_items(body["input"]),
        body=body,
    )


def _input_items(given: str | list[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    if isinstance(given, str):
        content = [{"type": "input_text", "text": given}]
        return ({"type": "message", "role": "user", "content": content},)
    return tuple({"type": "message", **item} for item in given)
