"""Every case of every corpus file says what its dialect does, whole and at every cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from isogloss.dialects import dialect_names, get_dialect
from isogloss.testing import Case, check_output, event_line, read_corpus

CORPUS = Path(__file__).parent / "corpus"

CASES = [
    pytest.param(name, case, id=f"{name}-{case.title}")
    for name in dialect_names()
    if (CORPUS / f"{name}.txt").exists()
    for case in read_corpus(CORPUS / f"{name}.txt")
]

NEEDED = (
    "plain text",
    "reasoning then text",
    "one call",
    "parallel calls",
    "empty arguments",
    "every json type",
    "strings that hold",
    "unicode",
    "text around a call",
    "cut short",
    "malformed",
    "tool results",
)


@pytest.mark.parametrize("name", dialect_names())
def test_every_dialect_has_a_corpus_with_the_cases_that_all_have(name: str) -> None:
    titles = [case.title.lower() for case in read_corpus(CORPUS / f"{name}.txt")]
    missing = [needed for needed in NEEDED if not any(needed in title for title in titles)]
    assert not missing


@pytest.mark.parametrize(("name", "case"), CASES)
def test_prompt(name: str, case: Case) -> None:
    assert case.prompt(get_dialect(name)) == case.sections.get("prompt")


@pytest.mark.parametrize(("name", "case"), CASES)
def test_events_at_every_cut(name: str, case: Case) -> None:
    if case.output is None:
        assert "events" not in case.sections
        return
    events = check_output(
        get_dialect(name), case.output, case.tools, starts_in=case.starts_in, finish=case.finish, most=120
    )
    assert [event_line(event) for event in events] == case.sections["events"].splitlines()


@pytest.mark.parametrize("name", dialect_names())
def test_the_file_is_written_as_the_corpus_writer_writes_it(name: str) -> None:
    path = CORPUS / f"{name}.txt"
    assert "\n".join([case.write() for case in read_corpus(path)]) == path.read_text(encoding="utf-8")
