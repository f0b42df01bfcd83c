"""The output of a response as it grows: items and their parts, and the events that tell a stream of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from isogloss.chat import Update
from isogloss.engines import TokenLogprob
from isogloss.events import (
    CUT_SHORT,
    Finish,
    Malformed,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from isogloss.messages import ToolCall
from isogloss.server.hosted_calls import HOSTED_FIELDS, HostedCall, search_action
from isogloss.server.items import ID_PREFIXES, new_id
from isogloss.server.logprobs import logprob_entries

StreamEvent = tuple[str, dict[str, Any]]
"""The type of an event and its fields."""


class _PartKind(NamedTuple):
    """A part's type: the item that it is in, the events that tell of it, and the field that has its text."""

    item: str
    events: str
    field: str


_PARTS = {
    "output_text": _PartKind("message", "response.output_text", "text"),
    "refusal": _PartKind("message", "response.refusal", "refusal"),
    "reasoning_text": _PartKind("reasoning", "response.reasoning_text", "text"),
}


_WRITTEN = {"function_call": "arguments", "custom_tool_call": "input", "code_interpreter_call": "code"}
"""The field in which a call has what the model wrote."""


class ResponseOutput:
    """Takes a turn's updates, gives the events of a stream, and has the ``items`` in the end.

    The events must be used before the next update is added. A call that was cut short streams as an item that ends
    ``incomplete``; it is no call, so the ``items`` do not have it. ``seal`` encrypts the text of reasoning,
    where that was asked for. ``hosted_type`` gives the type of the item that a call of a tool becomes that is run here;
    once a turn is over, such ``calls`` wait to be run.
    """

    def __init__(
        self,
        custom_tools: frozenset[str],
        wants_logprobs: bool,
        seal: Callable[[str], str] | None = None,
        hosted_type: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        self.items: list[dict[str, Any]] = []
        self.finish = ""
        self._custom_tools = custom_tools
        self._wants_logprobs = wants_logprobs
        self._seal = seal
        self._hosted_type = hosted_type
        self.calls: list[HostedCall] = []
        self._opened = -1
        self._item: dict[str, Any] | None = None
        self._part: dict[str, Any] | None = None
        self._part_place: dict[str, Any] = {}
        self._said: list[str] = []

    def add(self, update: Update) -> Iterator[StreamEvent]:
        event = update.event
        if isinstance(event, TextDelta):
            yield from self._say("output_text", event.text, update.logprobs)
        elif isinstance(event, RefusalDelta):
            yield from self._say("refusal", event.text)
        elif isinstance(event, ReasoningDelta):
            yield from self._say("reasoning_text", event.text)
        elif isinstance(event, ToolCallStart):
            yield from self._open_call(event)
        elif isinstance(event, ToolCallDelta):
            yield from self._argue(event.arguments)
        elif isinstance(event, ToolCallEnd):
            yield from self._end_call(event)
        elif isinstance(event, Malformed):
            if event.index is not None:
                yield from self._drop_call()
            if event.reason != CUT_SHORT:
                yield from self._say("output_text", event.raw)
        elif isinstance(event, Finish):
            self.finish = event.reason
            yield from self._close_item("incomplete" if event.reason == "length" else "completed")

    # Messages and reasoning

    def _say(self, kind: str, text: str, logprobs: Sequence[TokenLogprob] = ()) -> Iterator[StreamEvent]:
        part = _PARTS[kind]
        if self._item is None or self._item["type"] != part.item:
            yield from self._close_item("completed")
            yield self._open_item(part.item, _empty(part.item))
        if self._part is None or self._part["type"] != kind:
            yield from self._close_part()
            yield self._open_part(kind)
        self._said.append(text)
        delta: dict[str, Any] = {**self._part_place, "delta": text}
        if kind == "output_text":
            delta["logprobs"] = self._log(logprobs)
        yield f"{part.events}.delta", delta

    def _open_part(self, kind: str) -> StreamEvent:
        assert self._item is not None
        self._part = {"type": kind, _PARTS[kind].field: ""}
        if kind == "output_text":
            self._part |= {"annotations": [], "logprobs": []}
        self._said = []
        self._part_place = {**self._item_place(), "content_index": len(self._item["content"])}
        self._item["content"].append(self._part)
        return "response.content_part.added", {**self._part_place, "part": self._part}

    def _close_part(self) -> Iterator[StreamEvent]:
        if self._part is None:
            return
        kind = self._part["type"]
        part = _PARTS[kind]
        self._part[part.field] = "".join(self._said)
        done = {**self._part_place, part.field: self._part[part.field]}
        if kind == "output_text":
            done["logprobs"] = self._part["logprobs"]
        yield f"{part.events}.done", done
        yield "response.content_part.done", {**self._part_place, "part": self._part}
        self._part = None

    def _log(self, logprobs: Sequence[TokenLogprob]) -> list[dict[str, Any]]:
        if not self._wants_logprobs or self._part is None:
            return []
        entries = logprob_entries(logprobs)
        self._part["logprobs"].extend(entries)
        return entries

    # Calls

    def _open_call(self, event: ToolCallStart) -> Iterator[StreamEvent]:
        yield from self._close_item("completed")
        hosted = self._hosted_type(event.name)
        if hosted is not None:
            self._said = []
            yield self._open_item(hosted, {**HOSTED_FIELDS[hosted], "name": event.name})
            yield f"response.{hosted}.in_progress", self._item_place()
            return
        is_custom = event.name in self._custom_tools
        kind, body = ("custom_tool_call", "input") if is_custom else ("function_call", "arguments")
        self._said = []
        yield self._open_item(kind, {"call_id": event.id, "name": event.name, body: ""})

    def _argue(self, arguments: str) -> Iterator[StreamEvent]:
        assert self._item is not None
        self._said.append(arguments)
        if self._item["type"] == "function_call":
            yield "response.function_call_arguments.delta", {**self._item_place(), "delta": arguments}

    def _end_call(self, event: ToolCallEnd) -> Iterator[StreamEvent]:
        assert self._item is not None
        if self._item["type"] in HOSTED_FIELDS:
            yield from self._end_hosted_call(event)
            return
        if self._item["type"] == "function_call":
            self._item["arguments"] = "".join(self._said)
            done = {**self._item_place(), "arguments": self._item["arguments"], "name": self._item["name"]}
            yield "response.function_call_arguments.done", done
        else:
            self._item["input"] = text = str(event.arguments.get("input", ""))
            yield "response.custom_tool_call_input.delta", {**self._item_place(), "delta": text}
            yield "response.custom_tool_call_input.done", {**self._item_place(), "input": text}
        yield from self._close_item("completed")

    def _end_hosted_call(self, event: ToolCallEnd) -> Iterator[StreamEvent]:
        assert self._item is not None
        item, place = self._item, self._item_place()
        if "code" in item:
            item["code"] = code = str(event.arguments.get("input", event.arguments.get("code", "")))
            yield "response.code_interpreter_call_code.delta", {**place, "delta": code}
            yield "response.code_interpreter_call_code.done", {**place, "code": code}
        else:
            item["arguments"] = "".join(self._said)
            item["action"] = search_action(item["name"], event.arguments)
        self.calls.append(HostedCall(ToolCall(item["id"], item["name"], event.arguments), item, self._opened))
        self._item = None

    def _drop_call(self) -> Iterator[StreamEvent]:
        if self._item is not None:
            self._item[_WRITTEN.get(self._item["type"], "arguments")] = "".join(self._said)
            yield from self._close_item("incomplete")
            self.items.pop()

    # Items

    def _open_item(self, kind: str, fields: dict[str, Any]) -> StreamEvent:
        self._opened += 1
        self._item = {"type": kind, "id": new_id(ID_PREFIXES[kind]), "status": "in_progress", **fields}
        self.items.append(self._item)
        return "response.output_item.added", {"output_index": self._opened, "item": self._item}

    def _close_item(self, status: str) -> Iterator[StreamEvent]:
        if self._item is None:
            return
        yield from self._close_part()
        self._item["status"] = status
        if self._seal is not None and self._item["type"] == "reasoning":
            self._item["encrypted_content"] = self._seal("".join(part["text"] for part in self._item["content"]))
        yield "response.output_item.done", {"output_index": self._opened, "item": self._item}
        self._item = None

    def _item_place(self) -> dict[str, Any]:
        assert self._item is not None
        return {"item_id": self._item["id"], "output_index": self._opened}


def _empty(kind: str) -> dict[str, Any]:
    if kind == "message":
        return {"role": "assistant", "content": []}
    return {"summary": [], "content": [], "encrypted_content": None}
