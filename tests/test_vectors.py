"""What other projects' own tests expect of the same model output, whole and cut.

The vectors are not part of this project: without the folder that holds them the tests are skipped. White space is not
compared, since each project draws the line between markup and text elsewhere; the corpus files say where ours is. Cases
in which another project's expectation is a fault, or another policy than ours, are listed in ``vectors_deviations.md``
with the reason; a listed case that would agree is reported too.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from isogloss.dialects import Dialect, dialect_names, get_dialect
from isogloss.events import collect
from isogloss.messages import AssistantMessage, Tool, ToolCall
from isogloss.testing import check_conservation, cuts, scan

VECTORS = Path(__file__).parents[1].parent / "shared" / "vectors"
DEVIATIONS = Path(__file__).with_name("vectors_deviations.md")
MOST_CUTS = 24

DIALECTS: dict[str, tuple[str, ...]] = {
    "deepseek_r1": ("deepseek",),
    "deepseek_r1_reasoning": ("deepseek",),
    "deepseek_v3": ("deepseek",),
    "deepseek_v31": ("deepseek",),
    "deepseek_v32_dsml": ("deepseek_dsml", "dsml", "deepseek_v32"),
    "deepseek_v4_dsml": ("deepseek_dsml", "dsml", "deepseek_v4", "deepseek_v32"),
    "deepseek_v41_dsml": ("deepseek_dsml", "dsml", "deepseek_v41", "deepseek_v32"),
    "gemma4": ("gemma",),
    "granite3": ("granite",),
    "granite4(hermes)": ("hermes",),
    "kimi_k2": ("kimi",),
    "lfm2_pythonic": ("lfm",),
    "llama3_json": ("llama3",),
    "llama4_pythonic": ("pythonic",),
    "longcat(hermes-like)": ("longcat",),
    "minicpm5_xml": ("minicpm5",),
    "minimax_m2": ("minimax",),
    "mistral_v3": ("mistral",),
    "mistral_v11+": ("mistral",),
    "mistral_v11+(ministral3)": ("mistral",),
    "olmo3_pythonic": ("olmo3",),
    "phi4_mini": ("phi4",),
    "reka(hermes)": ("hermes",),
    "think_tags": ("qwen3",),
}
"""Names of ours for the formats that go by another name there; any other format has its own name here too."""


class Vector(msgspec.Struct):
    """One case: an output in the pieces that its source fed, and what should come of it."""

    name: str
    dialects: tuple[str, ...]
    pieces: list[str]
    tools: list[Tool]
    starts_in: str
    calls: list[tuple[str, Any]] | None
    """Names and arguments; ``None`` for arguments that are no JSON, and must not come out as a call. ``None`` where the
    source drops the calls because the tool choice forbids them, which is not a scanner's business."""
    text: str | None
    reasoning: str | None

    @property
    def dialect(self) -> Dialect | None:
        known = [name for name in self.dialects if name in dialect_names()]
        return get_dialect(known[0]) if known else None


# -- reading


def engine_vectors() -> Iterator[Vector]:
    """What the unit tests of serving engines expect."""
    counted: Counter[str] = Counter()
    for entry in json.loads((VECTORS / "engines.json").read_text(encoding="utf-8")):
        kind = entry["format"]
        wanted = entry["expect"]
        yield Vector(
            name=f"{kind}/{counted[kind]}",
            dialects=DIALECTS.get(kind, (kind,)),
            pieces=[dropped(entry["text"]) if "drop_tokens" in entry["source"] else entry["text"]],
            tools=[tool_of(tool.get("function", tool)) for tool in entry["tools"] or ()],
            starts_in="reasoning" if entry["starts_in_reasoning"] else "text",
            calls=None if "tool_choice_none" in entry["source"] else calls_of(wanted["calls"]),
            text=wanted["content"] or "",
            reasoning=None if entry["parse_kind"].startswith("tool parser") else wanted["reasoning"] or "",
        )
        counted[kind] += 1


def scanner_vectors() -> Iterator[Vector]:
    """What the tests of oh-my-pi's scanners expect."""
    counted: Counter[str] = Counter()
    for entry in json.loads((VECTORS / "dialects-oh-my-pi.json").read_text(encoding="utf-8")):
        kind = entry["dialect"]
        name = f"oh-my-pi:{kind}/{counted[kind]}"
        counted[kind] += 1
        chunks, wanted = entry["chunks"], entry["expect"]
        if isinstance(chunks, dict) and "render" in chunks:
            continue  # see test_a_long_call_in_many_pieces
        pieces = chunks if isinstance(chunks, list) else list(chunks["input"])
        yield Vector(
            name=name,
            dialects=dialects_of(kind, "".join(pieces), entry["options"]),
            pieces=pieces,
            tools=[tool_of(tool) for tool in entry.get("tools", ())],
            starts_in="text",
            calls=[(c["name"], None if "__parseError" in c["arguments"] else c["arguments"]) for c in wanted["calls"]],
            text=wanted.get("text"),
            reasoning=wanted.get("thinking"),
        )


