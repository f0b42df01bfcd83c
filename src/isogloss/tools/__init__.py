"""Tools that run: a Python kernel, a browser, and a box that holds several.

    box = Toolbox(PythonTool(), Browser(FolderBackend("docs")))
    conversation = Conversation(messages, box.tools)
    ...
    results = [await box.run(call) for call in message.tool_calls]

They work with every dialect. Models of the harmony family were trained on ``python`` and ``browser`` as they are here.
Each module needs the extra that it names.
"""

from __future__ import annotations

from isogloss.tools.toolbox import Toolbox, ToolKit

__all__ = ["ToolKit", "Toolbox"]
