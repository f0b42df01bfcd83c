"""Several kits as one."""

from __future__ import annotations

import pytest

from isogloss.errors import ConversationError
from isogloss.messages import Tool, ToolCall, ToolMessage
from isogloss.tools import Toolbox

pytestmark = pytest.mark.anyio


class Echo:
    def __init__(self, *names: str) -> None:
        self.tools = tuple(Tool(name) for name in names)
        self.is_closed = False

    async def run(self, call: ToolCall) -> ToolMessage:
        return ToolMessage(call.id, call.name, self.tools[0].name)

    async def close(self) -> None:
        self.is_closed = True


async def test_calls_go_to_the_kit_that_has_the_tool() -> None:
    kits = Echo("a", "b"), Echo("c")
    box = Toolbox(*kits)
    assert [tool.name for tool in box.tools] == ["a", "b", "c"]
    assert (await box.run(ToolCall("1", "b", {}))).text == "a"
    assert (await box.run(ToolCall("2", "c", {}))).text == "c"
    unknown = await box.run(ToolCall("3", "d", {}))
    assert (unknown.text, unknown.is_error) == ("Error: There is no tool 'd'; the tools are: a, b, c", True)
    await box.close()
    assert [kit.is_closed for kit in kits] == [True, True]


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ConversationError, match="Tool name 'a' is used twice"):
        Toolbox(Echo("a"), Echo("a"))
