"""Markers that arrive as control tokens, matched by id: what render writes scans back, whatever strings spell."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from isogloss.dialects import Dialect, dialect_names, get_dialect
from isogloss.errors import UnrepresentableError
from isogloss.events import Event, Piece, collect
from isogloss.messages import AssistantMessage, Conversation, Tool, ToolCall, UserMessage
from isogloss.prompt import Segment
from isogloss.testing import check_conservation, read_corpus, scan

CORPUS = Path(__file__).parent / "corpus"
TOOLS = (
    Tool("note", "", {"type": "object", "properties": {"text": {"type": "string"}, "tags": {"type": "array"}}}),
    Tool("now", "", {"type": "object", "properties": {}}),
)


def pieces_of(dialect: Dialect, message: AssistantMessage) -> list[Piece]:
    """The turn as an engine delivers it that knows the dialect's special tokens."""
    asked = Conversation((UserMessage("Go on."),), TOOLS)
    said = Conversation((UserMessage("Go on."), message), TOOLS)
    before = flat(dialect.render(asked).segments)
    after = flat(dialect.render(said, generation_prompt=False).segments)
    shared = 0
    while shared < min(len(before), len(after)) and before[shared] == after[shared]:
        shared += 1
    return [Piece(text, is_marker and text in dialect.markers.special) for text, is_marker in after[shared:]]


def flat(segments: Sequence[Segment]) -> list[tuple[str, bool]]:
    """Markers whole and content character by character, so that prompts can be compared."""
    found: list[tuple[str, bool]] = []
    for segment in segments:
        found += [(segment.text, True)] if segment.is_marker else [(char, False) for char in segment.text]
    return found


def scanned(dialect: Dialect, pieces: Sequence[Piece], starts_in: str = "text") -> list[Event]:
    events = scan(dialect, pieces, TOOLS, starts_in=starts_in, control=dialect.markers.special)
    check_conservation("".join(piece.text for piece in pieces), events)
    return events


@pytest.mark.parametrize("name", dialect_names())
def test_strings_that_spell_control_tokens_come_back(name: str) -> None:
    dialect = get_dialect(name)
    spelled = " ".join(sorted(dialect.markers.special)) or "nothing"
    calls = [ToolCall("", "note", {"text": text, "tags": ["x"]}) for text in ("plain", spelled, f"{spelled}\n")]
    carried = 0
    for call in calls:
        message = AssistantMessage("Here.", reasoning="Hm.", tool_calls=(call, ToolCall("", "now", {})))
        try:
            pieces = pieces_of(dialect, message)
        except UnrepresentableError:
            continue
        carried += 1
        prompt = dialect.render(Conversation((UserMessage("Go on."),), TOOLS)).text
        found = collect(scanned(dialect, pieces, dialect.starts_in(prompt)))
        assert [(c.name, c.arguments) for c in found.tool_calls] == [(c.name, c.arguments) for c in message.tool_calls]
        assert not found.malformed
        assert found.text.strip() == "Here."
        assert found.reasoning.strip() == "Hm."
    assert carried


CUT = {
    "deepseek": [
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁call▁begin｜>",
        "*note",
        "<｜tool▁sep｜>",
        '*{"text": "half',
        "<｜tool▁call▁end｜>",
    ],
    "gemma": ["<|tool_call>", "*call:note{text:", '<|"|>', "*half}", "<tool_call|>"],
    "kimi": [
        *("<|tool_calls_section_begin|>", "<|tool_call_begin|>", "*functions.note:0", "<|tool_call_argument_begin|>"),
        *('*{"text": "half', "<|tool_call_end|>"),
    ],
    "mistral": ["[TOOL_CALLS]", "*note", "[ARGS]", '*{"text": "half'],
}
NEXT = {
    "deepseek": [
        "<｜tool▁call▁begin｜>",
        "*now",
        "<｜tool▁sep｜>",
        "*{}",
        "<｜tool▁call▁end｜>",
        "<｜tool▁calls▁end｜>",
    ],
    "gemma": ["<|tool_call>", "*call:note{text:", '<|"|>', "*whole", '<|"|>', "*}", "<tool_call|>"],
    "kimi": [
        *("<|tool_call_begin|>", "*functions.now:1", "<|tool_call_argument_begin|>", "*{}", "<|tool_call_end|>"),
        "<|tool_calls_section_end|>",
    ],
    "mistral": ["[TOOL_CALLS]", "*now", "[ARGS]", "*{}"],
}


@pytest.mark.parametrize("name", sorted(CUT))
def test_a_string_that_a_control_token_cuts_off_does_not_merge_with_the_next_call(name: str) -> None:
    dialect = get_dialect(name)
    pieces = [
        Piece(char, False) if text.startswith("*") else Piece(text, True)
        for text in (*CUT[name], *NEXT[name])
        for char in (text[1:] if text.startswith("*") else [text])
    ]
    found = collect(scanned(dialect, pieces))
    assert len(found.malformed) == 1
    assert "half" in found.malformed[0].raw
    assert len(found.tool_calls) == 1
    assert found.tool_calls[0].arguments in ({}, {"text": "whole"})


@pytest.mark.parametrize("name", dialect_names())
def test_laws_1_and_5_on_damaged_corpus_outputs(name: str) -> None:
    """Whichever markers are control tokens and wherever they stand, and no event shows how they are told from text."""
    dialect = get_dialect(name)
    chance = random.Random(0)
    cases = [case for case in read_corpus(CORPUS / f"{name}.txt") if case.output]
    special = sorted(dialect.markers.special)
    for round_number in range(150):
        case = chance.choice(cases)
        output = damaged(case.output or "", dialect.markers.all, chance)
        control = special if round_number % 2 else chance.sample(dialect.markers.all, 3)
        whole = [Piece(text, text in control) for text in re.split(f"({'|'.join(map(re.escape, control))})", output)]
        events = scan(dialect, whole, case.tools, starts_in=case.starts_in, control=control)
        check_conservation(output, events)
        msgspec.json.encode(events)  # raises for half a character, which is what a control token is inside
        cut = scan(dialect, cut_pieces(whole), case.tools, starts_in=case.starts_in, control=control)
        assert cut == events, output


@pytest.mark.parametrize("wrapped", [str, Piece])
def test_half_a_character_in_text_stands_for_no_control_token(wrapped: type[str] | type[Piece]) -> None:
    dialect = get_dialect("hermes")
    events = scan(dialect, [wrapped("\ud83ctool_call>{}")], TOOLS, control=dialect.markers.all)
    assert collect(events).text == "\ufffdtool_call>{}"


def damaged(output: str, markers: Sequence[str], chance: random.Random) -> str:
    for _ in range(chance.randint(0, 3)):
        start = chance.randint(0, len(output))
        end = start + chance.choice((0, 0, 1, 8))
        output = output[:start] + chance.choice((*markers, "\ufeff", "\x00", '"', "\\")) + output[end:]
    return output


def cut_pieces(pieces: Sequence[Piece]) -> Iterator[Piece]:
    for piece in pieces:
        yield from [piece] if piece.is_control else map(Piece, piece.text)
