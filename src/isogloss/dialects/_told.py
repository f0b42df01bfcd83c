"""What a model that was not trained on a dialect is told: the entry of a tool, the answer's format."""

from __future__ import annotations

from typing import Any

from isogloss.messages import ResponseFormat, Tool
from isogloss.notations.json import write as write_json


def catalogue_entry(tool: Tool) -> dict[str, Any]:
    """A tool as the catalogue lists it."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def paragraphs(*texts: str) -> str:
    """The texts that say something, with blank lines between them."""
    return "\n\n".join([text for text in texts if text])


def format_prompt(response_format: ResponseFormat | None) -> str:
    """What a model is told about the answer's format, and how to refuse; nothing where it is free text."""
    if response_format is None or response_format.kind == "text":
        return ""
    lines = ["# Response format", ""]
    if response_format.kind == "json_object":
        lines.append("Answer with one JSON object and nothing else.")
    else:
        lines.append("Answer with one JSON value that satisfies this JSON Schema, and nothing else:")
        if response_format.description:
            lines.append(response_format.description)
        lines += ["", write_json(response_format.schema)]
    if response_format.may_refuse:
        lines += ["", "If you must refuse, write <refusal>why</refusal> instead."]
    return "\n".join(lines)
