"""`isogloss dialects`."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table

from isogloss.dialects import dialect_names, get_dialect


def command() -> None:
    """List the dialects: a table on a terminal, columns between tabs in a pipe.

    Example: [bold]isogloss dialects[/bold]
    """
    rows = [(name, get_dialect(name).title, " ".join(get_dialect(name).markers.stop)) for name in dialect_names()]
    if not sys.stdout.isatty():
        sys.stdout.writelines("\t".join(row).replace("\n", "\\n") + "\n" for row in rows)
        return
    table = Table("dialect", "models", "stops at")
    for row in rows:
        table.add_row(*row)
    Console(highlight=False, markup=False).print(table)
