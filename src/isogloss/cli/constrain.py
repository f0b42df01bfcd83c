"""`isogloss constrain`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from isogloss.cli._input import read_object, read_text, read_tools
from isogloss.dialects import get_dialect
from isogloss.errors import RequestError
from isogloss.messages import ToolChoice


def command(
    schema: Annotated[Path | None, typer.Option(help="JSON Schema that an answer must satisfy.")] = None,
    instance: Annotated[
        Path | None, typer.Option(help="Text to try against the grammar, instead of printing it.")
    ] = None,
    dialect: Annotated[str | None, typer.Option("--dialect", "-d", help="Dialect of a turn with tools.")] = None,
    tools: Annotated[Path | None, typer.Option(help="JSON file with the tools.")] = None,
    choice: Annotated[str, typer.Option(help="auto, none, required or a tool's name.")] = "auto",
) -> None:
    """Print the grammar of an answer or a turn, or say where an instance is refused (exit 1).

    Example: [bold]isogloss constrain --schema schema.json --instance answer.json[/bold]
    """
    from isogloss.constraints import Constraint, accepts

    if (schema is None) == (dialect is None):
        raise RequestError("Expected either --schema or --dialect with --tools")
    if schema is not None:
        constraint = Constraint.from_json_schema(read_object(schema))
    else:
        constraint = get_dialect(str(dialect)).constraint(read_tools(tools), ToolChoice.of(choice))
    if instance is None:
        sys.stdout.write(constraint.lark + "\n")
        return
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
