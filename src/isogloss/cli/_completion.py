"""What the shell offers behind an option or as an argument."""

from __future__ import annotations

from isogloss.dialects import dialect_names, get_dialect


def dialects(incomplete: str) -> list[tuple[str, str]]:
    """Names of dialects, each with whose it is."""
    return [(name, get_dialect(name).title) for name in dialect_names() if name.startswith(incomplete)]


def engines(incomplete: str) -> list[str]:
    """Names of engines."""
    from isogloss.engines import engine_names

    return [name for name in engine_names() if name.startswith(incomplete)]


def files(incomplete: str) -> list[str]:
    """Nothing: where a command has no words to offer, the shell offers files."""
    return []
