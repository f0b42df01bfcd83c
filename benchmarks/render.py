"""Rendering: CPU time for a conversation of 200 messages with 20 tools, as text and as token ids, per dialect."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from isogloss.dialects import dialect_names, get_dialect
from isogloss.messages import (
    AssistantMessage,
    Conversation,
    Message,
    SystemMessage,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from isogloss.tokenizers import o200k_harmony


def conversation(turns: int = 50, tools: int = 20) -> Conversation:
    """Four messages a turn: user, a call with reasoning, its result, the answer."""
    properties = {f"p{number}": {"type": "string", "description": "A parameter"} for number in range(5)}
    made = tuple(
        Tool(f"tool_{number}", "What it does", {"type": "object", "properties": properties}) for number in range(tools)
    )
    messages: list[Message] = [SystemMessage("Be of help.")]
    for number in range(turns):
        call = ToolCall(f"call_{number:024x}", "tool_3", {"p0": "a value", "p1": "another, <b>longer</b> one"})
        messages += [
            UserMessage("Please look it up, and tell me what you found. " * 4),
            AssistantMessage(reasoning="I should look it up first.", tool_calls=(call,)),
            ToolMessage(call.id, "tool_3", "A result of some length. " * 12),
            AssistantMessage("Here is what I found. " * 10),
        ]
    return Conversation(tuple(messages), made)


def milliseconds(work: Callable[[], object], repeats: int = 7) -> float:
    """CPU milliseconds, the best of several runs."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best * 1e3


def main(names: Sequence[str]) -> None:
    """Print the table."""
    asked = conversation()
    tokenizer = o200k_harmony()
    tokenizer.encode("warm")
    print(f"{len(asked.messages)} messages, {len(asked.tools)} tools")
    print("| dialect | characters | text, ms | tokens | token ids, ms |")
    print("|---|---|---|---|---|")
    for name in names or dialect_names():
        dialect = get_dialect(name)
        prompt = dialect.render(asked)
        ids = prompt.tokens(tokenizer)
        text = milliseconds(lambda dialect=dialect: dialect.render(asked).text)  # type: ignore[misc]
        tokens = milliseconds(lambda dialect=dialect: dialect.render(asked).tokens(tokenizer))  # type: ignore[misc]
        print(f"| {name} | {len(prompt.text):,} | {text:.1f} | {len(ids):,} | {tokens:.1f} |", flush=True)
