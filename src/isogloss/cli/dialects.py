"""`isogloss dialects`."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from isogloss.dialects import dialect_names, get_dialect


def command() -> None:
    """List the dialects.

    Example: [bold]isogloss dialects[/bold]
    """
    table = Table("dialect", "models", "stops at")
    for name in dialect_names():
        dialect = get_dialect(name)
        table.add_row(name, dialect.title, " ".join(dialect.markers.stop))
    console = Console(highlight=False, markup=False)
    console.print(table)
