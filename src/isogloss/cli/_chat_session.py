"""A conversation from the terminal, and the commands that change what it is about."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from isogloss.cli._input import read_json, read_object, read_tools
from isogloss.errors import RequestError
from isogloss.schema import check_strict


class LeaveError(Exception):
    """The reader has had enough."""


class Command(NamedTuple):
    """``argument`` is what stands behind it, in brackets where it may be left out."""

    argument: str
    help: str
    run: Callable[[Session, str], str]


class Session:
    """What the next request is made of. ``is_raw``: chunks are shown as they were sent."""

    def __init__(self, system: str | None = None) -> None:
        self._system = system
        self.is_raw = False
        self.tools: list[Any] = []
        self.response_format: dict[str, Any] | None = None
        self.messages: list[dict[str, Any]] = []
        self._reset("")

    @property
    def request(self) -> dict[str, Any]:
        """A Chat Completions request, but for the model."""
        request: dict[str, Any] = {"messages": self.messages}
        if self.tools:
            request["tools"] = self.tools
        if self.response_format is not None:
            request["response_format"] = self.response_format
        return request

    @property
    def open_calls(self) -> list[tuple[str, str]]:
        """The id and the name of each call of the last turn that waits for its result."""
        answered = {message.get("tool_call_id") for message in self.messages}
        spoken = [message for message in self.messages if message["role"] != "tool"]
        last = spoken[-1] if spoken else {}
        calls = [(call["id"], call[call["type"]]["name"]) for call in last.get("tool_calls", ())]
        return [(call_id, name) for call_id, name in calls if call_id not in answered]

    def command(self, line: str) -> str:
        """Do what a line that begins with a slash says; what to tell about it.

        Raises `RequestError` for a command that is none or cannot be done, `LeaveError` for the last one.
        """
        name, _, argument = line.partition(" ")
        command = COMMANDS.get(name)
        if command is None:
            raise RequestError(f"No command {name!r}; there are {', '.join(COMMANDS)}")
        argument = argument.strip()
        if not argument and command.argument and not command.argument.startswith("["):
            raise RequestError(f"Expected {name} {command.argument}")
        return command.run(self, argument)

    def _reset(self, _: str) -> str:
        self.messages = [] if self._system is None else [{"role": "system", "content": self._system}]
        return "A new conversation"

    def _take_tools(self, file: str) -> str:
        path = Path(file)
        names = [tool.name for tool in read_tools(path)] if file else []
        value = read_json(path) if file else []
        self.tools = value["tools"] if isinstance(value, dict) else value
        return f"Tools: {', '.join(names) or 'none'}"

    def _take_schema(self, file: str) -> str:
        if not file:
            self.response_format = None
            return "The answer may be any text"
        schema = read_object(Path(file))
        strict = not check_strict(schema)
        form = {"name": "answer", "strict": strict, "schema": schema}
        self.response_format = {"type": "json_schema", "json_schema": form}
        return "The answer follows the schema" + ("" if strict else ", which is not in the strict subset")

    def _toggle_raw(self, _: str) -> str:
        self.is_raw = not self.is_raw
        return "Chunks as they are sent" if self.is_raw else "Text again"

    def _save(self, file: str) -> str:
        try:
            Path(file).write_text(json.dumps(self.request, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise RequestError(f"Cannot write `{file}`: {error.strerror}") from None
        return f"Saved {len(self.messages)} messages to {file}"

    def _help(self, _: str) -> str:
        width = max(len(f"{name} {command.argument}") for name, command in COMMANDS.items())
        return "\n".join(
            f"{f'{name} {command.argument}':<{width}}  {command.help}" for name, command in COMMANDS.items()
        )

    def _quit(self, _: str) -> str:
        raise LeaveError


COMMANDS = {
    "/tools": Command("[FILE]", "tools that the model may call; none without a file", Session._take_tools),
    "/schema": Command("[FILE]", "JSON Schema that answers follow; any text without a file", Session._take_schema),
    "/raw": Command("", "show the chunks of the stream, or text again", Session._toggle_raw),
    "/save": Command("FILE", "write the conversation as a request, for isogloss render", Session._save),
    "/reset": Command("", "begin a new conversation", Session._reset),
    "/help": Command("", "list the commands", Session._help),
    "/quit": Command("", "leave; so does the end of the input", Session._quit),
}
