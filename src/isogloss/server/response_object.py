"""The ``response`` object: what was asked, echoed, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from isogloss.chat import Turn
from isogloss.errors import IsoglossError
from isogloss.messages import Tool
from isogloss.server.errors import error_body
from isogloss.server.items import new_id
from isogloss.server.response_request import ResponseRequest

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


class ResponseObject:
    """One response from its creation to its end. ``fields`` is what is sent."""

    def __init__(self, request: ResponseRequest, model: str) -> None:
        self.id = new_id("resp_")
        self.fields = _echo(request) | {
            "id": self.id,
            "object": "response",
            "created_at": int(time.time()),
            "model": model,
            "status": "queued" if request.background else "in_progress",
        }

    @property
    def status(self) -> str:
        status: str = self.fields["status"]
        return status

    def start(self) -> None:
        """The model has begun, or is about to."""
        self.fields["status"] = "in_progress"

    def reached(self, items: list[dict[str, Any]]) -> None:
        """So far the output is this."""
        self.fields["output"] = _whole(items)

    def end(self, finish: str, items: list[dict[str, Any]], turns: Sequence[Turn]) -> None:
        """The last turn is over."""
        reason = _INCOMPLETE.get(finish)
        self.fields |= {
            "status": "completed" if reason is None else "incomplete",
            "completed_at": int(time.time()) if reason is None else None,
            "incomplete_details": None if reason is None else {"reason": reason},
            "output": items,
            "usage": usage_of(turns),
        }

    def fail(self, error: IsoglossError | None, items: list[dict[str, Any]]) -> None:
        """The turn broke off. Without an error of the tree it was a defect of the server."""
        message = (
            "The server had an error while processing your request." if error is None else error_body(error)["message"]
        )
        self.fields |= {
            "status": "failed",
            "error": {"code": "server_error", "message": message},
            "output": _whole(items),
        }

    def cancel(self, items: list[dict[str, Any]]) -> None:
        """Nobody wants it any more."""
        self.fields |= {"status": "cancelled", "output": _whole(items)}


def _whole(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [item for item in items if item["status"] != "in_progress"]


def _echo(request: ResponseRequest) -> dict[str, Any]:
    body = request.body
    text = body.get("text") or {}
    reasoning = body.get("reasoning") or {}
    given = {name: body[name] for name in _DEFAULTS if body.get(name) is not None}
    return {
        **_DEFAULTS,
        **given,
        "parallel_tool_calls": request.conversation.parallel_tool_calls,
        "metadata": request.metadata,
        "service_tier": "default",
        "conversation": _conversation(body.get("conversation")),
        "reasoning": {"effort": reasoning.get("effort"), "summary": reasoning.get("summary")},
        "store": request.store,
        "text": {"format": text.get("format") or {"type": "text"}, "verbosity": text.get("verbosity") or "medium"},
        "tools": [
            *(_tool(tool) for tool in request.conversation.tools if tool.name not in request.hosted.names),
            *request.hosted.entries,
        ],
    }


def _conversation(given: Any) -> dict[str, Any] | None:
    return {"id": given} if isinstance(given, str) else given


_DEFAULTS: dict[str, Any] = {
    "background": False,
    "completed_at": None,
    "error": None,
    "frequency_penalty": 0.0,
    "incomplete_details": None,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "output": [],
    "presence_penalty": 0.0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "safety_identifier": None,
    "temperature": 1.0,
    "tool_choice": "auto",
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "usage": None,
    "user": None,
}
"""What a response says of what the request did not."""


def _tool(tool: Tool) -> dict[str, Any]:
    if not tool.is_custom:
        return {
            "type": "function",
            "name": tool.name,
            "description": tool.description or None,
            "parameters": tool.parameters,
            "strict": tool.strict,
        }
    form: dict[str, Any] = {"type": "text"}
    if tool.grammar is not None:
        form = {"type": "grammar", "syntax": tool.grammar.syntax, "definition": tool.grammar.definition}
    return {"type": "custom", "name": tool.name, "description": tool.description or None, "format": form}


def usage_of(turns: Sequence[Turn]) -> dict[str, Any]:
    """The engine's counts, as a response has them: of all turns that it took."""
    prompt = sum(turn.usage.prompt_tokens for turn in turns)
    completion = sum(turn.usage.completion_tokens for turn in turns)
    cached = sum(turn.usage.cached_tokens for turn in turns)
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": sum(turn.reasoning_tokens for turn in turns)},
        "total_tokens": prompt + completion,
    }
