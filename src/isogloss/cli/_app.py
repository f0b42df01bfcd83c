"""All subcommands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

import isogloss
from isogloss._compiled import is_compiled
from isogloss.cli import chat, check_schema, constrain, convert, demo, dialects, models, render, scan, serve

app = typer.Typer(
    name="isogloss",
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _tell_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"isogloss {isogloss.__version__}{' (compiled)' if is_compiled() else ''}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Every language model's dialect on one side, one tongue on the other."""


for module in (scan, render, constrain, check_schema, convert, dialects, models, serve, chat, demo):
    name = module.__name__.rpartition(".")[2].replace("_", "-")
    app.command(name)(module.command)
