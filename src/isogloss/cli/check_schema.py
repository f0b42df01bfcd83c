"""`isogloss check-schema`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from isogloss.cli import _completion
from isogloss.cli._input import read_json
from isogloss.schema import check_strict


def command(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="A JSON Schema; standard input without it.", show_default=False, autocompletion=_completion.files
        ),
    ] = None,
) -> None:
    """List what puts a schema outside the strict subset; exit 1 when there is anything.

    Example: [bold]isogloss check-schema schema.json[/bold]
    """
    violations = check_strict(read_json(file))
    for violation in violations:
        place = f"{violation.pointer}: " if violation.pointer else ""
        sys.stdout.write(f"{place}{violation.message}\n")
    if violations:
        raise typer.Exit(1)
