"""What tools that run have in common, and a box of them."""

from __future__ import annotations

from typing import Protocol

from isogloss.errors import ConversationError
from isogloss.messages import Tool, ToolCall, ToolMessage


class ToolKit(Protocol):
    """One or more tools that share their state."""

    @property
    def tools(self) -> tuple[Tool, ...]: ...

    async def run(self, call: ToolCall) -> ToolMessage:
        """Do what a call asks for. What goes wrong is told in the result, for the model to read; nothing is raised."""
        ...

    async def close(self) -> None:
        """Give back what the tools hold. They may not be run afterwards."""
        ...


class Toolbox:
    """Several kits as one. Raises `ConversationError` for two tools of one name."""

    def __init__(self, *kits: ToolKit) -> None:
        self._kits = kits
        self._by_name: dict[str, ToolKit] = {}
        for kit in kits:
            for tool in kit.tools:
                if tool.name in self._by_name:
                    raise ConversationError(f"Tool name {tool.name!r} is used twice")
                self._by_name[tool.name] = kit

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All tools, for a `Conversation`."""
        return tuple(tool for kit in self._kits for tool in kit.tools)

    async def run(self, call: ToolCall) -> ToolMessage:
        """Run a call by the kit that has its tool."""
        kit = self._by_name.get(call.name)
        if kit is None:
            known = ", ".join(self._by_name) or "none"
            return failed(call, f"There is no tool {call.name!r}; the tools are: {known}")
        return await kit.run(call)

    async def close(self) -> None:
        """Close all kits."""
        for kit in self._kits:
            await kit.close()


def done(call: ToolCall, text: str) -> ToolMessage:
    """The result of a call."""
    return ToolMessage(call.id, call.name, text)


def failed(call: ToolCall, reason: str) -> ToolMessage:
    """The result of a call that went wrong."""
    return ToolMessage(call.id, call.name, f"Error: {reason}", is_error=True)
