"""All subcommands, put together."""

from __future__ import annotations

import typer

from isogloss.cli import chat, check_schema, constrain, convert, demo, dialects, models, render, scan, serve

app = typer.Typer(
    name="isogloss",
    help="Every language model's dialect on one side, one tongue on the other.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

for module in (scan, render, constrain, check_schema, convert, dialects, models, serve, chat, demo):
    name = module.__name__.rpartition(".")[2].replace("_", "-")
    app.command(name)(module.command)
