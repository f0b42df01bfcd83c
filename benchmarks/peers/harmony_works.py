"""The works of the harmony benchmark, for two packages of one interface: ``openai_harmony`` and its stand-in."""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from worker import Work, timed

TEXT = (
    "the quick brown fox jumps over a lazy dog weather Paris temperature function returns object value number string "
    'request response 🙂 Zürich naïve 日本語 def print(x): {"a": 1}'
)
WORDS = TEXT.split()
ENCODING = "HarmonyGptOss"

READERS: dict[str, Callable[[Any], object]] = {
    "nothing": lambda parser: None,
    "the delta": lambda parser: parser.last_content_delta,
    "delta, channel, recipient": lambda parser: (
        parser.last_content_delta,
        parser.current_channel,
        parser.current_recipient,
    ),
    "the whole text": lambda parser: parser.current_content,
}
"""What is read after each token."""


def words(count: int, chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=count))


def tool(module: Any, number: int, chance: random.Random) -> Any:
    properties = {
        f"p{position}": {"type": "string", "description": words(6, chance), "enum": ["a", "b"]}
        if position % 3 == 0
        else {"type": "number", "description": words(6, chance), "default": position}
        for position in range(5)
    }
    schema = {"type": "object", "properties": properties, "required": ["p0"]}
    return module.ToolDescription.new(f"tool_{number}", words(10, chance), schema)


def conversation(module: Any, messages: int, tools: int) -> Any:
    """System and developer message, then turns of user, reasoning, call, result and answer."""
    chance = random.Random(messages)
    role, message = module.Role, module.Message
    system = module.SystemContent.new().with_conversation_start_date("2026-01-01")
    developer = module.DeveloperContent.new().with_instructions(words(40, chance))
    if tools:
        system.with_browser_tool()
        developer.with_function_tools([tool(module, number, chance) for number in range(tools)])
    made = [
        message.from_role_and_content(role.SYSTEM, system),
        message.from_role_and_content(role.DEVELOPER, developer),
    ]
    while len(made) < messages:
        arguments = json.dumps({"p0": words(20, chance)})
        result = module.Author.new(role.TOOL, "functions.tool_1")
        made += [
            message.from_role_and_content(role.USER, words(60, chance)),
            message.from_role_and_content(role.ASSISTANT, words(80, chance)).with_channel("analysis"),
            message.from_role_and_content(role.ASSISTANT, arguments)
            .with_channel("commentary")
            .with_recipient("functions.tool_1")
            .with_content_type("<|constrain|>json"),
            message.from_author_and_content(result, words(60, chance)).with_channel("commentary"),
            message.from_role_and_content(role.ASSISTANT, words(80, chance)).with_channel("final"),
        ]
    return module.Conversation.from_messages(made[:messages])


def completion(encoding: Any, tokens: int) -> list[int]:
    """Reasoning and an answer, about that many tokens together."""
    text = encoding.encode(words(tokens, random.Random(tokens)))
    marked = [
        encoding.encode(f"{head}<|message|>", allowed_special="all")
        for head in ("<|channel|>analysis", "<|end|><|start|>assistant<|channel|>final")
    ]
    half = tokens // 2
    return [*marked[0], *text[:half], *marked[1], *text[half:tokens], 200002]


def digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def harmony_works(name: str) -> Mapping[str, Work]:
    """The works for the package of that name. ``vocabulary`` is the folder with the file of ordinary tokens."""

    @cache
    def loaded(vocabulary: str) -> tuple[Any, Any]:
        os.environ["TIKTOKEN_ENCODINGS_BASE"] = vocabulary
        module = import_module(name)
        return module, module.load_harmony_encoding(ENCODING)

    def render(vocabulary: str, messages: int, tools: int, times: int) -> dict[str, Any]:
        module, encoding = loaded(vocabulary)
        made = conversation(module, messages, tools)
        role = module.Role.ASSISTANT
        result = digest(encoding.render_conversation_for_completion(made, role))
        answer = timed(lambda: encoding.render_conversation_for_completion(made, role), times)
        return {**answer, "units": times, "result": result}

    def parse(vocabulary: str, size: int) -> dict[str, Any]:
        module, encoding = loaded(vocabulary)
        tokens = completion(encoding, size)

        def run() -> Any:
            parsed = encoding.parse_messages_from_completion_tokens(tokens, module.Role.ASSISTANT)
            return [message.to_dict() for message in parsed]

        return {**timed(run), "units": len(tokens), "result": digest(run())}

    def stream(vocabulary: str, size: int, reading: str) -> dict[str, Any]:
        module, encoding = loaded(vocabulary)
        tokens = completion(encoding, size)
        read = READERS[reading]
        parser = module.StreamableParser(encoding, module.Role.ASSISTANT)
        process = parser.process

        def run() -> None:
            for token in tokens:
                process(token)
                read(parser)

        answer = timed(run)
        return {**answer, "units": len(tokens), "result": digest(parser.messages[-1].content[0].text)}

    def load(vocabulary: str, times: int) -> dict[str, Any]:
        module, _ = loaded(vocabulary)
        return {**timed(lambda: module.load_harmony_encoding(ENCODING), times), "units": times, "result": ""}

    return {"harmony_load": load, "harmony_parse": parse, "harmony_render": render, "harmony_stream": stream}
