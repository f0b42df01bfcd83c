"""``POST /v1/chat/completions``, and the completions that were stored: list, get, update, delete, messages."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response

from isogloss.chat import Turn
from isogloss.errors import IsoglossError, RequestError
from isogloss.events import Finish
from isogloss.json_fields import Fields
from isogloss.server import sse
from isogloss.server.caller import caller_of
from isogloss.server.chat_request import ChatRequest, read_chat_request
from isogloss.server.chat_response import Completion
from isogloss.server.errors import NotFoundError, defect_body, error_body, json_response
from isogloss.server.generation import Batch, updates_of, while_connected
from isogloss.server.items import new_id
from isogloss.server.paging import Asked
from isogloss.server.request_body import read_body, read_in_time
from isogloss.server.request_fields import check_fields, metadata
from isogloss.server.service import Service

_log = logging.getLogger("isogloss.server")

_METADATA_QUERY = re.compile(r"metadata\[(.+)\]")


def chat_completions(service: Service) -> APIRouter:
    router = APIRouter()

    @router.post("/v1/chat/completions")
    async def create(request: Request) -> Response:
        body = await read_body(request, service.options.max_body_bytes)
        model = await service.served_model(body.get("model"))
        read = partial(read_chat_request, body, service.engine_options)
        asked = await read_in_time(body, body.get("messages"), read)
        making = _Making(service, caller_of(request).name, body, asked, model)
        if not asked.stream:
            return json_response(await while_connected(request, making.whole()))
        await while_connected(request, making.begin())
        return sse.EventStream(making.events(), making.close)

    return router


def stored_completions(service: Service) -> APIRouter:
    router = APIRouter()
    store = service.state.completions

    @router.get("/v1/chat/completions")
    async def listed(request: Request) -> Response:
        query = request.query_params
        page = await store.page(caller_of(request).name, Asked.of(query, "asc"), query.get("model"), _metadata(query))
        return json_response(page)

    @router.get("/v1/chat/completions/{completion_id}")
    async def retrieve(completion_id: str, request: Request) -> Response:
        return json_response(_found(await store.get(caller_of(request).name, completion_id), completion_id))

    @router.post("/v1/chat/completions/{completion_id}")
    async def update(completion_id: str, request: Request) -> Response:
        fields = Fields(await read_body(request, service.options.max_body_bytes), "")
        check_fields(fields, ("metadata",), {})
        changed = await store.update(caller_of(request).name, completion_id, metadata(fields))
        return json_response(_found(changed, completion_id))

    @router.delete("/v1/chat/completions/{completion_id}")
    async def delete(completion_id: str, request: Request) -> Response:
        if not await store.delete(caller_of(request).name, completion_id):
            raise _no_completion(completion_id)
        return json_response({"object": "chat.completion.deleted", "id": completion_id, "deleted": True})

    @router.get("/v1/chat/completions/{completion_id}/messages")
    async def messages(completion_id: str, request: Request) -> Response:
        held = _found(await store.messages(caller_of(request).name, completion_id), completion_id)
        return json_response(Asked.of(request.query_params, "asc").page(held))

    return router


class _Making:
    """A completion being made: whole, or as the events of a stream."""

    def __init__(self, service: Service, owner: str, body: dict[str, Any], asked: ChatRequest, model: str) -> None:
        self._service = service
        self._owner = owner
        self._body = body
        self._asked = asked
        self._turns: Sequence[Turn] = [
            service.chat.stream(asked.conversation, one, asked.options) for one in asked.samplings
        ]
        self._completion = Completion(asked, model)
        self._updates = updates_of(service, self._turns)
        self._first: Batch = ()

    async def whole(self) -> dict[str, Any]:
        async for batch in self._updates:
            for index, update in batch:
                self._completion.add(index, update)
        await self._keep()
        return self._completion.whole(self._turns)

    async def begin(self) -> None:
        """Wait for the first sign of the model, so that what fails before it is an error of the request."""
        self._first = await anext(self._updates)

    async def events(self) -> AsyncGenerator[bytes, None]:
        """The stream: what comes together is written together. What fails once it has begun is told as its last
        event."""
        completion = self._completion
        unsent = completion.opening()
        try:
            await self._grow(self._first, unsent)
            yield b"".join(unsent)
            unsent.clear()
            async for batch in self._updates:
                await self._grow(batch, unsent)
                yield b"".join(unsent)
                unsent.clear()
            last = [sse.event(completion.usage_chunk(self._turns))] if self._asked.include_usage else []
            yield b"".join([*last, sse.DONE])
        except IsoglossError as error:
            _log.error("%s: %s", type(error).__name__, error)
            yield b"".join([*unsent, sse.event({"error": error_body(error)})])
        except Exception:
            _log.exception("A stream failed")
            yield b"".join([*unsent, sse.event({"error": defect_body()})])
        finally:
            await self.close()

    async def _grow(self, batch: Batch, unsent: list[bytes]) -> None:
        for index, update in batch:
            events = self._completion.grown(index, update)
            if isinstance(update.event, Finish) and self._completion.is_over:
                await self._keep()  # before the client is told that it is there
            unsent += events

    async def close(self) -> None:
        """Stop the generation if it is still running."""
        await self._updates.aclose()

    async def _keep(self) -> None:
        whole = self._completion.whole(self._turns)
        if self._service.options.log_content:
            _log.info("completion", extra={"fields": {"request": self._body, "answer": whole}})
        if self._asked.store:
            await self._service.state.completions.add(self._owner, whole, _kept_messages(self._body))


def _kept_messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    kept = []
    for message in body["messages"]:
        content = message.get("content")
        is_parts = isinstance(content, list)
        text = "".join(part.get("text") or "" for part in content) if is_parts else content
        kept.append({**message, "id": new_id("msg_"), "content": text, "content_parts": content if is_parts else None})
    return kept


def _metadata(query: Mapping[str, str]) -> dict[str, str]:
    """``metadata[KEY]=VALUE`` of a query string."""
    entries = {match[1]: value for name, value in query.items() if (match := _METADATA_QUERY.fullmatch(name))}
    for value in (*entries, *entries.values()):
        if "\0" in value:
            raise RequestError("Expected metadata without NUL", pointer="/metadata", code="invalid_value")
    return entries


def _found(value: Any, completion_id: str) -> Any:
    if value is None:
        raise _no_completion(completion_id)
    return value


def _no_completion(completion_id: str) -> NotFoundError:
    return NotFoundError(f"Chat completion with id '{completion_id}' not found.", code="not_found")
