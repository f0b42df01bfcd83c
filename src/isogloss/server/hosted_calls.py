"""Calls of tools that the server runs, as the items and events of a response."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, NamedTuple

from isogloss.messages import ToolCall, ToolMessage

HOSTED_FIELDS: dict[str, dict[str, Any]] = {
    "code_interpreter_call": {"code": "", "container_id": "local", "outputs": None},
    "web_search_call": {"action": {"type": "search", "query": ""}, "arguments": "", "output": None},
}
"""What items of these types have at first. A search's ``name``, ``arguments`` and ``output`` are not the API's: they
let the model go on from an earlier search."""

_WORKING = {"code_interpreter_call": "interpreting", "web_search_call": "searching"}


class HostedCall(NamedTuple):
    """A call that waits to be run, the item that it is, and the item's place in the output."""

    call: ToolCall
    item: dict[str, Any]
    output_index: int

    async def run(
        self, work: Callable[[ToolCall], Awaitable[ToolMessage]], results: list[ToolMessage]
    ) -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
        """Run it: the events that tell so. The result is added to ``results``."""
        kind = self.item["type"]
        place = {"item_id": self.item["id"], "output_index": self.output_index}
        yield f"response.{kind}.{_WORKING[kind]}", place
        result = await work(self.call)
        results.append(result)
        if kind == "code_interpreter_call":
            self.item["outputs"] = [{"type": "logs", "logs": result.text}]
        else:
            self.item["output"] = result.text
        self.item["status"] = "completed"
        yield f"response.{kind}.completed", place
        yield "response.output_item.done", {"output_index": self.output_index, "item": self.item}

    def given_up(self) -> tuple[str, dict[str, Any]]:
        """It is not run: the event that tells so."""
        self.item["status"] = "incomplete" if self.item["type"] == "code_interpreter_call" else "failed"
        return "response.output_item.done", {"output_index": self.output_index, "item": self.item}


def search_action(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What a call of the browser does, as the API writes it."""
    if name.endswith("search"):
        return {"type": "search", "query": str(arguments.get("query", ""))}
    if name.endswith("find"):
        return {"type": "find_in_page", "url": "", "pattern": str(arguments.get("pattern", ""))}
    return {"type": "open_page", "url": str(arguments.get("id", ""))}
