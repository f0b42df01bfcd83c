"""What a chat endpoint is asked: OpenAI's chat completion request, with tools told in-band or natively."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from isogloss.engines._protocol import GenerationRequest, Sampling
from isogloss.errors import EngineCapabilityError
from isogloss.messages import (
    AssistantMessage,
    Conversation,
    DeveloperMessage,
    Message,
    ResponseFormat,
    SystemMessage,
    Tool,
    ToolChoice,
    ToolMessage,
)

MOST_STOPS = 4
"""How many stop strings OpenAI's API takes."""

_NOT_OF_THE_API = ("top_k", "min_p", "repetition_penalty")


def chat_request(request: GenerationRequest, model: str, limit_field: str) -> dict[str, Any]:
    """The body without the options of the endpoint. Raises `EngineCapabilityError`."""
    body: dict[str, Any] = {"model": model, "stream": True, "stream_options": {"include_usage": True}}
    if request.conversation is not None:
        body |= _conversation(request.conversation)
    elif request.messages is not None:
        body["messages"] = list(request.messages)
    else:
        raise EngineCapabilityError("The engine `chat` takes messages, not a prompt")
    return body | _sampling(request.sampling, limit_field)


def _sampling(sampling: Sampling, limit_field: str) -> dict[str, Any]:
    for name in _NOT_OF_THE_API:
        if getattr(sampling, name) is not None:
            raise EngineCapabilityError(f"The engine `chat` does not take `{name}`: OpenAI's API has no such field")
    fields = {
        limit_field: sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "stop": list(sampling.stop[:MOST_STOPS]) or None,
        "logprobs": None if sampling.logprobs is None else True,
        "top_logprobs": sampling.logprobs or None,
        "logit_bias": {str(token): bias for token, bias in sampling.logit_bias.items()} or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _conversation(conversation: Conversation) -> dict[str, Any]:
    body: dict[str, Any] = {"messages": [_message(message) for message in conversation.messages]}
    if conversation.tools:
        body["tools"] = list(_tools(conversation.tools))
        body["tool_choice"] = _choice(ToolChoice.of(conversation.tool_choice), conversation.tools)
        if not conversation.parallel_tool_calls:
            body["parallel_tool_calls"] = False
    if conversation.response_format is not None and conversation.response_format.kind != "text":
        body["response_format"] = _format(conversation.response_format)
    if conversation.reasoning_effort is not None:
        body["reasoning_effort"] = conversation.reasoning_effort
    return body


def _message(message: Message) -> dict[str, Any]:
    match message:
        case ToolMessage():
            return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
        case AssistantMessage():
            return _assistant(message)
        case SystemMessage() | DeveloperMessage():
            return {"role": "system", "content": message.text}
    return {"role": "user", "content": message.text}


def _assistant(message: AssistantMessage) -> dict[str, Any]:
    said: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    if message.refusal:
        said["refusal"] = message.refusal
    if message.tool_calls:
        said["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": msgspec.json.encode(call.arguments).decode()},
            }
            for call in message.tool_calls
        ]
    elif not message.refusal:
        said["content"] = message.text
    return said


def _tools(tools: Iterable[Tool]) -> Iterable[dict[str, Any]]:
    """A custom tool is a function of one text: few endpoints have the other kind."""
    for tool in tools:
        function: dict[str, Any] = {"name": tool.name, "parameters": tool.parameters}
        if tool.description:
            function["description"] = tool.description
        if tool.strict:
            function["strict"] = True
        yield {"type": "function", "function": function}


def _choice(choice: ToolChoice, tools: Iterable[Tool]) -> str | Mapping[str, Any]:
    if choice.names is None:
        return choice.mode
    named = [{"type": "function", "function": {"name": tool.name}} for tool in choice.allowed(tools)]
    if len(named) == 1 and choice.mode == "required":
        return named[0]
    return {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": named}}


def _format(form: ResponseFormat) -> dict[str, Any]:
    if form.kind == "json_object" or form.schema is None:
        return {"type": "json_object"}
    schema: dict[str, Any] = {"name": form.name, "schema": form.schema, "strict": form.strict}
    if form.description:
        schema["description"] = form.description
    return {"type": "json_schema", "json_schema": schema}
