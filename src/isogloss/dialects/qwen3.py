"""qwen3: JSON between ``<tool_call>`` tags and reasoning between ``<think>`` tags (Qwen3 dense, MoE and VL).

    turn      = [ "<think>" text "</think>" ] { text | call } "<|im_end|>"
    call      = "<tool_call>" object "</tool_call>"
    object    = {"name": string, "arguments": object}
    result    = "<tool_response>" text "</tool_response>"      in a user turn

Sample::

    <think>
    I need the weather.
    </think>

    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Paris"}}
    </tool_call>

Reads the ``<function=...>`` form of the later line too. Source: the chat template of Qwen/Qwen3-8B.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from isogloss.dialects._function_calls import BEGINNINGS, PATTERNS
from isogloss.dialects._markers import Markers
from isogloss.dialects._tool_call_tags import ToolCallTagScanner
from isogloss.dialects.hermes import MARKERS as HERMES
from isogloss.dialects.hermes import Hermes
from isogloss.messages import Tool

MARKERS = Markers(
    {**HERMES.kinds, "bare_call": "<function="}, special=HERMES.special, patterns=PATTERNS, first=BEGINNINGS
)


class Qwen3(Hermes):
    """JSON between tool_call tags, reasoning between think tags."""

    name = "qwen3"
    title = "Qwen3 (dense, MoE, VL)"
    markers = MARKERS
    model_ids = r"qwen-?3(?!.*coder|\.?\d)"
    templates = r"\A(?=[\s\S]*<tool_call>)(?=[\s\S]*<think>)(?![\s\S]*(?:<function=|<arg_key>|\]minimax\[))"
    results_role: ClassVar[str] = "user"

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> ToolCallTagScanner:
        return ToolCallTagScanner(MARKERS, tools, starts_in, control)
