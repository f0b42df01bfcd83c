"""Text between an opening marker and the closing one of its kind."""

from __future__ import annotations

from collections.abc import Iterable

from isogloss.dialects._markers import Markers
from isogloss.messages import ToolMessage
from isogloss.prompt import PromptWriter


def enclose(writer: PromptWriter, markers: Markers, kind: str, text: str, margin: str = "") -> None:
    """Write a text between the markers of a kind. ``margin`` stands on either side of it."""
    writer.marker(markers[kind])
    writer.text(f"{margin}{text}{margin}")
    writer.marker(markers[f"{kind}_close"])


def enclose_results(writer: PromptWriter, markers: Markers, results: Iterable[ToolMessage]) -> None:
    """Write results one below the other, each on lines of its own between its markers."""
    for position, result in enumerate(results):
        writer.text("\n" if position else "")
        enclose(writer, markers, "result", result.text, margin="\n")
