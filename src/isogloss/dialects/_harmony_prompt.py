"""The texts of harmony's system and developer messages."""

from __future__ import annotations

from collections.abc import Sequence

from isogloss.dialects._harmony_builtins import Namespace
from isogloss.messages import ResponseFormat
from isogloss.notations.json import write as write_json
from isogloss.schema.typescript import namespace

IDENTITY = "You are ChatGPT, a large language model trained by OpenAI."
KNOWLEDGE_CUTOFF = "2024-06"

EFFORTS = {
    "none": "low",
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
    "max": "high",
}
"""The three efforts that models of the family know, by those that a request can name."""

FUNCTIONS_GO_TO_COMMENTARY = "Calls to these tools must go to the commentary channel: 'functions'."


def system_text(
    *,
    identity: str | None,
    knowledge_cutoff: str | None,
    current_date: str | None,
    effort: str | None,
    tools: str = "",
    channels: Sequence[str] = ("analysis", "commentary", "final"),
    channel_required: bool = True,
    has_functions: bool = False,
) -> str:
    """The system message. Parts that are ``None`` are left out, and so are no tools and no channels."""
    about = [
        identity,
        None if knowledge_cutoff is None else f"Knowledge cutoff: {knowledge_cutoff}",
        None if current_date is None else f"Current date: {current_date}",
    ]
    lines = [line for line in about if line is not None]
    sections = ["\n".join(lines)] if lines else []
    if effort is not None:
        sections.append(f"Reasoning: {effort}")
    if tools:
        sections.append(tools)
    if channels:
        lines = [f"# Valid channels: {', '.join(channels)}."]
        if channel_required:
            lines[0] += " Channel must be included for every message."
        if has_functions:
            lines.append(FUNCTIONS_GO_TO_COMMENTARY)
        sections.append("\n".join(lines))
    return "\n\n".join(sections)


def developer_text(instructions: str | None, tools: str = "", response_format: ResponseFormat | None = None) -> str:
    """The developer message. ``None`` instructions have no section; empty ones have an empty one."""
    sections = []
    if instructions is not None:
        sections.append(f"# Instructions\n\n{instructions}")
    if tools:
        sections.append(tools)
    if response_format is not None and response_format.kind != "text":
        sections.append(_response_formats(response_format))
    return "\n\n".join(sections)


def _response_formats(response_format: ResponseFormat) -> str:
    schema = {"type": "object"} if response_format.kind == "json_object" else response_format.schema
    described = "".join([f"// {line}\n" for line in response_format.description.split("\n")])
    return "\n\n".join(
        [
            "# Response Formats",
            f"## {response_format.name}",
            (described if response_format.description else "") + write_json(schema),
        ]
    )


def tools_text(namespaces: Sequence[Namespace], *, compat: bool = False) -> str:
    """The section on tools. ``compat`` writes their parameters to the byte as openai-harmony 0.0.8 does."""
    if not namespaces:
        return ""
    told = [namespace(name, description, tools, compat=compat) for name, description, tools in namespaces]
    return "\n\n".join(["# Tools", *told])
