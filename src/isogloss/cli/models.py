"""`isogloss models`."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from isogloss.cached_models import cached_models


def command() -> None:
    """List the models that are on this machine, as `isogloss serve --model` takes them.

    Example: [bold]isogloss models[/bold]
    """
    table = Table()
    table.add_column("model", overflow="fold")
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("dialect")
    table.add_column("context", justify="right")
    for model in cached_models():
        context = "-" if model.context_length is None else f"{model.context_length}"
        table.add_row(model.target, _size(model.size), model.dialect or "-", context)
    Console(highlight=False, markup=False).print(table)


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
