"""`isogloss chat`."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from isogloss.cli._chat_session import LeaveError, Session
from isogloss.cli._chat_view import TurnView
from isogloss.cli._input import not_utf8
from isogloss.cli._terminal_text import harmless
from isogloss.errors import IsoglossError, RequestError

if TYPE_CHECKING:
    from isogloss.cli._chat_endpoint import ChatEndpoint


def command(
    url: Annotated[str, typer.Option(help="The server; any with the Chat Completions API.")] = "http://127.0.0.1:8080",
    model: Annotated[str | None, typer.Option(help="The model. Without it: the first that the server lists.")] = None,
    api_key_env: Annotated[
        str | None, typer.Option(metavar="VARIABLE", help="Environment variable with the key that the server wants.")
    ] = None,
    system: Annotated[str | None, typer.Option(help="System message.")] = None,
) -> None:
    """Talk to a served model. /help lists the commands; in a pipe, every line is a message.

    Example: [bold]isogloss chat --url http://127.0.0.1:8080[/bold]
    """
    from isogloss.cli._chat_endpoint import ChatEndpoint

    key = None if api_key_env is None else os.environ.get(api_key_env)
    if api_key_env is not None and not key:
        raise RequestError(f"The environment variable {api_key_env}, which should hold the key, is not set")
    with contextlib.closing(ChatEndpoint(url, key=key, model=model)) as endpoint:
        _Talk(endpoint, Session(system)).run()


class _Talk:
    """The loop of asking and answering. Where somebody watches, a failure is told and the talk goes on."""

    def __init__(self, endpoint: ChatEndpoint, session: Session) -> None:
        self._endpoint = endpoint
        self._session = session
        self._console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
        self._aside = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)
        self._is_watched = sys.stdin.isatty() and self._console.is_terminal
        self._lines = 0

    def run(self) -> None:
        """Until the end of the input. Raises `IsoglossError` where nobody watches."""
        model = self._endpoint.model
        if self._is_watched:
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401 - gives `input` a history and keys to edit with
            self._tell(f"{model} at {self._endpoint.url} - /help lists the commands")
        with contextlib.suppress(LeaveError, EOFError):
            while True:
                self._step()

    def _step(self) -> None:
        calls = self._session.open_calls
        try:
            line = self._read(f"result of {calls[0][1]}> " if calls else "> ")
            if line.startswith("/"):
                self._tell(self._session.command(line))
            elif calls:
                self._session.messages.append({"role": "tool", "tool_call_id": calls[0][0], "content": line})
                if len(calls) == 1:
                    self._ask()
            elif line.strip():
                self._session.messages.append({"role": "user", "content": line})
                self._ask()
        except IsoglossError as error:
            if not self._is_watched:
                raise
            self._aside.out(f"isogloss: {harmless(str(error))}", style="red", highlight=False)

    def _read(self, prompt: str) -> str:
        """A line. Raises `EOFError` at the end, and where a reader who watches interrupts it, and `RequestError` for a
        line that is no text."""
        if not self._is_watched:
            self._lines += 1
            line = sys.stdin.buffer.readline()
            if not line:
                raise EOFError
            try:
                return line.decode("utf-8-sig" if self._lines == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise not_utf8(f"line {self._lines} of standard input", error) from None
        try:
            return input(harmless(prompt))
        except (EOFError, KeyboardInterrupt):
            self._console.out("")
            raise EOFError from None
        except UnicodeDecodeError as error:
            raise not_utf8("the line", error) from None

    def _ask(self) -> None:
        """The model's turn. What was asked is taken back when it fails before anything was said."""
        unseen = Console(quiet=True)
        view = TurnView(unseen, unseen) if self._session.is_raw else TurnView(self._console, self._aside)
        try:
            with contextlib.closing(self._endpoint.stream(self._session.request)) as chunks:
                for chunk in chunks:
                    if self._session.is_raw:
                        self._console.out(harmless(json.dumps(chunk, ensure_ascii=False)), highlight=False)
                    view.show(chunk)
        except KeyboardInterrupt:
            if not self._is_watched:
                raise
            self._tell("\n(stopped)")
        finally:
            view.end()
            message = view.message()
            if message is not None:
                self._session.messages.append(message)
            else:
                self._session.messages.pop()

    def _tell(self, text: str) -> None:
        if self._is_watched:
            self._console.out(harmless(text), style="dim", highlight=False)
        else:
            self._aside.out(harmless(text), highlight=False)
