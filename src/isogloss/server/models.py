"""``GET /v1/models``, ``GET /v1/models/{id}``, ``GET /health``, ``GET /ready`` and ``GET /metrics``."""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST

from isogloss.server.errors import json_response
from isogloss.server.service import Service


def models(service: Service) -> APIRouter:
    router = APIRouter()
    started = int(time.time())

    async def entry() -> dict[str, Any]:
        model = await service.model()
        entry = {"id": model.id, "object": "model", "created": started, "owned_by": "isogloss"}
        if model.context_length is not None:
            entry["max_model_len"] = model.context_length
        return entry

    @router.get("/v1/models")
    async def listed() -> Response:
        return json_response({"object": "list", "data": [await entry()]})

    @router.get("/v1/models/{name:path}")
    async def one(name: str) -> Response:
        await service.served_model(name)
        return json_response(await entry())

    return router


def operation(service: Service) -> APIRouter:
    """What those who run the server ask it. ``/health`` is about the engine, ``/ready`` about all that is needed."""
    router = APIRouter()

    @router.get("/health")
    async def health() -> Response:
        await service.chat.health()
        return json_response({"status": "ok"})

    @router.get("/ready")
    async def ready() -> Response:
        await service.chat.health()
        await service.state.check()
        return json_response({"status": "ok"})

    @router.get("/metrics")
    async def metrics() -> Response:
        return Response(service.metrics.text(), media_type=CONTENT_TYPE_LATEST)

    return router
