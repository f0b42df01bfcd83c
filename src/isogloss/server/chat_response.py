"""Chat completions on the wire: a turn's events as one object, or as the chunks of a stream."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from isogloss.chat import Turn, Update
from isogloss.engines import TokenLogprob
from isogloss.events import (
    CUT_SHORT,
    Event,
    Finish,
    Malformed,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from isogloss.server import sse
from isogloss.server.chat_request import ChatRequest
from isogloss.server.items import new_id
from isogloss.server.logprobs import logprob_entries

_SPOKEN: dict[type[Event], str] = {
    TextDelta: "content",
    ReasoningDelta: "reasoning_content",
    RefusalDelta: "refusal",
}
"""Where a message holds what is said."""

_FINISH_REASONS = {"length": "length", "content_filter": "content_filter"}


class Completion:
    """What all parts of one answer share, and the choices that it is made of."""

    def __init__(self, request: ChatRequest, model: str) -> None:
        self.head = {"id": new_id("chatcmpl-"), "created": int(time.time()), "model": model}
        self.request = request
        self.choices = [Choice(index, request) for index in range(len(request.samplings))]
        self._templates: dict[tuple[int, str], sse.Template] = {}
        """For the chunks that are most of a stream, by choice and field."""

    def add(self, index: int, update: Update) -> None:
        """Let the choice of that index grow."""
        self.choices[index].add(update)

    def opening(self) -> list[bytes]:
        """The first events of a stream."""
        return [sse.event(self.chunk(choice.opening())) for choice in self.choices]

    def grown(self, index: int, update: Update) -> list[bytes]:
        """The events by which a stream tells what the choice of that index grew by, as `add` lets it."""
        choice, event = self.choices[index], update.event
        name = _SPOKEN.get(type(event))
        if name is None or update.logprobs:
            return [sse.event(self.chunk(delta)) for delta in choice.add(update)]
        text: str = event.text  # type: ignore[union-attr]  # those that speak have it
        choice.say(name, text)
        template = self._templates.get((index, name))
        if template is None:
            template = self._templates[index, name] = sse.Template(self.chunk(choice.delta({name: sse.HOLE})))
        return [template.event(text)]

    @property
    def is_over(self) -> bool:
        """Whether all choices have ended."""
        return all(choice.is_over for choice in self.choices)

    def whole(self, turns: Sequence[Turn]) -> dict[str, Any]:
        """The ``chat.completion`` object; one that is stored has the request's metadata."""
        return {
            **self.head,
            "object": "chat.completion",
            "choices": [choice.whole() for choice in self.choices],
            "usage": usage(turns),
            "service_tier": "default",
            "system_fingerprint": None,
            **({"metadata": self.request.metadata} if self.request.store else {}),
        }

    def chunk(self, choice: dict[str, Any]) -> dict[str, Any]:
        """One ``chat.completion.chunk`` that carries a choice's delta."""
        return self._chunk([choice], None)

    def usage_chunk(self, turns: Sequence[Turn]) -> dict[str, Any]:
        """The chunk that carries nothing but the usage."""
        return self._chunk([], usage(turns))

    def _chunk(self, choices: list[dict[str, Any]], counts: dict[str, Any] | None) -> dict[str, Any]:
        chunk = {
            **self.head,
            "object": "chat.completion.chunk",
            "choices": choices,
            "service_tier": "default",
            "system_fingerprint": None,
        }
        if self.request.include_usage:
            chunk["usage"] = counts
        return chunk


