"""``GET /v1/models``, ``GET /v1/models/{id}`` and ``GET /health``."""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter, Response

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


def health(service: Service) -> APIRouter:
    router = APIRouter()

    @router.get("/health")
    async def check() -> Response:
        await service.chat.health()
        return json_response({"status": "ok"})

    return router
