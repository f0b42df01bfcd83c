"""`isogloss scan`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from isogloss.cli import _completion
from isogloss.cli._event_view import show_events
from isogloss.cli._input import read_text, read_tools
from isogloss.dialects import get_dialect
from isogloss.events import Event, collect, to_json

OUTPUT = typer.Argument(
    help="What the model said; standard input without it.", show_default=False, autocompletion=_completion.files
)
DIALECT = typer.Option("--dialect", "-d", help="The model's dialect.", autocompletion=_completion.dialects)


def command(
    file: Annotated[Path | None, OUTPUT] = None,
    dialect: Annotated[str, DIALECT] = "hermes",
    tools: Annotated[
        Path | None,
        typer.Option(
            help="JSON file with the tools, which decide how values are typed.", autocompletion=_completion.files
        ),
    ] = None,
    events: Annotated[
        bool,
        typer.Option(
            "--events", help="One event a line instead of the whole turn: JSON in a pipe, in colour on a terminal."
        ),
    ] = False,
    cut: Annotated[int, typer.Option(min=0, help="Feed the output in pieces of so many characters; 0: whole.")] = 0,
    starts_in: Annotated[
        Literal["text", "reasoning"],
        typer.Option(help="What the output begins with: reasoning where the prompt opened it."),
    ] = "text",
    finish: Annotated[
        Literal["stop", "length"], typer.Option(help="Why the engine stopped: at the end, or at its limit.")
    ] = "stop",
) -> None:
    """Parse a model's output.

    Example: [bold]isogloss scan --dialect hermes --events output.txt[/bold]
    """
    text = read_text(file)
    scanned = _events(text, dialect, tools, cut, starts_in, finish)
    if events and sys.stdout.isatty():
        show_events(scanned)
        return
    if events:
        for event in scanned:
            sys.stdout.write(to_json(event) + "\n")
        return
    message = collect(scanned)
    sys.stdout.write(json.dumps(msgspec.to_builtins(message), ensure_ascii=False, indent=2) + "\n")


def _events(text: str, dialect: str, tools: Path | None, cut: int, starts_in: str, finish: str) -> Iterator[Event]:
    scanner = get_dialect(dialect).scanner(read_tools(tools), starts_in=starts_in)
    step = cut or max(1, len(text))
    for at in range(0, len(text), step):
        yield from scanner.feed(text[at : at + step])
    yield from scanner.finish(finish)
