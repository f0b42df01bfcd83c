"""The next prompt of a conversation as exactly the tokens that were seen and sampled, and what comes after them.

A prompt that is rendered anew spells what the model said in the renderer's way, not in the model's: other tokens for
the same text, which neither an engine's cache nor a training run knows. So the ids are kept, and only what follows is
rendered: in a small conversation of the same shape, whose end it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from isogloss.errors import TemplateError, UnrepresentableError
from isogloss.events import Piece, collect
from isogloss.messages import (
    AssistantMessage,
    Conversation,
    DeveloperMessage,
    Message,
    SystemMessage,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from isogloss.prompt import Prompt, Segment

if TYPE_CHECKING:
    from isogloss.dialects._base import Dialect
    from isogloss.tokenizers import Tokenizer

Render = Callable[[Conversation, bool], Prompt]
"""How a conversation becomes a prompt, with or without the opening of the assistant's turn."""

_TAIL = 256
"""How many tokens of a prompt are looked at for the opening of the assistant's turn."""
_EFFORTS = (None, "none")
_ASKED = UserMessage("Go on.")
_CALL = ToolCall("functions.f:0", "f", {})
_CONTEXTS: tuple[tuple[Message, ...], ...] = (
    (_ASKED,),
    (_ASKED, AssistantMessage(tool_calls=(_CALL,)), ToolMessage(_CALL.id, _CALL.name, "Done.")),
)
"""What a turn of the assistant comes after. Behind results some families open no new one."""


class _Setting(NamedTuple):
    """Where the turn stands: a small conversation of the same shape, and what opens the turn behind it."""

    conversation: Conversation
    opening: str


def extend(
    dialect: Dialect,
    render: Render,
    prompt_ids: Sequence[int],
    completion_ids: Sequence[int],
    new_messages: Sequence[Message],
    *,
    tokenizer: Tokenizer,
    tools: Sequence[Tool],
) -> list[int]:
    """See `Dialect.extend`. ``render`` is how the prompt was made: the dialect's way, or a chat template's."""
    tail = tokenizer.decode(prompt_ids[-_TAIL:])
    asked, opening = _setting(dialect, render, tail, tools)
    pieces = list(_pieces(completion_ids, tokenizer))
    turn = _turn(dialect, pieces, tools, dialect.starts_in(tail), tokenizer)
    if any(isinstance(message, UserMessage) for message in new_messages):
        _check_nothing_dropped(dialect, render, tokenizer.decode(prompt_ids).removesuffix(opening), tools)
    whole = render(_behind(asked, turn, *new_messages), True).segments
    start, end = _bounds(whole, len(asked.messages))
    _check_unchanged(render(_behind(asked, turn), False).text, Prompt(whole[:end]).text, new_messages)
    prefill = opening.removeprefix(Prompt(whole[:start]).text.removeprefix(render(asked, False).text))
    spelling = _Spelling(dialect, tokenizer)
    said = spelling.read(_without(prefill, whole[start:end]))
    seen = spelling.read((piece.text, piece.is_control) for piece in pieces)
    rest = _rest(said, seen, whole, end)
    return [*prompt_ids, *completion_ids, *Prompt(rest).tokens(tokenizer)]


def _behind(asked: Conversation, *messages: Message) -> Conversation:
    return msgspec.structs.replace(asked, messages=(*asked.messages, *messages))


def _setting(dialect: Dialect, render: Render, tail: str, tools: Sequence[Tool]) -> _Setting:
    """The one whose prompt ends as ``tail`` does. Raises `UnrepresentableError` when there is none."""
    found: list[_Setting] = []
    for context, effort in product(_CONTEXTS, _EFFORTS):
        asked = Conversation(context, tuple(tools), reasoning_effort=effort)
        try:
            closed, opened = render(asked, False).text, render(asked, True)
        except (TemplateError, UnrepresentableError):
            continue
        opening = opened.text[len(closed) :] if opened.text.startswith(closed) else ""
        ends_with = opening or opened.segments[-1].text
        if ends_with.strip() and tail.endswith(ends_with):
            found.append(_Setting(asked, opening))
    if not found:
        raise UnrepresentableError(f"The prompt does not end as one of `{dialect.name}` does: {tail[-40:]!r}")
    return max(found, key=lambda setting: len(setting.opening))


def _pieces(ids: Sequence[int], tokenizer: Tokenizer) -> Iterator[Piece]:
    """The text of ids, each control token a piece of its own."""
    control = {token: text for text, token in tokenizer.special_tokens.items()}
    run: list[int] = []
    for token in ids:
        if token not in control:
            run.append(token)
            continue
        if run:
            yield Piece(tokenizer.decode(run))
            run = []
        yield Piece(control[token], is_control=True)
    if run:
        yield Piece(tokenizer.decode(run))


def _turn(
    dialect: Dialect, pieces: Sequence[Piece], tools: Sequence[Tool], starts_in: str, tokenizer: Tokenizer
) -> AssistantMessage:
    scanner = dialect.scanner(tools, starts_in=starts_in, control=tokenizer.special_tokens)
    events = [event for piece in pieces for event in scanner.feed(piece)]
    turn = collect(events + scanner.finish())
    if turn.malformed:
        raise UnrepresentableError(f"The completion holds a malformed call: {turn.malformed[0].reason}")
    return turn


