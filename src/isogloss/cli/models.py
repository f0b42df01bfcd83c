"""`isogloss models`."""

from __future__ import annotations

import json
import sys

import msgspec
from rich.console import Console
from rich.table import Table

from isogloss.cached_models import CachedModel, cached_models


def command() -> None:
    """List the models that are on this machine, as `isogloss serve --model` takes them: a table on a terminal, a JSON
    object a line in a pipe.

    The context is the longest that the model was trained for; what it is served with is the engine's option
    context_length.

    Example: [bold]isogloss models[/bold]
    """
    models = cached_models()
    if not sys.stdout.isatty():
        for model in models:
            sys.stdout.write(json.dumps(msgspec.to_builtins(model, enc_hook=str), ensure_ascii=False) + "\n")
        return
    console = Console(highlight=False, markup=False)
    if models:
        console.print(_table(models))
    else:
        console.print("No models here yet; `isogloss demo` fetches a small one")


def _table(models: list[CachedModel]) -> Table:
    table = Table()
    table.add_column("model", overflow="fold")
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("dialect")
    table.add_column("trained context", justify="right")
    for model in models:
        context = "unknown" if model.context_length is None else f"{model.context_length}"
        table.add_row(model.target, _size(model.size), model.dialect or "name it", context)
    return table


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
