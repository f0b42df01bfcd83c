"""conformance: which JSON texts a schema's matcher accepts, against test suites that say which are valid.

`python -m benchmarks conformance [--data DIR] [--update] [SUITE ...]` prints a table and compares it with the ratchet
in `conformance.json`, whose figures only get better: it fails where one got worse, and ``--update`` notes what got
better. ``DIR`` holds the JSON Schema Test Suite in ``jsts/`` (``tests/`` and ``remotes/``) and a sample of MaskBench in
``maskbench-300.tar.xz``; it is ``../shared/data`` beside the repository by default.

Every byte of a text is a token, and each mask is compared with what the matcher then accepts. A refused text is one of:

- ``grammar``: the grammar forbids a byte;
- ``guard inside``: a guard forbids a byte that is not the last;
- ``guard at end``: a guard forbids the last byte, so only the whole value told;
- ``incomplete``: every byte is allowed, but the text may not end there.
"""

from __future__ import annotations

import argparse
import json
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from isogloss.constraints.guarded_matcher import GuardedMatcher, json_matcher
from isogloss.errors import SchemaError, UnsatisfiableSchemaError
from isogloss.schema.lowering import Lowered, lower
from isogloss.tokenizers import byte_level

DATA = Path(__file__).parents[1].parent / "shared" / "data"
RATCHET = Path(__file__).with_name("conformance.json")

REMOTES = "http://localhost:1234/"
"""Where the test suite says that its remote schemas are."""

MORE_IS_BETTER = ("right",)
REFUSALS = ("by grammar", "by guard inside", "by guard at end", "by incomplete")
COUNTS = ("right", "invalid accepted", "valid refused", "schemas refused")
FIGURES = (*COUNTS, "cases of refused schemas", *REFUSALS, "masks wrong")
LESS_IS_BETTER = ("invalid accepted", "valid refused", "schemas refused", "by guard at end", "masks wrong")


class Case(NamedTuple):
    """One text and whether it is valid."""

    name: str
    instance: Any
    is_valid: bool


class Group(NamedTuple):
    """A schema and its cases."""

    name: str
    schema: Any
    cases: list[Case]


class Suite(NamedTuple):
    """Groups, the schemas they refer to, and whether ``format`` asserts in them."""

    groups: list[Group]
    registry: dict[str, Any]
    formats: bool


class Failure(NamedTuple):
    """What went wrong with a case or a schema."""

    name: str
    reason: str


class Outcome(NamedTuple):
    """The figures of one suite by name, what failed, and the seconds it took."""

    figures: dict[str, int]
    failures: list[Failure]
    seconds: float


def suites(data: Path) -> dict[str, Suite]:
    """The suites of which the data is there, by name."""
    found: dict[str, Suite] = {}
    tests = data / "jsts" / "tests"
    if tests.is_dir():
        registry = {
            REMOTES + path.relative_to(data / "jsts" / "remotes").as_posix(): json.loads(path.read_text("utf-8"))
            for path in sorted((data / "jsts" / "remotes").rglob("*.json"))
        }
        draft7 = "http://json-schema.org/draft-07/schema#"
        found["draft2020-12"] = Suite(list(_groups(tests / "draft2020-12")), registry, formats=False)
        found["draft2020-12 formats"] = Suite(
            list(_groups(tests / "draft2020-12" / "optional" / "format")), registry, formats=True
        )
        found["draft7"] = Suite(list(_groups(tests / "draft7", draft7)), registry, formats=False)
        found["draft7 formats"] = Suite(
            list(_groups(tests / "draft7" / "optional" / "format", draft7)), registry, formats=True
        )
    archive = data / "maskbench-300.tar.xz"
    if archive.is_file():
        found["maskbench"] = Suite(list(_maskbench(archive)), {}, formats=True)
    return found


def _groups(folder: Path, dialect: str | None = None) -> Iterator[Group]:
    for path in sorted(folder.glob("*.json")):
        for group in json.loads(path.read_text("utf-8")):
            schema = group["schema"]
            if dialect is not None and isinstance(schema, dict):
                schema = {"$schema": dialect, **schema}
            cases = [Case(test["description"], test["data"], test["valid"]) for test in group["tests"]]
            yield Group(f"{path.stem}: {group['description']}", schema, cases)


def _maskbench(archive: Path) -> Iterator[Group]:
    with tarfile.open(archive) as files:
        for member in sorted(files.getmembers(), key=lambda member: member.name):
            content = files.extractfile(member)
            if content is None or not member.name.endswith(".json"):
                continue
            entry = json.load(content)
            cases = [Case(test["description"], test["data"], test["valid"]) for test in entry["tests"]]
            yield Group(Path(member.name).stem, entry["schema"], cases)


