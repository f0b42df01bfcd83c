"""What a request for a response asks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from isogloss.engines import Sampling
from isogloss.json_fields import Fields, as_choice, as_string, invalid
from isogloss.messages import Conversation
from isogloss.openai_responses import conversation_from_responses
from isogloss.server.hosted_tools import HostedTools, MakeKit
from isogloss.server.items import Item, kept_items
from isogloss.server.request_fields import (
    LOCAL_SAMPLING,
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

_LOGPROBS = "message.output_text.logprobs"
_ENCRYPTED_REASONING = "reasoning.encrypted_content"
_INCLUDABLE = (
    _LOGPROBS,
    _ENCRYPTED_REASONING,
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
)
"""What ``include`` may name. All but the first two belong to items that this server never makes."""

_SUMMARIES = ("auto", "concise", "detailed", "none")
"""What ``reasoning.summary`` may ask for. The reasoning is open here, as ``reasoning_text``; it is never summarized."""

_KNOWN = (
    (TUNING - {"prediction", "verbosity"})
    | LOCAL_SAMPLING
    | {
        "background",
        "conversation",
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
    }
)
_REFUSED = {
    "access_programs": "There are none here.",
    "background_options": "A background response has all the time that the server gives it.",
    "context_management": "The context is never changed here.",
    "image": "Only text can be read and written.",
    "moderation": "Nothing is moderated here.",
    "prompt": "There are no stored prompts here.",
}


class ResponseRequest(msgspec.Struct, frozen=True):
    """A request that was checked whole. ``input_items`` are its own input and ``history`` what came before, as they
    are kept."""

    conversation: Conversation
    sampling: Sampling
    stream: bool
    store: bool
    background: bool
    may_truncate: bool
    wants_logprobs: bool
    wants_encrypted_reasoning: bool
    history: tuple[Item, ...]
    input_items: tuple[Item, ...]
    metadata: dict[str, str]
    hosted: HostedTools
    max_tool_calls: int | None
    options: dict[str, object]
    body: dict[str, Any]

    @property
    def custom_tools(self) -> frozenset[str]:
        """The names of the tools whose calls carry free text."""
        return frozenset(tool.name for tool in self.conversation.tools if tool.is_custom)


def read_response_request(
    body: dict[str, Any],
    history: Sequence[Item] = (),
    opened: Callable[[Any, str], Any] = lambda item, _: item,
    enabled: Mapping[str, MakeKit] | None = None,
    options: Collection[str] = (),
) -> ResponseRequest:
    """``history`` are the items that came before, and ``opened`` gives an item, and its pointer, with what is sealed in
    it. ``enabled`` are the tools that may be run here, ``options`` the names of the engine's own options. Raises
    `RequestError` for the first thing that is wrong."""
    fields = Fields(body, "")
    own = engine_options(fields, _KNOWN, options)
    check_fields(fields, _KNOWN | own.keys(), _REFUSED)
    given = body.get("input")
    if isinstance(given, list):
        given = [opened(item, f"/input/{position}") for position, item in enumerate(given)]
    past = [opened(item, f"/history/{position}") for position, item in enumerate(history)]
    hosted = HostedTools.asked_for(body, enabled or {})
    conversation = conversation_from_responses({**body, "input": given}, past, hosted.by_type())
    check_strict_schemas(conversation, "/text/format/schema", "/tools/{}/parameters", format_code="invalid_json_schema")
    check_tuning(fields)
    _check_options(fields)
    store, background = fields.boolean("store", True), fields.boolean("background", False)
    if background and not store:
        raise invalid("Background responses need 'store' to be true.", "/background")
    included = [as_choice(as_string(name, place), _INCLUDABLE, place) for name, place in fields.array("include")]
    top_logprobs = fields.integer("top_logprobs", 0, MOST_TOP_LOGPROBS) or 0
    wants_logprobs = _LOGPROBS in included
    return ResponseRequest(
        conversation=conversation,
        sampling=sampling(fields, fields.integer("max_output_tokens", 1), top_logprobs if wants_logprobs else None),
        stream=fields.boolean("stream", False),
        store=store,
        background=background,
        may_truncate=fields.has("truncation") and fields.choice("truncation", ("auto", "disabled")) == "auto",
        wants_logprobs=wants_logprobs,
        wants_encrypted_reasoning=_ENCRYPTED_REASONING in included,
        history=tuple(history),
        input_items=kept_items(body["input"]),
        metadata=metadata(fields),
        hosted=hosted,
        max_tool_calls=fields.integer("max_tool_calls", 1),
        options=own,
        body=body,
    )


def _check_options(fields: Fields) -> None:
    """What has no effect here, but is sent back, must be what the API says it is."""
    if fields.has("stream_options"):
        fields.object("stream_options").boolean("include_obfuscation", False)
    if fields.has("text") and fields.object("text").has("verbosity"):
        fields.object("text").choice("verbosity", VERBOSITIES)
    if fields.has("reasoning"):
        reasoning = fields.object("reasoning")
        for name in ("summary", "generate_summary"):
            if reasoning.has(name):
                reasoning.choice(name, _SUMMARIES)
