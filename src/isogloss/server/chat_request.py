"""What a request for a chat completion asks."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from isogloss.engines import Sampling
from isogloss.errors import RequestError
from isogloss.json_fields import Fields, as_choice, invalid
from isogloss.messages import Conversation
from isogloss.openai_chat import conversation_from_openai
from isogloss.server.request_fields import (
    LOCAL_SAMPLING,
    MOST_CHOICES,
    MOST_TOP_LOGPROBS,
    TUNING,
    VERBOSITIES,
    check_fields,
    check_tuning,
    engine_options,
    metadata,
    sampling,
)
from isogloss.server.strict_schemas import check_strict_schemas

_KNOWN = (
    TUNING
    | LOCAL_SAMPLING
    | {
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "modalities",
        "model",
        "n",
        "parallel_tool_calls",
        "presence_penalty",
        "reasoning_effort",
        "response_format",
        "stop",
        "stream",
        "stream_options",
        "temperature",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
    }
)
_REFUSED = {
    "audio": "Only text can be generated.",
    "function_call": "It is deprecated: use 'tool_choice'.",
    "functions": "It is deprecated: use 'tools'.",
    "moderation": "Nothing is moderated here.",
    "web_search_options": "There is no hosted search here.",
}


class ChatRequest(msgspec.Struct, frozen=True):
    """A request that was checked whole. Each of ``samplings`` is one choice."""

    conversation: Conversation
    samplings: tuple[Sampling, ...]
    stream: bool
    include_usage: bool
    wants_logprobs: bool
    store: bool
    metadata: dict[str, str]
    options: dict[str, object]

    @property
    def custom_tools(self) -> frozenset[str]:
        """The names of the tools whose calls carry free text."""
        return frozenset(tool.name for tool in self.conversation.tools if tool.is_custom)


def read_chat_request(body: dict[str, Any], options: Collection[str] = ()) -> ChatRequest:
    """``options``: the names of the engine's own. Raises `RequestError` for the first thing that is wrong."""
    fields = Fields(body, "")
    own = engine_options(fields, _KNOWN, options)
    check_fields(fields, _KNOWN | own.keys(), _REFUSED)
    conversation = conversation_from_openai(body)
    check_strict_schemas(
        conversation, "/response_format", "/tools/{}/function/parameters", format_code="invalid_request"
    )
    check_tuning(fields)
    if fields.has("verbosity"):
        fields.choice("verbosity", VERBOSITIES)
    for value, pointer in fields.array("modalities"):
        as_choice(value, ("text",), pointer)
    stream = fields.boolean("stream", False)
    if fields.has("stream_options") and not stream:
        raise invalid("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "/stream_options")
    streaming = fields.object("stream_options") if fields.has("stream_options") else Fields({}, "/stream_options")
    logprobs = _logprobs(fields)
    one = sampling(fields, _max_tokens(fields), logprobs)
    return ChatRequest(
        conversation=conversation,
        samplings=tuple(_choices(one, fields.integer("n", 1, MOST_CHOICES) or 1)),
        stream=stream,
        include_usage=streaming.boolean("include_usage", False),
        wants_logprobs=logprobs is not None,
        store=fields.boolean("store", False),
        metadata=metadata(fields),
        options=own,
    )


def _max_tokens(fields: Fields) -> int | None:
    if fields.has("max_tokens") and fields.has("max_completion_tokens"):
        raise RequestError(
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
            pointer="/max_tokens",
            code="invalid_value",
        )
    return fields.integer("max_completion_tokens", 1) or fields.integer("max_tokens", 1)


def _logprobs(fields: Fields) -> int | None:
    top = fields.integer("top_logprobs", 0, MOST_TOP_LOGPROBS)
    if fields.boolean("logprobs", False):
        return top or 0
    if top is not None:
        raise invalid("The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.", "/top_logprobs")
    return None


def _choices(one: Sampling, count: int) -> list[Sampling]:
    """As many samplings as choices; under a seed each has its own, or they would all be the same."""
    if one.seed is None:
        return [one] * count
    return [msgspec.structs.replace(one, seed=one.seed + position) for position in range(count)]
