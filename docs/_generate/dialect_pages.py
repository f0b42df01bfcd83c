"""A page for each dialect: its format card (the module's docstring), its guide, and its corpus with all events."""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path

from markup import code, fence, from_docstring, indented, table

from isogloss.dialects import Dialect, dialect_names, get_dialect
from isogloss.testing import Case, read_corpus

CORPUS = Path(__file__).parents[2] / "tests" / "corpus"

NOTHING = Dialect.model_ids
"""The pattern that matches no model."""

OPEN_CASES = ("plain text", "one call", "parallel calls", "reasoning then text")
"""Cases that are shown unfolded, where a dialect has them."""


def pages() -> dict[str, str]:
    """The Markdown of each page, by its path."""
    return {f"dialects/{name}.md": page(get_dialect(name)) for name in dialect_names()}


def page(dialect: Dialect) -> str:
    """The page of one dialect."""
    cases = read_corpus(CORPUS / f"{dialect.name}.txt")
    return "\n\n".join(
        [
            f"# {dialect.name}",
            f"{dialect.title}.",
            facts(dialect),
            "## The format",
            format_card(dialect),
            "## Markers",
            markers(dialect),
            "## The guide",
            "What a model that was not trained on this dialect is told, behind the catalogue of tools "
            "(`Dialect.tool_prompt`, `Dialect.inband`):",
            fence(dialect.guide, "markdown"),
            *prompt_sample(cases),
            "## Samples",
            "Each is a case of the project's tests: what a model says, and the events that scan from it, with adjacent "
            "deltas joined. `start` and `end` are offsets into the output; an id that is not the model's is left out.",
            *[sample(case) for case in cases if case.output is not None],
        ]
    )


def facts(dialect: Dialect) -> str:
    """What it does in a few words."""
    kept = "stays in the prompt" if dialect.keeps_reasoning else "is left out once the user speaks again"
    claimed = (
        f"Model ids that are taken for it: {code(dialect.model_ids)} (a regular expression, in lower case)."
        if dialect.model_ids != NOTHING
        else "No model id is taken for it by itself: name it."
    )
    trained = (
        "Models of the family were trained on what `render` writes."
        if dialect.renders_as_trained
        else "A model of the family that an engine serves is prompted by its own chat template, where it has one."
    )
    return "\n".join(
        [
            f"- Use it: `isogloss.get_dialect({dialect.name!r})`, or `--dialect {dialect.name}` on the command line.",
            f"- {claimed}",
            f"- Reasoning of earlier turns {kept}.",
            f"- {trained}",
        ]
    )


def format_card(dialect: Dialect) -> str:
    """The docstring of the module."""
    docstring = inspect.getdoc(sys.modules[type(dialect).__module__]) or ""
    return from_docstring(docstring.removeprefix(f"{dialect.name}: "))


def summary(dialect: Dialect) -> str:
    """The first paragraph of the format card, on one line."""
    return " ".join(format_card(dialect).partition("\n\n")[0].split())


def markers(dialect: Dialect) -> str:
    """All delimiters, and which of them are control tokens of the family's vocabularies."""
    special = set(dialect.markers.special)
    rows = [
        (code(marker), kind.replace("_", " "), "yes" if marker in special else "")
        for kind, spellings in dialect.markers.kinds.items()
        for marker in spellings
    ]
    return table(("marker", "kind", "control token"), rows)


def prompt_sample(cases: list[Case]) -> list[str]:
    """A conversation, with results of tools where one has them, and what it renders to."""
    prompts = [case for case in cases if "prompt" in case.sections]
    if not prompts:
        return []
    case = next((case for case in prompts if "tool results" in case.title.lower()), prompts[-1])
    return [
        "## A prompt",
        "This conversation, with the tools of the samples below:",
        fence(case.sections["conversation"], "json"),
        "is rendered as:",
        fence(case.sections["prompt"]),
    ]


def sample(case: Case) -> str:
    """One case: folded, unless it is one of those that everybody wants to see."""
    told = [f"{name.replace('_', ' ')}: `{value}`" for name, value in case.settings.items()]
    as_json = "output" in case.escaped
    output = json.dumps(case.output) if as_json else str(case.output)
    parts = [", ".join(told), fence(output, "json" if as_json else "text"), fence(case.sections["events"], "json")]
    body = "\n\n".join(part for part in parts if part)
    sign = "???+" if case.title.lower() in OPEN_CASES else "???"
    title = case.title.replace('"', "'")
    return f'{sign} example "{title}"\n\n{indented(body)}'
