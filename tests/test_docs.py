"""The documentation says what is so: its Python runs and prints what stands below it, its commands exist and answer as
shown, its generated parts cover what there is, and the site builds without a warning."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import isogloss
from isogloss.compat import openai_harmony as compat
from isogloss.dialects import dialect_names, get_dialect

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))

BLOCK = re.compile(
    r"^(?:<!-- (?P<only>compiled only|not run): [^\n]+ -->\n\n?)?"
    r"^```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$"
    r"(?:\n\n```text\n(?P<printed>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
RUN = ("check-schema", "constrain", "convert", "dialects", "render", "scan")
"""Commands that need no model."""
FRESH_ID = re.compile(r"call_[0-9a-f]{24}")


class Block(NamedTuple):
    """A block of code on a page, the line on which it begins, and what is said to be printed by it."""

    language: str
    text: str
    line: int
    title: str | None
    is_run: bool
    printed: str | None


def blocks(page: Path) -> list[Block]:
    markdown = page.read_text(encoding="utf-8")
    found = []
    for match in BLOCK.finditer(markdown):
        line = markdown.count("\n", 0, match.start("text")) + 1
        is_run = match["only"] is None
        found.append(Block(match["language"], match["text"], line, match["title"], is_run, match["printed"]))
    return found


def named(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


def same(text: str) -> str:
    """What is compared: an id that is fresh each time is like any other."""
    return FRESH_ID.sub("call_", text)


WITH_BLOCKS = [page for page in PAGES if blocks(page)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setitem(sys.modules, "openai_harmony", compat)  # a page sets it too; this takes it back
    return tmp_path


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=named)
def test_every_block_runs_and_prints_what_stands_below_it(page: Path, folder: Path) -> None:
    names: dict[str, Any] = {"__name__": "docs"}
    for block in blocks(page):
        where = f"docs/{named(page)}:{block.line}"
        if block.title is not None:
            (folder / block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            code = compile("\n" * (block.line - 1) + block.text, where, "exec", dont_inherit=True)
            if block.is_run:
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    exec(code, names)
                assert same(printed.getvalue()) == same(block.printed or ""), where
        elif block.language == "console":
            for command, printed_below in commands(block.text):
                answer = run(command) if block.is_run and command[:1] == ["isogloss"] and command[1] in RUN else None
                if answer is not None and printed_below:
                    assert same(answer) == same(printed_below), where


def commands(text: str) -> Iterator[tuple[list[str], str]]:
    """The commands of a block, split into words, and what stands below each."""
    for part in re.split(r"^\$ ", text.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        line, _, printed = part.partition("\n")
        yield shlex.split(line, comments=True), printed


def run(command: list[str]) -> str:
    """What a command of ours prints."""
    from isogloss.cli import main

    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(SystemExit):
        patch.setattr(sys, "argv", command)
        patch.setattr(sys, "stdout", printed)
        patch.setattr(sys, "stderr", printed)
        main()
    printed.seek(0)
    return printed.read()


def test_the_python_of_a_page_is_found_whole() -> None:
    for page in PAGES:
        count = len(re.findall(r"^ *```python", page.read_text(encoding="utf-8"), re.MULTILINE))
        assert count == len([block for block in blocks(page) if block.language == "python"]), named(page)


def test_every_command_on_a_page_has_the_options_that_it_is_given(generate: dict[str, ModuleType]) -> None:
    from isogloss.cli._app import app

    known = {
        str(info.name): {s for spellings, *_ in generate["tables"].parameters(info.callback) for s in spellings}
        for info in app.registered_commands
    }
    seen = set()
    for page in PAGES:
        for block in blocks(page):
            for command, _ in commands(block.text) if block.language == "console" else ():
                if command[:1] != ["isogloss"]:
                    continue
                assert command[1] in known, (named(page), command)
                given = {word.partition("=")[0] for word in command[2:] if re.match(r"--?[a-z]", word)}
                assert given <= known[command[1]], (named(page), command)
                seen.add(command[1])
    assert {"serve", "scan", "convert"} <= seen


# -- what is generated


@pytest.fixture(scope="module")
def generate() -> Iterator[dict[str, ModuleType]]:
    """The modules that make pages and tables."""
    for needed in ("typer", "fastapi"):
        pytest.importorskip(needed)
    folder = str(DOCS / "_generate")
    sys.path.insert(0, folder)
    try:
        yield {name: importlib.import_module(name) for name in ("dialect_pages", "markup", "tables")}
    finally:
        sys.path.remove(folder)


def test_each_dialect_has_a_page_with_its_guide_its_card_and_all_its_samples(generate: dict[str, ModuleType]) -> None:
    pages = generate["dialect_pages"].pages()
    assert list(pages) == [f"dialects/{name}.md" for name in dialect_names()]
    for name, page in zip(dialect_names(), pages.values(), strict=True):
        dialect = get_dialect(name)
        assert dialect.guide in page
        card = inspect.getdoc(sys.modules[type(dialect).__module__]) or ""
        assert generate["markup"].from_docstring(card.splitlines()[-1]) in page
        cases = generate["dialect_pages"].read_corpus(ROOT / "tests" / "corpus" / f"{name}.txt")
        for case in cases:
            if case.output is not None:
                assert generate["markup"].indented(case.sections["events"]) in page, case.title


def test_each_table_is_used_and_each_that_is_asked_for_is_there(generate: dict[str, ModuleType]) -> None:
    tables = generate["tables"]
    asked = {name for page in PAGES for name in tables.PLACE.findall(page.read_text(encoding="utf-8"))}
    assert asked == set(tables.TABLES)
    for name in sorted(asked):
        lines = [line for line in tables.TABLES[name]().splitlines() if line.startswith("|")]
        assert name == "strict-keywords" or len(lines) > 2


def test_the_figures_are_those_of_the_ratchet(generate: dict[str, ModuleType]) -> None:
    noted = json.loads((ROOT / "benchmarks" / "conformance.json").read_text(encoding="utf-8"))
    table = generate["tables"].conformance()
    for figures in noted.values():
        assert f"| {figures['right']} | {figures['invalid accepted']} | {figures['valid refused']} |" in table


def test_a_fence_holds_whatever_is_in_it(generate: dict[str, ModuleType]) -> None:
    fence = generate["markup"].fence
    assert fence("a") == "```text\na\n```"
    assert fence("```\n````", "json") == "`````json\n```\n````\n`````"


# -- the reference of the programming interface

PUBLIC = ("isogloss", "isogloss.constraints", "isogloss.engines", "isogloss.schema", "isogloss.tokenizers")
DIRECTIVE = re.compile(r"^::: (?P<path>[\w.]+)(?P<options>(?:\n    [^\n]*)*)", re.MULTILINE)


def documented() -> set[str]:
    """The full names in the reference; of a module that is told as a whole, all its public names."""
    found: set[str] = set()
    for page in (DOCS / "reference" / "api").glob("*.md"):
        for match in DIRECTIVE.finditer(page.read_text(encoding="utf-8")):
            value = resolved(match["path"])
            found.add(match["path"])
            if inspect.ismodule(value) and "members: false" not in match["options"]:
                found |= {f"{match['path']}.{name}" for name in vars(value) if not name.startswith("_")}
    return found


def resolved(path: str) -> Any:
    """The module, or what is in it. Raises `AttributeError` where there is nothing of that name."""
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        module, _, name = path.rpartition(".")
        return getattr(importlib.import_module(module), name)


def test_the_reference_has_every_public_name() -> None:
    names = documented()
    described = {id(resolved(name)) for name in names if "." in name}
    missing = [
        f"{package}.{name}"
        for package in PUBLIC
        for name in importlib.import_module(package).__all__
        if f"{package}.{name}" not in names
        and id(getattr(importlib.import_module(package), name)) not in described
        and not inspect.ismodule(getattr(importlib.import_module(package), name))
    ]
    assert not missing
    assert "isogloss.Conversation" in names or id(isogloss.Conversation) in described


FETCHED = re.compile(r"<(?:script|img|link|iframe)[^>]+(?:src|href)=\"?(https?:[^\s\">]+)")
"""What a browser would fetch from elsewhere."""


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    for needed in ("material", "mkdocstrings", "typer", "fastapi"):
        pytest.importorskip(needed)
    # Never with --quiet: a warning that is not logged is not counted either.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "true"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    for name in dialect_names():
        assert (tmp_path / "site" / "dialects" / name / "index.html").is_file()
    for page in (tmp_path / "site").rglob("*.html"):
        assert not FETCHED.findall(page.read_text(encoding="utf-8")), page
