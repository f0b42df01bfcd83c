"""``POST /v1/chat/completions``."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence

from fastapi import APIRouter, Request, Response

from isogloss.chat import Turn, Update
from isogloss.errors import IsoglossError
from isogloss.server import sse
from isogloss.server.chat_request import read_chat_request
from isogloss.server.chat_response import Completion
from isogloss.server.errors import defect_body, error_body, json_response
from isogloss.server.generation import updates_of, while_connected
from isogloss.server.request_body import read_body
from isogloss.server.service import Service

_log = logging.getLogger("isogloss.server")


def chat_completions(service: Service) -> APIRouter:
    router = APIRouter()

    @router.post("/v1/chat/completions")
    async def create(request: Request) -> Response:
        body = await read_body(request, service.max_body_bytes)
        model = await service.served_model(body.get("model"))
        asked = await asyncio.to_thread(read_chat_request, body)
        turns = [service.chat.stream(asked.conversation, sampling) for sampling in asked.samplings]
        completion = Completion(asked, model)
        updates = updates_of(turns)
        if not asked.stream:
            return await while_connected(request, _whole(completion, turns, updates))
        first = await while_connected(request, anext(updates))
        return sse.EventStream(_events(completion, turns, first, updates))

    return router


async def _whole(
    completion: Completion, turns: Sequence[Turn], updates: AsyncGenerator[tuple[int, Update], None]
) -> Response:
    async for index, update in updates:
        completion.add(index, update)
    return json_response(completion.whole(turns))


async def _events(
    completion: Completion,
    turns: Sequence[Turn],
    first: tuple[int, Update],
    updates: AsyncGenerator[tuple[int, Update], None],
) -> AsyncGenerator[bytes, None]:
    """The stream. What fails once it has begun is told in it, as its last event."""
    try:
        for choice in completion.choices:
            yield sse.event(completion.chunk(choice.opening()))
        for delta in completion.add(*first):
            yield sse.event(completion.chunk(delta))
        async for index, update in updates:
            for delta in completion.add(index, update):
                yield sse.event(completion.chunk(delta))
        if completion.request.include_usage:
            yield sse.event(completion.usage_chunk(turns))
        yield sse.DONE
    except IsoglossError as error:
        _log.error("%s: %s", type(error).__name__, error)
        yield sse.event({"error": error_body(error)})
    except Exception:
        _log.exception("A stream failed")
        yield sse.event({"error": defect_body()})
    finally:
        await updates.aclose()