class Choice:
    """One choice as it grows: takes a turn's updates, gives the deltas of a stream, and knows the whole in the end."""

    def __init__(self, index: int, request: ChatRequest) -> None:
        self.index = index
        self._custom = request.custom_tools
        self._wants_logprobs = request.wants_logprobs
        self._said: dict[str, list[str]] = {"content": [], "refusal": [], "reasoning_content": []}
        self._logprobs: dict[str, list[dict[str, Any]]] = {"content": [], "refusal": []}
        self._calls: dict[int, _Call] = {}
        self._finish = "stop"
        self.is_over = False

    def opening(self) -> dict[str, Any]:
        """The first chunk's choice."""
        return self.delta({"role": "assistant", "content": "", "refusal": None})

    def add(self, update: Update) -> list[dict[str, Any]]:
        """The stream's choices for one update, in order."""
        event = update.event
        if isinstance(event, Finish):
            self._finish = self._finish_reason(event)
            self.is_over = True
            return [self.delta({}, finish=self._finish)]
        return [self.delta(delta, update.logprobs) for delta in self._deltas(event)]

    def whole(self) -> dict[str, Any]:
        """The choice of a ``chat.completion``."""
        text, refusal, reasoning = ("".join(self._said[name]) for name in ("content", "refusal", "reasoning_content"))
        calls = [call.whole() for call in self._calls.values() if call.is_whole]
        message: dict[str, Any] = {
            "role": "assistant",
            "content": text if text or not (calls or refusal) else None,
            "refusal": refusal or None,
            "annotations": [],
        }
        if reasoning:
            message["reasoning_content"] = reasoning
        if calls:
            message["tool_calls"] = calls
        return {
            "index": self.index,
            "message": message,
            "logprobs": self._all_logprobs(),
            "finish_reason": self._finish,
        }

    def _deltas(self, event: Event) -> Iterator[dict[str, Any]]:
        if isinstance(event, TextDelta | ReasoningDelta | RefusalDelta):
            yield self.say(_SPOKEN[type(event)], event.text)
        elif isinstance(event, ToolCallStart):
            call = self._calls[event.index] = _Call(event, is_custom=event.name in self._custom)
            yield {"tool_calls": [call.opening()]}
        elif isinstance(event, ToolCallDelta):
            call = self._calls[event.index]
            call.arguments.append(event.arguments)
            if not call.is_custom:
                yield {"tool_calls": [{"index": call.position, "function": {"arguments": event.arguments}}]}
        elif isinstance(event, ToolCallEnd):
            call = self._calls[event.index]
            call.end(event)
            if call.is_custom:
                yield {"tool_calls": [{"index": call.position, "custom": {"input": call.input}}]}
        elif isinstance(event, Malformed) and event.reason != CUT_SHORT:  # half a call is neither call nor answer
            yield self.say("content", event.raw)

    def say(self, name: str, text: str) -> dict[str, Any]:
        """The delta by which a field of the message grows."""
        self._said[name].append(text)
        return {name: text}

    def _finish_reason(self, event: Finish) -> str:
        if event.reason in _FINISH_REASONS:
            return _FINISH_REASONS[event.reason]
        return "tool_calls" if any(call.is_whole for call in self._calls.values()) else "stop"

    def delta(
        self, delta: dict[str, Any], logprobs: Sequence[TokenLogprob] = (), finish: str | None = None
    ) -> dict[str, Any]:
        """A chunk's choice."""
        said: dict[str, Any] | None = None
        if self._wants_logprobs and logprobs:
            name = "refusal" if "refusal" in delta else "content"
            entries = logprob_entries(logprobs)
            self._logprobs[name].extend(entries)
            said = {"content": None, "refusal": None, name: entries}
        return {"index": self.index, "delta": delta, "logprobs": said, "finish_reason": finish}

    def _all_logprobs(self) -> dict[str, Any] | None:
        if not self._wants_logprobs:
            return None
        return {"content": self._logprobs["content"], "refusal": self._logprobs["refusal"] or None}


class _Call:
    """A tool call as it grows."""

    def __init__(self, start: ToolCallStart, *, is_custom: bool) -> None:
        self.position = start.index
        self.is_custom = is_custom
        self.arguments: list[str] = []
        self.input = ""
        self.is_whole = False
        self._id = start.id
        self._name = start.name

    def opening(self) -> dict[str, Any]:
        """The first delta: the only one with the id, the type and the name."""
        return {"index": self.position, **self._as("")}

    def end(self, event: ToolCallEnd) -> None:
        self.is_whole = True
        if self.is_custom:
            self.input = str(event.arguments.get("input", ""))

    def whole(self) -> dict[str, Any]:
        return self._as(self.input if self.is_custom else "".join(self.arguments))

    def _as(self, body: str) -> dict[str, Any]:
        if self.is_custom:
            return {"id": self._id, "type": "custom", "custom": {"name": self._name, "input": body}}
        return {"id": self._id, "type": "function", "function": {"name": self._name, "arguments": body}}


def usage(turns: Sequence[Turn]) -> dict[str, Any]:
    """The engine's counts. All choices have the same prompt, which is counted once."""
    prompt = max(turn.usage.prompt_tokens for turn in turns)
    completion = sum(turn.usage.completion_tokens for turn in turns)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": max(turn.usage.cached_tokens for turn in turns), "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": sum(turn.reasoning_tokens for turn in turns),
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