def _check_nothing_dropped(dialect: Dialect, render: Render, prompt: str, tools: Sequence[Tool]) -> None:
    """Raise where the prompt may hold reasoning that the family leaves out once the user speaks again."""
    thought = "Hm."
    opener, _, closer = dialect.render_reasoning(thought).partition(thought)
    answered = Conversation((_ASKED, AssistantMessage("Yes.", reasoning=thought), _ASKED))
    if not opener.strip() or thought in render(answered, True).text:
        return
    begins = re.compile(rf"{re.escape(opener.strip())}(?!\s*{re.escape(closer.strip())})")
    mentioned = len(begins.findall(render(Conversation((_ASKED,), tuple(tools)), False).text))
    if len(begins.findall(prompt)) > mentioned:
        raise UnrepresentableError("The prompt holds reasoning, which is left out of it once the user speaks again")


def _check_unchanged(before: str, after: str, new_messages: Sequence[Message]) -> None:
    """Raise where the new messages change what stands in front of them."""
    if before.startswith(after):
        return
    if any(isinstance(message, SystemMessage | DeveloperMessage) for message in new_messages):
        raise UnrepresentableError(
            "The new instructions are told at the start of the prompt, not behind the completion"
        )
    if any(isinstance(message, UserMessage) for message in new_messages):
        raise UnrepresentableError("Once the user speaks again, the turn is written without the model's reasoning")
    raise UnrepresentableError("The new messages change how the completion is written")


def _bounds(segments: Sequence[Segment], turn: int) -> tuple[int, int]:
    """From the first to behind the last segment that the assistant said in its turn, the message at ``turn``."""
    said = [position for position, segment in enumerate(segments) if segment.message == turn and segment.is_assistant]
    if not said:
        raise UnrepresentableError("The completion is empty, and the prompt has no place for an empty turn")
    return said[0], said[-1] + 1


def _without(prefill: str, said: Sequence[Segment]) -> list[tuple[str, bool]]:
    """What the assistant said, with whether it is a marker, behind what the prompt had already written for it."""
    parts = [(segment.text, segment.is_marker) for segment in said]
    if not "".join([text for text, _ in parts]).startswith(prefill):
        raise UnrepresentableError(f"The prompt had opened the turn with {prefill!r}, which its history leaves out")
    position, left = 0, len(prefill)
    while position < len(parts) and left >= len(parts[position][0]):
        left -= len(parts[position][0])
        position += 1
    return [(text[left:] if place == 0 else text, kind) for place, (text, kind) in enumerate(parts[position:])]


class _Spelling:
    """Reads text as markers and what stands between them. Those that are control tokens count as such tokens only."""

    def __init__(self, dialect: Dialect, tokenizer: Tokenizer) -> None:
        self._control = tokenizer.special_tokens.keys()
        as_text = sorted(set(dialect.markers.all) - self._control, key=len, reverse=True)
        self._as_text = re.compile(f"({'|'.join(map(re.escape, as_text)) or '(?!)'})")

    def read(self, parts: Iterable[tuple[str, bool]]) -> list[str]:
        """Alternately what stands between markers, and a marker."""
        gaps_and_markers = [""]
        for text, is_marker in parts:
            if is_marker and text in self._control:
                gaps_and_markers += [text, ""]
            else:
                gaps_and_markers[-1] += text
        return [
            piece
            for position, text in enumerate(gaps_and_markers)
            for piece in ([text] if position % 2 else self._as_text.split(text))
        ]


def _rest(said: list[str], seen: list[str], whole: Sequence[Segment], end: int) -> tuple[Segment, ...]:
    """What follows the completion, given how it would have been written (``said``) and how it was (``seen``)."""
    rest = tuple(whole[end:])
    if _are_alike(said, seen):
        return rest
    closer = said[-2] if len(said) > 1 and not said[-1].strip() else None
    if closer is not None and _are_alike(said[:-2], seen) and whole[end - 1].text == closer:
        return (whole[end - 1], *rest)  # the token that ended the turn is not part of the completion
    ended_with = seen[-2] if len(seen) > 1 and not seen[-1].strip() else None
    if ended_with is not None and rest and rest[0].text == ended_with and _are_alike(said, seen[:-2]):
        return rest[1:]  # the token that ended the turn is the one that opens the next
    if ended_with is not None and closer is not None and _are_alike(said[:-2], seen[:-2]):
        raise UnrepresentableError(f"The completion ends with {ended_with!r}, where its history has {closer!r}")
    raise UnrepresentableError("The completion is not written as its history is")


def _are_alike(one: list[str], other: list[str]) -> bool:
    """Whether two texts have the same markers and say the same between them, white space and JSON's spelling aside."""
    return len(one) == len(other) and all(
        a == b if position % 2 else _say_the_same(a, b) for position, (a, b) in enumerate(zip(one, other, strict=True))
    )


def _say_the_same(one: str, other: str) -> bool:
    if "".join(one.split()) == "".join(other.split()):
        return True
    try:
        first, second = _json(one), _json(other)
    except (ValueError, RecursionError):
        return False
    return bool(first == second)


def _json(text: str) -> Any:
    """The JSON value in a text, perhaps behind a word that says what follows."""
    return json.loads(text[text.index("{") :])
