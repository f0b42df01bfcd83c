"""A bounded part of the conformance suites, held to the figures of the ratchet.

The suites are not part of the project: they are read from ``../shared/data`` beside it where they are there.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from isogloss.constraints.guarded_matcher import json_matcher
from isogloss.schema.lowering import lower
from isogloss.tokenizers import byte_level


def loaded(path: Path) -> ModuleType:
    """A module by its file: the benchmarks are no package of the project."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


conformance = loaded(Path(__file__).parents[1] / "benchmarks" / "conformance.py")
SUITES = conformance.suites(conformance.DATA)
BUGS = conformance.DATA.parent / "vectors" / "structured-bugs.json"
needs_data = pytest.mark.skipif(not SUITES, reason=f"no conformance suites in {conformance.DATA}")


def checked(name: str, suite: Any) -> Any:
    outcome = conformance.run(suite)
    wrong = {figure: outcome.figures[figure] for figure in conformance.LESS_IS_BETTER if figure != "by guard at end"}
    assert not any(wrong.values()), (name, wrong, outcome.failures[:10])
    return outcome


@needs_data
@pytest.mark.parametrize("name", ["draft2020-12", "draft2020-12 formats", "draft7"])
def test_every_case_of_the_test_suite_is_right(name: str) -> None:
    outcome = checked(name, SUITES[name])
    assert outcome.figures["right"] >= json.loads(conformance.RATCHET.read_text("utf-8"))[name]["right"]


@needs_data
def test_a_part_of_the_sample_of_real_schemas_is_right() -> None:
    suite = SUITES["maskbench"]
    part = suite._replace(groups=sorted(suite.groups, key=lambda group: len(str(group.schema)))[::3][:70])
    figures = checked("maskbench", part).figures
    refused = sum(count for figure, count in figures.items() if figure.startswith("by "))
    assert figures["by guard at end"] <= 0.03 * refused


@pytest.mark.skipif(not BUGS.is_file(), reason=f"no list of public bugs in {BUGS}")
def test_schemas_of_public_bugs_are_right() -> None:
    for entry in json.loads(Path(BUGS).read_text("utf-8")):
        if entry["kind"] != "engine" or not isinstance(entry.get("schema"), dict):
            continue
        value = lower(entry["schema"])
        for instances, valid in ((entry.get("good") or [], True), (entry.get("bad") or [], False)):
            for instance in instances:
                matcher = json_matcher(value, byte_level())
                text = conformance.compact(value, instance)
                accepted = matcher.accept_all(list(text)) == len(text) and matcher.is_complete
                assert accepted == valid, (entry["issue"], text)
