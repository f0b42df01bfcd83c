"""All that a server under test says, held against the types of the `openai` package: nothing is missing, nothing is of
another type, and what the package does not know is in `ADDED`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Union, get_args, get_origin

import openai.types as types
from openai.types import chat, conversations, responses
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ADDED = frozenset(
    {
        *("ChatCompletionMessage.reasoning_content", "ChoiceDelta.reasoning_content"),  # as other local servers do
        *("Response.frequency_penalty", "Response.presence_penalty", "Response.store"),  # of Open Responses
        "ResponseCodeInterpreterToolCall.name",
        "ResponseCustomToolCall.status",  # as all other items have
        "ResponseFunctionCallArgumentsDoneEvent.name",  # which earlier versions of the package want
        *(f"ResponseFunctionWebSearch.{name}" for name in ("name", "arguments", "output")),  # to go on from a search
        "ChoiceDeltaToolCall.custom",  # the package knows custom tools, but not their streams
        "Model.max_model_len",  # as vLLM does
    }
)

OBJECTS: dict[str, type[BaseModel]] = {
    "chat.completion": chat.ChatCompletion,
    "chat.completion.chunk": chat.ChatCompletionChunk,
    "chat.completion.deleted": chat.ChatCompletionDeleted,
    "conversation": conversations.Conversation,
    "conversation.deleted": conversations.ConversationDeletedResource,
    "model": types.Model,
    "response": responses.Response,
    "response.compaction": responses.CompactedResponse,
    "response.input_tokens": responses.InputTokenCountResponse,
}


def _members(union: Any) -> Iterator[type[BaseModel]]:
    for member in get_args(union):
        if get_origin(member) is Union or not isinstance(member, type):
            yield from _members(member)
        elif issubclass(member, BaseModel):
            yield member


EVENTS = {
    kind: event
    for event in _members(responses.ResponseStreamEvent)
    for kind in get_args(event.model_fields["type"].annotation)
}
ITEMS: TypeAdapter[Any] = TypeAdapter(conversations.ConversationItem | responses.ResponseItem)


class Wire:
    """An application, watched. ``faults`` are what it said and should not have said."""

    def __init__(self, app: ASGIApp) -> None:
        self.faults: list[str] = []
        self.seen = 0
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not scope.get("path", "").startswith("/v1/"):
            await self._app(scope, receive, send)
            return
        said = b""

        async def watched(message: Message) -> None:
            nonlocal said
            if message["type"] == "http.response.body":
                said += message.get("body", b"")
                *events, said = said.split(b"\n\n") if said.startswith((b"data: ", b"event: ")) else [said]
                for event in events:
                    self._take(event.rpartition(b"data: ")[2])
            elif message["type"] == "websocket.send":
                self._take(message["text"])
            await send(message)

        await self._app(scope, receive, watched)
        if said:
            self._take(said)

    def _take(self, said: str | bytes) -> None:
        if said in (b"[DONE]", b""):
            return
        self.seen += 1
        self.faults += [f"{fault} in {said[:500]!r}" for fault in faults_of(json.loads(said))]


def faults_of(value: dict[str, Any]) -> Iterable[str]:
    """What is wrong with something that was said."""
    if "error" in value and value.keys() <= {"error", "type", "status", "stream_id"}:
        missing = {"message", "type", "param", "code"} - value["error"].keys()
        return [f"no {name} of the error" for name in missing]
    if (value.get("object"), value.get("deleted")) == ("response", True) or "content_parts" in value:
        return []  # of the one the client gives back nothing, of stored messages it knows those of the assistant alone
    if value.get("object") == "response.compaction":  # the package knows no user's messages in an output
        value = {**value, "output": [item for item in value["output"] if item.get("role") != "user"]}
    if value.get("object") == "list":
        return [fault for entry in value["data"] for fault in faults_of(entry)]
    event = {name: field for name, field in value.items() if name != "stream_id"}
    try:
        return list(_additions(_read(event)))
    except (ValidationError, LookupError) as error:
        return [repr(error)]


def _read(value: dict[str, Any]) -> BaseModel:
    for choice in value.get("choices", ()) if value.get("object") == "chat.completion.chunk" else ():
        for call in choice["delta"].get("tool_calls", ()):
            if call.get("type") == "custom":
                del call["type"]
    if "object" in value:
        return OBJECTS[value["object"]].model_validate(value, strict=True)
    if value["type"] in EVENTS:
        return EVENTS[value["type"]].model_validate(value, strict=True)
    item: BaseModel = ITEMS.validate_python(value)
    return item


def _additions(value: object) -> Iterator[str]:
    """The fields that the package does not know."""
    if isinstance(value, BaseModel):
        for name, field in value:
            where = f"{type(value).__name__}.{name}"
            if name not in (value.model_extra or {}):
                yield from _additions(field)
            elif where not in ADDED:
                yield f"unknown field {where}"
    elif isinstance(value, list):
        for entry in value:
            yield from _additions(entry)
