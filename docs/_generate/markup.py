"""Pieces of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def fence(text: str, language: str = "text") -> str:
    """A block of code that holds the text whatever is in it."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{text}\n{ticks}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; its cells are Markdown of one line, without bars outside of code."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(text: str) -> str:
    """Text as code within a line, white space made visible."""
    shown = text.replace("\n", "⏎").replace("\t", "⇥")
    ticks = "``" if "`" in shown else "`"
    space = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{ticks}{space}{shown}{space}{ticks}"


def indented(text: str) -> str:
    """The text as the body of a block that is told by indentation."""
    return "\n".join(f"    {line}" if line else "" for line in text.split("\n"))


def from_docstring(text: str) -> str:
    """A docstring as Markdown: what announces an indented block needs no second colon, and double backticks one."""
    text = re.sub(r"::(?=\n|\Z)", ":", text)
    return re.sub(r"``([^`\n]+)``", r"`\1`", text)
