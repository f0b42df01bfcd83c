"""``GET /openapi.json``: what can be asked, and what is answered, in OpenAPI 3.1.

What requests may say is written here, as far as this server reads it; the shapes of answers are those of the `openai`
package, whose types clients check them against.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from fastapi import APIRouter, Response

import isogloss
from isogloss.openai_chat import REASONING_EFFORTS
from isogloss.server.errors import json_response
from isogloss.server.paging import MOST_LISTED
from isogloss.server.request_fields import (
    LONGEST_KEY,
    LONGEST_VALUE,
    MOST_CHOICES,
    MOST_PAIRS,
    MOST_STOPS,
    MOST_TOP_LOGPROBS,
    VERBOSITIES,
)
from isogloss.server.service import Service

Schema = dict[str, Any]


def openapi(service: Service) -> APIRouter:
    router = APIRouter()

    @router.get("/openapi.json")
    async def description() -> Response:
        return json_response(await asyncio.to_thread(openapi_description, service.engine_options))

    return router


# --- what requests may say --------------------------------------------------------------------------------------------

_TEXT: Schema = {"type": "string"}
_FLAG: Schema = {"type": "boolean"}
_OBJECT: Schema = {"type": "object"}


def _number(minimum: float, maximum: float) -> Schema:
    return {"type": "number", "minimum": minimum, "maximum": maximum}


def _integer(minimum: int, maximum: int | None = None) -> Schema:
    return {"type": "integer", "minimum": minimum} | ({} if maximum is None else {"maximum": maximum})


def _list(items: Schema, **bounds: int) -> Schema:
    return {"type": "array", "items": items, **bounds}


def _fields(required: tuple[str, ...] = (), /, **properties: Schema) -> Schema:
    """An object without other members than these; those that are not required may be null."""
    named = {name: schema if name in required else _or_null(schema) for name, schema in properties.items()}
    return {"type": "object", "properties": named, "required": list(required), "additionalProperties": False}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


_REPETITION_PENALTY: Schema = {"type": "number", "exclusiveMinimum": 0, "maximum": 10}
_METADATA: Schema = {
    "type": "object",
    "maxProperties": MOST_PAIRS,
    "propertyNames": {"maxLength": LONGEST_KEY},
    "additionalProperties": {"type": "string", "maxLength": LONGEST_VALUE},
}
_TUNING: dict[str, Schema] = {
    "metadata": _METADATA,
    "prompt_cache_key": _TEXT,
    "prompt_cache_options": _OBJECT,
    "prompt_cache_retention": _TEXT,
    "safety_identifier": _TEXT,
    "service_tier": _TEXT,
    "store": _FLAG,
    "user": _TEXT,
}
_SAMPLING: dict[str, Schema] = {
    "temperature": _number(0, 2),
    "top_p": _number(0, 1),
    "top_logprobs": _integer(0, MOST_TOP_LOGPROBS),
    "top_k": _integer(0, 2**31 - 1),
    "min_p": _number(0, 1),
    "repeat_penalty": _REPETITION_PENALTY,
    "repetition_penalty": _REPETITION_PENALTY,
    "seed": {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
    "parallel_tool_calls": _FLAG,
    "tools": _list(_OBJECT),
    "tool_choice": {"type": ["string", "object"]},
    "stream": _FLAG,
}
_CHAT = _fields(
    ("messages", "model"),
    messages=_list(
        {
            "type": "object",
            "properties": {
                "role": {"enum": ["system", "developer", "user", "assistant", "tool"]},
                "content": {"type": ["string", "array", "null"]},
            },
            "required": ["role"],
        },
        minItems=1,
    ),
    model=_TEXT,
    frequency_penalty=_number(-2, 2),
    presence_penalty=_number(-2, 2),
    logit_bias={
        "type": "object",
        "propertyNames": {"pattern": "^[0-9]+$"},
        "additionalProperties": _number(-100, 100),
    },
    logprobs=_FLAG,
    max_completion_tokens=_integer(1),
    max_tokens=_integer(1),
    modalities=_list({"const": "text"}),
    n=_integer(1, MOST_CHOICES),
    prediction=_OBJECT,
    reasoning_effort={"enum": list(REASONING_EFFORTS)},
    response_format=_OBJECT,
    stop={
        "anyOf": [{"type": "string", "minLength": 1}, _list({"type": "string", "minLength": 1}, maxItems=MOST_STOPS)]
    },
    stream_options=_OBJECT,
    verbosity={"enum": list(VERBOSITIES)},
    **_TUNING,
    **_SAMPLING,
)
_INPUT: Schema = {"anyOf": [_TEXT, _list(_OBJECT)]}
_RESPONSE = _fields(
    ("input", "model"),
    input=_INPUT,
    model=_TEXT,
    background=_FLAG,
    conversation={"type": ["string", "object"]},
    include=_list(_TEXT),
    instructions=_TEXT,
    max_output_tokens=_integer(1),
    max_tool_calls=_integer(1),
    previous_response_id=_TEXT,
    reasoning=_OBJECT,
    stream_options=_OBJECT,
    text=_OBJECT,
    truncation={"enum": ["auto", "disabled"]},
    **_TUNING,
    **_SAMPLING,
)
_COMPACT = _fields(
    ("model",),
    model=_TEXT,
    input=_INPUT,
    instructions=_TEXT,
    previous_response_id=_TEXT,
    prompt_cache_key=_TEXT,
    service_tier=_TEXT,
)
_CONVERSATION = _fields(items=_list(_OBJECT, minItems=1, maxItems=20), metadata=_METADATA)
_ITEMS = _fields(("items",), items=_list(_OBJECT, minItems=1, maxItems=20))
_UPDATE = _fields(metadata=_METADATA)
_ERROR: Schema = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "message": _TEXT,
                "type": _TEXT,
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
            "required": ["message", "type", "param", "code"],
        }
    },
    "required": ["error"],
}

_PAGE = ("limit", "order", "after")
_QUERY: dict[str, Schema] = {
    "limit": _integer(1, MOST_LISTED),
    "order": {"enum": ["asc", "desc"]},
    "after": _TEXT,
    "model": _TEXT,
    "stream": _FLAG,
    "starting_after": _integer(0, 999_999_999),
}


class _Operation(NamedTuple):
    """What can be asked. ``answer`` names a type of the `openai` package, ``body`` is what the request says."""

    method: str
    path: str
    name: str
    answer: str
    body: Schema | None = None
    query: tuple[str, ...] = ()


_COMPLETION = "/v1/chat/completions/{completion_id}"
_ONE_RESPONSE = "/v1/responses/{response_id}"
_ONE_CONVERSATION = "/v1/conversations/{conversation_id}"
_OPERATIONS = (
    _Operation("post", "/v1/chat/completions", "createChatCompletion", "ChatCompletion", _CHAT),
    _Operation("get", "/v1/chat/completions", "listChatCompletions", "list", None, (*_PAGE, "model")),
    _Operation("get", _COMPLETION, "getChatCompletion", "ChatCompletion"),
    _Operation("post", _COMPLETION, "updateChatCompletion", "ChatCompletion", _UPDATE),
    _Operation("delete", _COMPLETION, "deleteChatCompletion", "ChatCompletionDeleted"),
    _Operation("get", _COMPLETION + "/messages", "getChatCompletionMessages", "list", None, _PAGE),
    _Operation("post", "/v1/responses", "createResponse", "Response", _RESPONSE),
    _Operation("post", "/v1/responses/compact", "compactConversation", "CompactedResponse", _COMPACT),
    _Operation("post", "/v1/responses/input_tokens", "countInputTokens", "InputTokenCountResponse", _RESPONSE),
    _Operation("get", _ONE_RESPONSE, "getResponse", "Response", None, ("stream", "starting_after")),
    _Operation("delete", _ONE_RESPONSE, "deleteResponse", "deleted"),
    _Operation("post", _ONE_RESPONSE + "/cancel", "cancelResponse", "Response"),
    _Operation("get", _ONE_RESPONSE + "/input_items", "listInputItems", "list", None, _PAGE),
    _Operation("post", "/v1/conversations", "createConversation", "Conversation", _CONVERSATION),
    _Operation("get", _ONE_CONVERSATION, "getConversation", "Conversation"),
    _Operation("post", _ONE_CONVERSATION, "updateConversation", "Conversation", _UPDATE),
    _Operation("delete", _ONE_CONVERSATION, "deleteConversation", "ConversationDeletedResource"),
    _Operation("post", _ONE_CONVERSATION + "/items", "createConversationItems", "list", _ITEMS),
    _Operation("get", _ONE_CONVERSATION + "/items", "listConversationItems", "list", None, _PAGE),
    _Operation("get", _ONE_CONVERSATION + "/items/{item_id}", "getConversationItem", "item"),
    _Operation("delete", _ONE_CONVERSATION + "/items/{item_id}", "deleteConversationItem", "Conversation"),
    _Operation("get", "/v1/models", "listModels", "list"),
    _Operation("get", "/v1/models/{name}", "getModel", "Model"),
    _Operation("get", "/health", "health", "status"),
    _Operation("get", "/ready", "ready", "status"),
)
_ANSWERS: dict[str, Schema] = {
    "list": {
        "type": "object",
        "properties": {"object": {"const": "list"}, "data": _list(_OBJECT)},
        "required": ["object", "data"],
    },
    "deleted": {"type": "object", "properties": {"deleted": {"const": True}}, "required": ["id", "object", "deleted"]},
    "item": {"type": "object", "required": ["id", "type"]},
    "status": {"type": "object", "required": ["status"]},
}
_STREAMED = frozenset({"createChatCompletion", "createResponse", "getResponse"})
_GENERATING = frozenset({"createChatCompletion", "createResponse", "countInputTokens"})
_FAILURES = {
    "400": "The request is wrong.",
    "401": "The key is missing or wrong.",
    "404": "There is no such thing.",
    "413": "The request is too large.",
    "415": "The body is compressed.",
    "429": "The key has used up what it may ask for.",
    "502": "The model's answer does not hold what was asked, or the engine failed.",
    "503": "The engine or the database cannot be reached, or too much is asked for.",
    "504": "The engine did not answer in time.",
}


@lru_cache(maxsize=1)
def openapi_description(engine_options: frozenset[str] = frozenset()) -> Schema:
    """The whole description, with the engine's own options. Made once: the package's types are many."""
    paths: dict[str, Schema] = {}
    for operation in _OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _described(operation, engine_options)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Isogloss", "version": isogloss.__version__},
        "paths": paths,
        "components": {
            "schemas": {**_of_the_package(), "Error": _ERROR, **_ANSWERS},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}, {}],
    }


def _described(operation: _Operation, engine_options: frozenset[str]) -> Schema:
    answers = {"application/json": {"schema": _reference(operation.answer)}}
    if operation.name in _STREAMED:
        answers["text/event-stream"] = {"schema": _TEXT}
    described: Schema = {
        "operationId": operation.name,
        "parameters": [*_path_parameters(operation.path), *map(_query_parameter, operation.query)],
        "responses": {
            "200": {"description": "The answer.", "content": answers},
            **{
                status: {"description": told, "content": {"application/json": {"schema": _reference("Error")}}}
                for status, told in _FAILURES.items()
            },
        },
    }
    if operation.body is not None:
        body = _with_options(operation.body, engine_options) if operation.name in _GENERATING else operation.body
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return described


def _with_options(body: Schema, engine_options: frozenset[str]) -> Schema:
    """What a request says, the engine's own options included, whose values the engine checks."""
    own: dict[str, Schema] = {name: {"description": "Of the engine."} for name in sorted(engine_options)}
    return {**body, "properties": {**own, **body["properties"]}}


def _path_parameters(path: str) -> list[Schema]:
    names = [part.strip("{}") for part in path.split("/") if part.startswith("{")]
    return [{"name": name, "in": "path", "required": True, "schema": _TEXT} for name in names]


def _query_parameter(name: str) -> Schema:
    return {"name": name, "in": "query", "schema": _QUERY[name]}


def _reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _of_the_package() -> Mapping[str, Schema]:
    """The types of answers, and all that they are made of."""
    from openai.types import Model, chat, conversations, responses
    from pydantic.json_schema import models_json_schema

    types = (
        *(Model, chat.ChatCompletion, chat.ChatCompletionDeleted),
        *(responses.Response, responses.CompactedResponse, responses.InputTokenCountResponse),
        *(conversations.Conversation, conversations.ConversationDeletedResource),
    )
    references, made = models_json_schema(
        [(kind, "validation") for kind in types], ref_template="#/components/schemas/{model}"
    )
    schemas: dict[str, Schema] = made["$defs"]
    for kind in types:  # where two types have the same name, both were given longer ones
        schemas.setdefault(kind.__name__, references[kind, "validation"])
    return schemas
