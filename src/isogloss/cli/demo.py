"""`isogloss demo`."""

from __future__ import annotations

from rich.console import Console


def command() -> None:
    """Serve a small model, and ask it for three things with the official client.

    Example: [bold]isogloss demo[/bold]
    """
    from isogloss import demo

    demo.run(Console(soft_wrap=True))
