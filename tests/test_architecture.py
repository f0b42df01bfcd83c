"""Imports point one way: values <- notations, schema <- constraints <- dialects <- chat -> engines; edges call chat."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "isogloss"

VALUES = {"_compiled", "checks", "errors", "events", "grammar", "messages", "prompt"}
"""What everything may import."""

ARROWS: dict[str, set[str]] = {
    "_compiled": set(),
    "errors": {"schema"},  # a type only
    "checks": {"errors"},
    "events": {"messages"},
    "messages": {"checks", "errors", "openai_chat", "openai_responses", "schema"},  # constructors, imported when called
    "prompt": {"checks", "tokenizers"},  # of tokenizers a type only
    "openai_chat": VALUES | {"json_fields"},
    "openai_responses": VALUES | {"json_fields", "openai_chat", "schema"},
    "json_fields": VALUES,
    "stop_strings": VALUES,
    "endpoint_scanner": VALUES | {"dialects", "engines", "notations"},
    "integrations": VALUES | {"constraints", "dialects", "tokenizers", "token_scanner"},
    "token_scanner": VALUES | {"dialects"},
    "token_spans": VALUES | {"engines", "tokenizers"},
    "tokenizers": VALUES,
    "grammar": set(),
    "chat_template": VALUES | {"tokenizers"},
    "notations": VALUES | {"schema"},
    "schema": VALUES | {"notations", "tokenizers"},
    "constraints": VALUES | {"schema", "notations", "tokenizers"},
    "dialects": VALUES | {"notations", "schema", "constraints", "tokenizers"},
    "testing": VALUES | {"constraints", "dialects", "notations", "tokenizers"},
    "tools": VALUES,
    "transcripts": VALUES | {"dialects"},
    "engines": VALUES | {"tokenizers", "constraints", "stop_strings"},
    "demo_model": VALUES,
    "cached_models": VALUES | {"demo_model", "dialects", "tokenizers"},
    "verification": VALUES | {"json_fields", "schema", "constraints", "tokenizers"},
    "chat": VALUES
    | {
        "dialects",
        "endpoint_scanner",
        "engines",
        "constraints",
        "schema",
        "tokenizers",
        "verification",
        "prompting",
        "stop_strings",
        "token_spans",
    },
    "prompting": VALUES | {"chat_template", "dialects", "engines", "sampled_turns", "tokenizers"},
    "sampled_turns": VALUES,
    "compat": VALUES | {"dialects", "tokenizers", "schema"},
    "server": VALUES
    | {
        "chat",
        "engines",
        "dialects",
        "schema",
        "openai_chat",
        "openai_responses",
        "json_fields",
        "tools",
        "constraints",
    },
    "cli": VALUES
    | {
        "chat",
        "engines",
        "dialects",
        "schema",
        "constraints",
        "tokenizers",
        "server",
        "demo",
        "demo_model",
        "notations",
        "transcripts",
        "cached_models",
        "chat_template",
    },
    "demo": VALUES | {"demo_model"},
    "__main__": {"cli"},
    "__init__": VALUES | {"chat_template", "dialects", "schema", "tokenizers", "constraints"},
}

FILES = sorted(PACKAGE.rglob("*.py"))


def unit(path: Path) -> str:
    """The file or the package right below `isogloss` that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "isogloss":
            parts = node.module.split(".")
            names.update([parts[1]] if len(parts) > 1 else [alias.name for alias in node.names])
        elif isinstance(node, ast.Import):
            names.update(a.name.split(".")[1] for a in node.names if a.name.startswith("isogloss."))
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_follow_the_arrows(path: Path) -> None:
    here = unit(path)
    assert here in ARROWS, f"{here} has no place on the map: add it to ARROWS and ARCHITECTURE.md"
    wrong = imported(path) - ARROWS[here] - {here, "__init__"}
    assert not wrong, f"{here} imports {sorted(wrong)}"


def test_every_arrow_starts_somewhere() -> None:
    assert set(ARROWS) - {unit(path) for path in FILES} == set()


WITHOUT_DIALECTS = ("chat", "engines", "server", "constraints", "notations", "schema", "tokenizers")
DIALECTS = sorted(p.stem for p in (PACKAGE / "dialects").glob("*.py") if not p.stem.startswith("_"))


@pytest.mark.parametrize(
    "path",
    [p for p in FILES if unit(p) in WITHOUT_DIALECTS and p.stem != "_pre_tokenizers"],  # files have names for those
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_no_dialect_is_named_outside_the_dialects(path: Path) -> None:
    """As a string: a dialect's name in an engine, the server or the machinery is a special case where none may be."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    strings = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    named = {text for text in strings if text in DIALECTS}
    # gemma's literals and XML are notations, and "xml" a media type, in their own right.
    assert not named


def test_no_catch_all_modules() -> None:
    banned = re.compile(r"(^|_)(utils?|common|helpers?|misc)(_|$)")
    assert [str(p) for p in FILES if banned.search(p.stem)] == []


def test_wheels_have_every_scanner_compiled() -> None:
    project = PACKAGE.parents[1]
    settings = (project / "pyproject.toml").read_text("utf-8")
    listed = set(re.findall(r'"(src/isogloss/(?:dialects|notations)/\w+\.py)"', settings))
    assert all((project / path).is_file() for path in listed)
    shared = {path for path in (PACKAGE / "dialects").glob("_*.py") if _defines_scanner(path)}
    assert {path.relative_to(project).as_posix() for path in shared} <= listed


def _defines_scanner(path: Path) -> bool:
    bases = re.findall(r"(?m)^class \w+\((\w+)\)", path.read_text("utf-8"))
    return path.name == "_scanner.py" or any(base.endswith("Scanner") for base in bases)