def calls_of(entries: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    return [(entry["name"], entry.get("arguments")) for entry in entries]


def dropped(text: str) -> str:
    """Without the tokens that the source's detokenizer does not show to the parser."""
    return text.replace("<bos>", "").replace("<eos>", "")


def tool_of(entry: dict[str, Any]) -> Tool:
    return Tool(entry["name"], entry.get("description") or "", entry.get("parameters") or {"type": "object"})


LEAKED = (("```thinking", "gemini"), ("<|channel|>", "harmony"), ("<thinking>", "anthropic"))


def dialects_of(kind: str, output: str, options: dict[str, Any]) -> tuple[str, ...]:
    """The dialect whose markup is in the output, where the source's own scanner reads several."""
    if kind == "healing:thinking":
        return (next((name for mark, name in LEAKED if mark in output), "qwen3"),)
    if "DSML" in output or options.get("xmlTagset") == "dsml":
        return DIALECTS["deepseek_v4_dsml"]
    return DIALECTS.get(kind, (kind,))


def deviations() -> dict[str, str]:
    """The reasons by the names of the cases: a bullet begins with the names in backticks."""
    found: dict[str, str] = {}
    for line in DEVIATIONS.read_text(encoding="utf-8").splitlines():
        bullet = re.match(r"- ((?:`[^`]+`,? )+)(?P<reason>.+)", line)
        if bullet is not None:
            found.update(dict.fromkeys(re.findall(r"`([^`]+)`", bullet[1]), bullet["reason"]))
    return found


def all_vectors() -> list[Vector]:
    return [*engine_vectors(), *scanner_vectors()] if VECTORS.is_dir() else []


# -- comparing


def difference(vector: Vector, found: AssistantMessage) -> str | None:
    """What is not as expected, or ``None``."""
    if vector.calls is not None:
        wanted = [(name, arguments) for name, arguments in vector.calls if arguments is not None]
        calls = [(call.name, call.arguments) for call in found.tool_calls]
        if json.dumps(calls, sort_keys=True) != json.dumps(wanted, sort_keys=True):
            return f"calls {calls} instead of {wanted}"
        if len(wanted) < len(vector.calls) and not found.malformed:
            return "a broken call is not reported"
    for field in ("text", "reasoning"):
        expected = getattr(vector, field)
        if expected is not None and solid(getattr(found, field)) != solid(expected):
            return f"{field} {getattr(found, field)!r} instead of {expected!r}"
    return None


def solid(text: str) -> str:
    return "".join(text.split())


def differences(vector: Vector, dialect: Dialect) -> Iterable[str]:
    """What is not as expected, as its source cut the output, whole, and cut elsewhere."""
    whole = "".join(vector.pieces)
    for pieces in (vector.pieces, [whole], *cuts(whole, MOST_CUTS)):
        events = scan(dialect, pieces, vector.tools, starts_in=vector.starts_in)
        check_conservation(whole, events)
        wrong = difference(vector, collect(events))
        if wrong is not None:
            yield f"{wrong}, in {len(pieces)} pieces"


CASES = [pytest.param(vector, id=vector.name) for vector in all_vectors()]
EXPECTED = deviations()


@pytest.mark.skipif(not CASES, reason=f"no vectors in {VECTORS}")
def test_vectors_are_there() -> None:
    known = {case.values[0].name for case in CASES}
    assert len(known) == len(CASES)
    assert set(EXPECTED) <= known, "deviations are listed of cases that do not exist"


@pytest.mark.parametrize("vector", CASES)
def test_vector(vector: Vector) -> None:
    dialect = vector.dialect
    if dialect is None:
        pytest.skip(f"no dialect for {vector.name}")
    found = list(differences(vector, dialect))
    if vector.name in EXPECTED:
        assert found, f"{vector.name} agrees now, take it out of {DEVIATIONS.name}"
    else:
        assert not found, f"{vector.pieces!r}: {found[0]}"


@pytest.mark.parametrize("name", ["deepseek", "kimi"])
@pytest.mark.parametrize("size", [7, 13, 64])
def test_a_long_call_in_many_pieces(name: str, size: int) -> None:
    if name not in dialect_names():
        pytest.skip(f"no dialect {name}")
    dialect = get_dialect(name)
    content = "line of generated file content\n" * 1000
    output = dialect.render_calls([ToolCall("", "write", {"path": "a.ts", "content": content})]) + " Done writing."
    pieces = [output[at : at + size] for at in range(0, len(output), size)]
    found = collect(scan(dialect, pieces))
    assert [call.arguments for call in found.tool_calls] == [{"path": "a.ts", "content": content}]
    assert found.text.strip() == "Done writing."
    cut_short = collect(scan(dialect, pieces[: len(pieces) // 2]))
    assert not cut_short.tool_calls
    assert cut_short.malformed
