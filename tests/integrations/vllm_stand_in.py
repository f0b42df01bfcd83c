"""As much of vLLM's interfaces as the parsers need: its messages, its base classes, its registries, and how its server
drives a tool parser and a reasoning parser that keep their own state (``vllm/parser/abstract_parser.py``)."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar

import pytest


class Message:
    """A pydantic model, nearly."""

    defaults: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, **fields: Any) -> None:
        for name, value in {**self.defaults, **fields}.items():
            setattr(self, name, value)


class FunctionCall(Message):
    defaults: ClassVar = {"id": None}


class ToolCall(Message):
    pass


class DeltaFunctionCall(Message):
    defaults: ClassVar = {"name": None, "arguments": None}


class DeltaToolCall(Message):
    defaults: ClassVar = {"id": None, "type": None, "function": None}


class DeltaMessage(Message):
    defaults: ClassVar = {"content": None, "reasoning": None, "tool_calls": ()}


class ExtractedToolCallInformation(Message):
    pass


class ToolParam(Message):
    def model_dump(self, exclude_none: bool) -> dict[str, Any]:
        assert exclude_none
        return vars(self)


class ToolParser:
    engine_based_streaming = False

    def __init__(self, tokenizer: Any, tools: list[Any] | None = None) -> None:
        self.prev_tool_call_arr: list[dict[str, Any]] = []
        self.streamed_args_for_tool: list[str] = []
        self.model_tokenizer = tokenizer
        self.tools = tools or []


class ReasoningParser:
    engine_based_streaming = False

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        self.model_tokenizer = tokenizer


class Manager:
    def __init__(self) -> None:
        self.lazy: dict[str, tuple[str, str]] = {}

    def register_lazy_module(self, name: str, module_path: str, class_name: str) -> None:
        self.lazy[name] = (module_path, class_name)

    def get(self, name: str) -> Any:
        module, title = self.lazy[name]
        return getattr(import_module(module), title)


class Tokenizer:
    """Characters as ids."""

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(map(chr, ids))


def install(monkeypatch: pytest.MonkeyPatch) -> tuple[Manager, Manager]:
    """Put the stand-in where vLLM would be; the registries of tool parsers and of reasoning parsers."""
    here = sys.modules[__name__]
    tools, reasoning = Manager(), Manager()
    modules = {
        "vllm": {},
        "vllm.tool_parsers": {"ToolParser": ToolParser, "ToolParserManager": tools},
        "vllm.reasoning": {"ReasoningParser": ReasoningParser, "ReasoningParserManager": reasoning},
        "vllm.entrypoints": {},
        "vllm.entrypoints.generate": {},
        "vllm.entrypoints.generate.base": {},
        "vllm.entrypoints.generate.base.protocol": vars(here),
    }
    for name, members in modules.items():
        module = ModuleType(name)
        vars(module).update({key: value for key, value in members.items() if not key.startswith("__")})
        monkeypatch.setitem(sys.modules, name, module)
    return tools, reasoning


class ServerParser:
    """What vLLM's server does with the two of them, for one answer."""

    def __init__(self, tool_class: type[Any] | None, reasoning_class: type[Any] | None, tools: list[Any]) -> None:
        self.reasoning = None if reasoning_class is None else reasoning_class(Tokenizer())
        self.tool = None if tool_class is None else tool_class(Tokenizer(), tools)
        if self.reasoning is None and self.tool is not None:
            self.tool.skip_reasoning_parsing = True
        self.in_reasoning = self.reasoning is not None
        self.is_first = True

    def parse(self, output: str) -> tuple[str | None, str | None, list[Any]]:
        reasoning, content = None, output
        if self.reasoning is not None:
            reasoning, content = self.reasoning.extract_reasoning(output, None)
        if self.tool is None:
            return reasoning, content, []
        found = self.tool.extract_tool_calls(content or "", None)
        return reasoning, found.content, found.tool_calls

    def parse_delta(self, text: str, prompt: str, finished: bool) -> list[Any]:
        if self.is_first and self.reasoning is not None:
            self.in_reasoning = not self.reasoning.is_reasoning_end([*map(ord, prompt)])
            if self.in_reasoning:
                self.reasoning.adjust_initial_state_from_prompt([*map(ord, prompt)])
        self.is_first = False
        said = []
        if self.in_reasoning:
            delta = self.reasoning.extract_reasoning_streaming("", text, text, [], [], [*map(ord, text)])
            if self.reasoning.has_engine_confirmed_reasoning_end():
                self.in_reasoning = False
                flushed = self.reasoning.finish_streaming()
                text = "".join((each and each.content) or "" for each in (delta, flushed))
                if delta is not None and self.tool is not None:
                    delta.content = None
            said.append(delta)
        elif self.tool is None:
            said.append(DeltaMessage(content=text))
        if not self.in_reasoning and self.tool is not None:
            said.append(self.tool.extract_tool_calls_streaming("", text, text, [], [], [], None))
        if finished:
            parsers = (self.reasoning if self.in_reasoning else None, self.tool)
            said += [parser.finish_streaming() for parser in parsers if parser is not None]
        return [delta for delta in said if delta is not None]