def run(suite: Suite) -> Outcome:
    """Try every case of a suite."""
    figures = dict.fromkeys(FIGURES, 0)
    failures: list[Failure] = []
    start = time.process_time()
    for group in suite.groups:
        if _missing_remote(group.schema, suite.registry):
            continue
        try:
            value: Lowered | None = lower(group.schema, registry=suite.registry, formats=suite.formats)
        except UnsatisfiableSchemaError:
            value = None
        except SchemaError as error:
            figures["schemas refused"] += 1
            figures["cases of refused schemas"] += len(group.cases)
            failures.append(Failure(group.name, f"schema refused: {error}"))
            continue
        for case in group.cases:
            _try(value, group, case, figures, failures)
    return Outcome(figures, failures, time.process_time() - start)


def _missing_remote(schema: Any, registry: dict[str, Any]) -> bool:
    """Whether the schema needs a remote document that the data does not hold."""
    text = json.dumps(schema)
    return "localhost:1234" in text and "draft2020-12" not in text and not any(uri in text for uri in registry)


def _try(value: Lowered | None, group: Group, case: Case, figures: dict[str, int], failures: list[Failure]) -> None:
    name = f"{group.name}: {case.name}"
    if value is None:
        accepted, how = False, "grammar"
    else:
        accepted, how = verdict(value, case.instance, figures)
    if accepted == case.is_valid:
        figures["right"] += 1
        if not accepted:
            figures[f"by {how}"] += 1
    elif accepted:
        figures["invalid accepted"] += 1
        failures.append(Failure(name, "invalid accepted"))
    else:
        figures["valid refused"] += 1
        failures.append(Failure(name, f"valid refused by {how}"))


def compact(value: Lowered, instance: Any) -> bytes:
    """The instance as compact JSON, keys in schema order, integers without a fraction."""
    ordered = value.in_schema_order(_integral(instance))
    return json.dumps(ordered, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _integral(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e60:
        return int(value)
    if isinstance(value, list):
        return [_integral(item) for item in value]
    if isinstance(value, dict):
        return {name: _integral(item) for name, item in value.items()}
    return value


def verdict(value: Lowered, instance: Any, figures: dict[str, int]) -> tuple[bool, str]:
    """Whether a matcher accepts the instance, and by what it refuses it; wrong masks are counted."""
    text = compact(value, instance)
    matcher = json_matcher(value, byte_level())
    for index, byte in enumerate(text):
        allowed = bool(int(matcher.mask()[byte >> 5]) >> (byte & 31) & 1)
        accepted = matcher.accept(byte)
        figures["masks wrong"] += accepted != allowed
        if not accepted:
            if not (isinstance(matcher, GuardedMatcher) and matcher.violation is not None):
                return False, "grammar"
            return False, "guard at end" if index == len(text) - 1 else "guard inside"
    return matcher.is_complete, "incomplete"


def worse(name: str, figures: dict[str, int], noted: dict[str, int]) -> list[str]:
    """Figures of a suite that are worse than the ratchet has them."""
    fell = [f for f in MORE_IS_BETTER if figures[f] < noted.get(f, 0)]
    rose = [f for f in LESS_IS_BETTER if f in noted and figures[f] > noted[f]]
    return [f"{name}: {f} went from {noted[f]} to {figures[f]}" for f in (*fell, *rose)]


def main(arguments: list[str]) -> None:
    """Run, print, compare."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks conformance")
    parser.add_argument("suites", nargs="*")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--failures", action="store_true", help="print every failure")
    options = parser.parse_args(arguments)
    found = suites(options.data)
    if not found:
        print(f"no data in {options.data}")
        return
    ratchet = json.loads(RATCHET.read_text("utf-8")) if RATCHET.is_file() else {}
    problems = []
    columns = (*COUNTS, *REFUSALS, "masks wrong")
    print("| suite | cases | " + " | ".join(columns) + " | CPU s |")
    print("|---|---" + "|---" * (len(columns) + 1) + "|")
    for name in options.suites or found:
        outcome = run(found[name])
        figures = outcome.figures
        cases = sum(figures[key] for key in ("right", "invalid accepted", "valid refused", "cases of refused schemas"))
        cells = " | ".join(str(figures[column]) for column in columns)
        print(f"| {name} | {cases} | {cells} | {outcome.seconds:.1f} |")
        if options.failures:
            for failure in outcome.failures:
                print(f"  {failure.name}: {failure.reason}", file=sys.stderr)
        found_worse = worse(name, figures, ratchet.get(name, {}))
        problems += found_worse
        if options.update and not found_worse:
            ratchet[name] = {figure: figures[figure] for figure in (*MORE_IS_BETTER, *LESS_IS_BETTER)}
    if options.update:
        RATCHET.write_text(json.dumps(ratchet, indent=2) + "\n", encoding="utf-8")
    if problems:
        raise SystemExit("\n".join(problems))


if __name__ == "__main__":
    main(sys.argv[1:])
