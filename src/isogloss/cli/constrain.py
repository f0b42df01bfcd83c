"""`isogloss constrain`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isogloss.cli import _completion
from isogloss.cli._input import read_object, read_text, read_tools
from isogloss.dialects import get_dialect
from isogloss.errors import RequestError
from isogloss.messages import ToolChoice

if TYPE_CHECKING:
    from isogloss.constraints import Constraint


def command(
    schema: Annotated[
        Path | None,
        typer.Option(help="JSON Schema that an answer must satisfy.", autocompletion=_completion.files),
    ] = None,
    instance: Annotated[
        Path | None,
        typer.Option(help="Text to try against the grammar, instead of printing it.", autocompletion=_completion.files),
    ] = None,
    dialect: Annotated[
        str | None,
        typer.Option("--dialect", "-d", help="Dialect of a turn with tools.", autocompletion=_completion.dialects),
    ] = None,
    tools: Annotated[
        Path | None, typer.Option(help="JSON file with the tools.", autocompletion=_completion.files)
    ] = None,
    choice: Annotated[
        str | None, typer.Option(help="auto (the default), none, required or a tool's name.", show_default=False)
    ] = None,
) -> None:
    """Print the grammar of an answer or a turn, or say where an instance is refused (exit 1).

    Example: [bold]isogloss constrain --schema schema.json --instance answer.json[/bold]
    """
    constraint = _constraint(schema, dialect, tools, choice)
    if instance is None:
        sys.stdout.write(constraint.lark + "\n")
        return
    from isogloss.constraints import accepts

    text = read_text(instance).removesuffix("\n")
    accepted, offset = accepts(constraint, text)
    if accepted:
        sys.stdout.write("accepted\n")
        return
    where = (
        "at its end: more is expected" if offset >= len(text) else f"at {offset}, before {text[offset : offset + 20]!r}"
    )
    sys.stdout.write(f"refused {where}\n")
    raise typer.Exit(1)


def _constraint(schema: Path | None, dialect: str | None, tools: Path | None, choice: str | None) -> Constraint:
    """The grammar of an answer, or of a turn: what binds the one means nothing to the other."""
    from isogloss.constraints import Constraint

    if (schema is None) == (dialect is None):
        raise RequestError("Expected either --schema or --dialect with --tools")
    if schema is None:
        return get_dialect(str(dialect)).constraint(read_tools(tools), ToolChoice.of(choice or "auto"))
    for name, value in (("--tools", tools), ("--choice", choice)):
        if value is not None:
            raise RequestError(f"{name} says nothing of the answer that --schema is for: give it with --dialect")
    return Constraint.from_json_schema(read_object(schema))
