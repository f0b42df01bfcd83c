"""The tools that models of the family were trained with, in the words they were trained on.

These texts are part of the prompt format, so they are fixed to the byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from isogloss.messages import Tool
from isogloss.schema.typescript import DescribedTool


class Function(NamedTuple):
    """A tool as a prompt lists it: ``parameters`` is a JSON Schema, ``None`` for a tool that takes nothing."""

    name: str
    description: str
    parameters: dict[str, Any] | None


class Namespace(NamedTuple):
    """Functions under one name."""

    name: str
    description: str | None
    tools: Sequence[DescribedTool] = ()


_NUMBER = {"type": "number", "default": -1}

BROWSER = Namespace(
    "browser",
    "Tool for browsing.\n"
    "The `cursor` appears in brackets before each browsing display: `[{cursor}]`.\n"
    "Cite information from the tool using the following format:\n"
    "`【{cursor}†L{line_start}(-L{line_end})?】`, for example: `【6†L9-L11】` or `【8†L3】`.\n"
    "Do not quote more than 10 words directly from the tool output.\n"
    "sources=web (default: web)",
    (
        Function(
            "search",
            "Searches for information related to `query` and displays `topn` results.",
            {
                "type": "object",
                "properties": {
                    "query": {"type": "string"},
                    "topn": {"type": "number", "default": 10},
                    "source": {"type": "string"},
                },
                "required": ["query"],
            },
        ),
        Function(
            "open",
            "Opens the link `id` from the page indicated by `cursor` starting at line number `loc`, "
            "showing `num_lines` lines.\n"
            "Valid link ids are displayed with the formatting: `【{id}†.*】`.\n"
            "If `cursor` is not provided, the most recent page is implied.\n"
            "If `id` is a string, it is treated as a fully qualified URL associated with `source`.\n"
            "If `loc` is not provided, the viewport will be positioned at the beginning of the document or centered on "
            "the most relevant passage, if available.\n"
            "Use this function without `id` to scroll to a new location of an opened page.",
            {
                "type": "object",
                "properties": {
                    "id": {"type": ["number", "string"], "default": -1},
                    "cursor": _NUMBER,
                    "loc": _NUMBER,
                    "num_lines": _NUMBER,
                    "view_source": {"type": "boolean", "default": False},
                    "source": {"type": "string"},
                },
            },
        ),
        Function(
            "find",
            "Finds exact matches of `pattern` in the current page, or the page given by `cursor`.",
            {
                "type": "object",
                "properties": {"pattern": {"type": "string"}, "cursor": _NUMBER},
                "required": ["pattern"],
            },
        ),
    ),
)

PYTHON = Namespace(
    "python",
    "Use this tool to execute Python code in your chain of thought. The code will not be shown to the user. This tool "
    "should be used for internal reasoning, but not for code that is intended to be visible to the user (e.g. when "
    "creating plots, tables, or files).\n\n"
    "When you send a message containing Python code to python, it will be executed in a stateful Jupyter notebook "
    "environment. python will respond with the output of the execution or time out after 120.0 seconds. The drive at "
    "'/mnt/data' can be used to save and persist user files. Internet access for this session is UNKNOWN. Depends on "
    "the cluster.",
)

_BROWSER_NAMES = frozenset(f"browser.{function.name}" for function in BROWSER.tools)


def is_builtin(name: str, tool: Tool | None) -> bool:
    """Whether a tool of that name is one of these. Code goes to ``python`` as it is, so only a custom tool can be it;
    a function of the same name is the caller's own."""
    if name == PYTHON.name:
        return tool is None or tool.is_custom
    return name in _BROWSER_NAMES


def builtin_namespaces(tools: Sequence[Tool]) -> list[Namespace]:
    """What the prompt says of those of ``tools`` that are built in."""
    found = {tool.name for tool in tools if is_builtin(tool.name, tool)}
    functions = tuple(function for function in BROWSER.tools if f"browser.{function.name}" in found)
    namespaces = [BROWSER._replace(tools=functions)] if functions else []
    return [*namespaces, PYTHON] if PYTHON.name in found else namespaces
