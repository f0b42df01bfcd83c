"""An agent that reads a folder and runs Python, with the tools that models of the harmony family were trained on.

    python examples/agent.py                    a recorded session, no model needed
    python examples/agent.py URL FOLDER TASK    a model behind URL (llama.cpp's server, vLLM) works on FOLDER

The Python that the model writes runs with your rights: see `isogloss.tools.python`.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from isogloss import AssistantMessage, Conversation, SystemMessage, UserMessage, get_dialect
from isogloss.chat import Chat
from isogloss.engines import Engine, open_engine
from isogloss.engines.scripted import Script, ScriptedEngine
from isogloss.messages import Message
from isogloss.tokenizers import o200k_harmony
from isogloss.tools import Toolbox
from isogloss.tools.browser import Browser
from isogloss.tools.folder_backend import FolderBackend
from isogloss.tools.python import PythonTool

MOST_TURNS = 20
TASK = "How old will the bridge be in 2030?"
NOTES = "# The bridge\n\nBuilt from 1928 to 1931.\nIt was opened on 19 March 1932.\n"

NEXT = "<|start|>assistant"
TURNS = (
    "<|channel|>analysis<|message|>I look it up.<|end|>"
    f'{NEXT}<|channel|>analysis to=browser.search code<|message|>{{"query": "bridge opened"}}<|call|>',
    '<|channel|>analysis to=browser.open code<|message|>{"id": 0}<|call|>',
    "<|channel|>analysis to=python code<|message|>print(2030 - 1932)<|call|>",
    "<|channel|>final<|message|>It will be 98 years old: it was opened in 1932【1†L3】.<|return|>",
)
"""What a model said in four turns, control tokens included."""


async def answer(chat: Chat, box: Toolbox, task: str) -> AssistantMessage:
    """Ask, run what is called, tell the results, and so on until the model answers."""
    messages: list[Message] = [SystemMessage("Answer from the notes, and cite them."), UserMessage(task)]
    for _ in range(MOST_TURNS):
        turn = await chat.stream(Conversation(tuple(messages), box.tools)).message()
        messages.append(turn)
        if not turn.tool_calls:
            return turn
        for call in turn.tool_calls:
            result = await box.run(call)
            print(f"--- {call.name} {call.arguments}\n{result.text}\n")
            messages.append(result)
    raise RuntimeError(f"No answer after {MOST_TURNS} turns")


async def work(engine: Engine, folder: Path, task: str) -> str:
    """The answer, with its sources below."""
    browser = Browser(FolderBackend(folder))
    box = Toolbox(browser, PythonTool())
    chat = Chat(engine, get_dialect("harmony"))
    try:
        turn = await answer(chat, box, task)
    finally:
        await box.close()
        await chat.close()
    sources = [f"  {c.url} L{c.first}-L{c.last}: {c.quote}" for c in browser.citations(turn.text)]
    return "\n".join([turn.text, *sources])


async def recorded_session() -> str:
    """The same with a recorded model, in a folder with one note."""
    control = tuple(get_dialect("harmony").markers.special)
    engine = ScriptedEngine([Script(turn, "tokens", control) for turn in TURNS], tokenizer=o200k_harmony())
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "bridge.md").write_text(NOTES, encoding="utf-8")
        return await work(engine, Path(folder), TASK)


if __name__ == "__main__":
    match sys.argv[1:]:
        case [url, folder, task]:
            print(asyncio.run(work(open_engine(url), Path(folder), task)))
        case _:
            print(asyncio.run(recorded_session()))
