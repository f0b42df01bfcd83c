"""Every dialect's scanner as a tool parser and a reasoning parser of vLLM.

vLLM finds `register` by the entry-point group ``vllm.general_plugins``; then its server takes, for any dialect,

    --enable-auto-tool-choice --tool-call-parser isogloss_hermes --reasoning-parser isogloss_hermes

The interfaces are those of ``tool_parsers/abstract_tool_parser.py`` and ``reasoning/abs_reasoning_parsers.py`` in vLLM
0.32: the parsers keep their own state and are told only what is new, which takes linear time.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from isogloss.dialects import dialect_names, get_dialect
from isogloss.integrations._vllm_parsers import DialectReasoningParser, DialectToolParser

PREFIX = "isogloss_"


def register() -> None:
    """Make a tool parser and a reasoning parser of each dialect known to vLLM."""
    tools: Any = import_module("vllm.tool_parsers").ToolParserManager
    reasoning: Any = import_module("vllm.reasoning").ReasoningParserManager
    for name in dialect_names():
        tools.register_lazy_module(PREFIX + name, __name__, f"tool_parser_{name}")
        reasoning.register_lazy_module(PREFIX + name, __name__, f"reasoning_parser_{name}")


def tool_parser(name: str) -> type[Any]:
    """The class of vLLM's `ToolParser` that reads a dialect. Raises `UnknownDialectError`."""
    return _made(f"tool_parser_{name}", name, DialectToolParser, import_module("vllm.tool_parsers").ToolParser)


def reasoning_parser(name: str) -> type[Any]:
    """The class of vLLM's `ReasoningParser` that reads a dialect. Raises `UnknownDialectError`."""
    base = import_module("vllm.reasoning").ReasoningParser
    return _made(f"reasoning_parser_{name}", name, DialectReasoningParser, base)


def _made(title: str, name: str, mixin: type[Any], base: type[Any]) -> type[Any]:
    attributes = {
        "__module__": __name__,
        "dialect": get_dialect(name),
        "protocol": import_module("vllm.entrypoints.generate.base.protocol"),
    }
    return type(title, (mixin, base), attributes)


def __getattr__(title: str) -> Any:
    """The classes by the names under which they are registered."""
    for prefix, make in (("tool_parser_", tool_parser), ("reasoning_parser_", reasoning_parser)):
        if title.startswith(prefix) and (name := title.removeprefix(prefix)) in dialect_names():
            globals()[title] = made = make(name)
            return made
    raise AttributeError(f"module {__name__!r} has no attribute {title!r}")
