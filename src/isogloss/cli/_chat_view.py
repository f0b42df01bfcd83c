"""A turn as it comes, for a reader: text plain, reasoning dimmed, calls in a frame."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console

from isogloss.cli._terminal_text import harmless

_FRAME, _PLAIN_FRAME = ("╭─ ", "│ ", "╰─"), ("+- ", "| ", "+-")


class TurnView:
    """Shows the deltas of one turn, and adds them up to the message that it is.

    Where nobody watches, reasoning goes to ``aside``, so that what a pipe carries on is the answer.
    """

    def __init__(self, console: Console, aside: Console) -> None:
        self._console = console
        self._aside = aside if not console.is_terminal else console
        self._frame = _PLAIN_FRAME if console.options.ascii_only else _FRAME
        self._state = ""
        self._said: dict[str, list[str]] = {"content": [], "reasoning_content": [], "refusal": []}
        self._calls: dict[int, dict[str, Any]] = {}
        self.finish: str | None = None

    def show(self, chunk: dict[str, Any]) -> None:
        """What one chunk of a Chat Completions stream brings."""
        for choice in chunk.get("choices", ()):
            delta = choice.get("delta") or {}
            thought = delta.get("reasoning_content") or delta.get("reasoning") or ""
            self._say("reasoning_content", thought, "dim italic")
            self._say("content", delta.get("content") or "", None)
            self._say("refusal", delta.get("refusal") or "", "yellow")
            for part in delta.get("tool_calls") or ():
                self._call(part)
            self.finish = choice.get("finish_reason") or self.finish

    def end(self) -> None:
        """The turn is over, or nobody waits for the rest of it."""
        self._enter("")
        if self.finish not in (None, "stop", "tool_calls"):
            self._console.out(f"(ended: {self.finish})", style="dim", highlight=False)

    def message(self) -> dict[str, Any] | None:
        """The message as the API takes it back; nothing where nothing was said."""
        said = {name: "".join(parts) for name, parts in self._said.items() if parts}
        if not said and not self._calls:
            return None
        message: dict[str, Any] = {"role": "assistant", "content": "", **said}
        calls = [call for call in self._calls.values() if _is_whole(call)]
        if calls and self.finish is not None:
            message["tool_calls"] = calls
        return message

    def _say(self, name: str, text: str, style: str | None) -> None:
        if not text:
            return
        self._said[name].append(text)
        self._enter(name)
        console = self._aside if name == "reasoning_content" else self._console
        console.out(harmless(text), style=style, end="", highlight=False)

    def _call(self, part: dict[str, Any]) -> None:
        kind = "custom" if part.get("custom") else "function"
        body = part.get(kind) or {}
        index = part.get("index", 0)
        text = body.get("arguments") or body.get("input") or ""
        if index not in self._calls:
            name = body.get("name") or ""
            rest = {"name": name, "input" if kind == "custom" else "arguments": ""}
            self._calls[index] = {"id": part.get("id") or "", "type": kind, kind: rest}
            self._enter(f"call {index}")
            self._console.out(self._frame[0], style="cyan", end="", highlight=False)
            self._console.out(harmless(name), style="bold cyan", highlight=False)
            self._console.out(self._frame[1], style="cyan", end="", highlight=False)
        kept = self._calls[index][kind]
        kept["input" if kind == "custom" else "arguments"] += text
        self._console.out(harmless(text).replace("\n", f"\n{self._frame[1]}"), style="cyan", end="", highlight=False)

    def _enter(self, state: str) -> None:
        """End what was being written, before something else is."""
        if state == self._state:
            return
        if self._state.startswith("call"):
            self._console.out(f"\n{self._frame[2]}", style="cyan", highlight=False)
        elif self._state:
            (self._aside if self._state == "reasoning_content" else self._console).out("", highlight=False)
        self._state = state


def _is_whole(call: dict[str, Any]) -> bool:
    """Whether the arguments came to their end: a call that was cut short is none."""
    if call["type"] == "custom":
        return True
    try:
        return isinstance(json.loads(call["function"]["arguments"]), dict)
    except (ValueError, RecursionError):
        return False
