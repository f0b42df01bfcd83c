"""A prompt: markup that the dialect wrote and content that others wrote, never mixed up.

A marker segment becomes a control token where the tokenizer has it as one. Content is encoded with special tokens
switched off, so that no content can forge a control token. Where a marker is ordinary text to the tokenizer it joins
its neighbours before encoding, as if the prompt were one string.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from isogloss.checks import expect_tokenizer

if TYPE_CHECKING:
    from isogloss.tokenizers import Tokenizer


class Segment(msgspec.Struct, frozen=True, gc=False):
    """A run of one kind. ``message`` is the position of the message it belongs to (-1: none); ``is_assistant`` says
    that the model said it (and would be trained to say it)."""

    text: str
    is_marker: bool = False
    message: int = -1
    is_assistant: bool = False


class Prompt(msgspec.Struct, frozen=True):
    """Segments in order. ``str(prompt)`` and ``prompt.text`` are the whole as text."""

    segments: tuple[Segment, ...]

    @property
    def text(self) -> str:
        return "".join([segment.text for segment in self.segments])

    def __str__(self) -> str:
        return self.text

    def tokens(self, tokenizer: Tokenizer) -> list[int]:
        """The token ids. No id that a content segment gave rise to is a control token. Raises `TypeError` for what is
        no tokenizer of `isogloss.tokenizers`."""
        ids: list[int] = []
        for token, run in self._runs(tokenizer):
            if token is None:
                ids += tokenizer.encode("".join([segment.text for segment in run]))
            else:
                ids.append(token)
        return ids

    def loss_mask(self, tokenizer: Tokenizer) -> list[bool]:
        """One entry a token of `tokens`: whether the assistant said it."""
        return [is_assistant for _, is_assistant, count in self._sources(tokenizer) for _ in range(count)]

    def message_indices(self, tokenizer: Tokenizer) -> list[int]:
        """One entry a token of `tokens`: the position of the message it came from, -1 for none."""
        return [message for message, _, count in self._sources(tokenizer) for _ in range(count)]

    def _sources(self, tokenizer: Tokenizer) -> Iterator[tuple[int, bool, int]]:
        """The message of each token, whether the assistant said it, and of how many tokens in a row that is so."""
        for token, run in self._runs(tokenizer):
            first = run[0]
            if token is not None:
                yield first.message, first.is_assistant, 1
            elif all(one.message == first.message and one.is_assistant == first.is_assistant for one in run):
                yield first.message, first.is_assistant, len(tokenizer.encode("".join([one.text for one in run])))
            else:
                for segment in _segment_of_each_token(run, tokenizer):
                    yield segment.message, segment.is_assistant, 1

    def _runs(self, tokenizer: Tokenizer) -> Iterator[tuple[int | None, list[Segment]]]:
        """Each marker that is a control token, with its id, and between them the segments that encode as one text."""
        expect_tokenizer(tokenizer)
        special = tokenizer.special_tokens
        run: list[Segment] = []
        for segment in self.segments:
            token = special.get(segment.text) if segment.is_marker else None
            if token is None:
                if segment.text:
                    run.append(segment)
                continue
            if run:
                yield None, run
                run = []
            yield token, [segment]
        if run:
            yield None, run


def _segment_of_each_token(run: list[Segment], tokenizer: Tokenizer) -> Iterator[Segment]:
    """Joined text encodes as one string; a token belongs to the segment in which its first byte lies."""
    position = 0
    bounds = iter(run)
    segment = next(bounds)
    end = len(segment.text.encode())
    for token in tokenizer.encode("".join([segment.text for segment in run])):
        while position >= end:
            following = next(bounds, None)
            if following is None:
                break
            segment = following
            end += len(segment.text.encode())
        yield segment
        position += len(tokenizer.token_bytes(token))


class PromptWriter:
    """Collects segments."""

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self.message = -1
        self.is_assistant = False

    def marker(self, text: str) -> None:
        """Markup: one marker, exactly as the vocabulary may spell it."""
        self._segments.append(Segment(text, True, self.message, self.is_assistant))

    def text(self, text: str) -> None:
        """Content, or markup that is ordinary text in every vocabulary."""
        if text:
            self._segments.append(Segment(text, False, self.message, self.is_assistant))

    def ends_with(self, marker: str) -> bool:
        """Whether this marker is the last that was written."""
        return bool(self._segments) and self._segments[-1].is_marker and self._segments[-1].text == marker

    def extend(self, segments: Iterable[Segment]) -> None:
        """Segments made elsewhere, now said by this writer's message."""
        for segment in segments:
            self._segments.append(Segment(segment.text, segment.is_marker, self.message, self.is_assistant))

    def prompt(self) -> Prompt:
        return Prompt(tuple(self._segments))
