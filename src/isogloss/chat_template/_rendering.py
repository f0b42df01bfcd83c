"""One conversation through one template: a way of giving it that the template takes, and where content ends up.

Each way is rendered twice, plainly and with content marked. Where removing the marks does not give the plain prompt,
the template looked into what it was given, and less is marked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from isogloss.chat_template._environment import Trace, compiled
from isogloss.chat_template._input import Spell, Subject, TemplateInput, Variant, as_it_is, variants_for
from isogloss.chat_template._marks import PRIVATE_USE, Marks, Piece
from isogloss.errors import TemplateError
from isogloss.messages import Conversation, UserMessage


class Rendered(NamedTuple):
    """A prompt in pieces, and what it was made of."""

    pieces: list[Piece]
    given: TemplateInput


class _Plain(NamedTuple):
    """A prompt without marks, and what it was made of. ``used`` are the private-use characters in all that the template
    had, ``others_spell`` says whether a string that nobody said spells a special token."""

    variant: Variant
    given: TemplateInput
    text: str
    used: frozenset[str]
    others_spell: bool


class _Way(NamedTuple):
    """What is marked besides calls: whole texts, and the names of tools; without that, only those of them that spell a
    special token are. And whether the template's loops tell which message they are at."""

    marks_texts: bool
    marks_tools: bool
    is_traced: bool

    def marks(self, subject: Subject) -> bool:
        """Whether that string is marked whatever it spells."""
        if subject.is_prose:
            return self.marks_texts
        return subject.message >= 0 or self.marks_tools


_WAYS = (
    _Way(True, True, True),
    _Way(True, True, False),
    _Way(True, False, True),
    _Way(False, True, False),
    _Way(False, False, False),
)
_NAME = re.compile(r"[\w-]+")


class Rendering:
    """``spelled`` matches special tokens. ``variables`` are the template's, besides messages and tools."""

    def __init__(self, source: str, spelled: re.Pattern[str], variables: Mapping[str, Any]) -> None:
        self._source = source
        self._spelled = spelled
        self._variables = {"documents": None, **variables}

    def opening(self) -> str:
        """What the template writes where the assistant is to speak; nothing where that cannot be told."""
        asked = self._given(Conversation((UserMessage("Go on."),)), Variant())
        try:
            closed, opened = (self._run(asked, generation_prompt=opens) for opens in (False, True))
        except TemplateError:
            return ""
        return opened.removeprefix(closed) if opened.startswith(closed) else ""

    def whole(self, conversation: Conversation, *, generation_prompt: bool, trust_content: bool) -> Rendered:
        """The prompt. Raises `TemplateError`."""
        variants = variants_for(conversation)
        plain: dict[int, _Plain] = {}
        refusals: dict[int, TemplateError] = {}
        for way in _WAYS:
            for number, variant in enumerate(variants):
                if number in refusals:
                    continue
                try:
                    if number not in plain:
                        plain[number] = self._plain(conversation, variant, generation_prompt)
                    pieces = self._marked(conversation, plain[number], way, generation_prompt)
                except TemplateError as refusal:
                    refusals[number] = refusal
                    continue
                if pieces is not None:
                    return Rendered(pieces, plain[number].given)
        if trust_content and plain:
            prompt = plain[min(plain)]
            return Rendered([Piece(prompt.text)], prompt.given)
        if not refusals:
            raise self._looks_into(conversation)
        # What a template refuses in one form it often takes in another, and then leaves something out.
        raise next((refusals[number] for number in sorted(refusals) if number in plain), refusals[min(refusals)])

    def _given(self, conversation: Conversation, variant: Variant, spell: Spell = as_it_is) -> TemplateInput:
        return TemplateInput(conversation, variant, has_developers="developer" in self._source, spell=spell)

    def _plain(self, conversation: Conversation, variant: Variant, generation_prompt: bool) -> _Plain:
        said: list[str] = []
        others: list[str] = []

        def note(text: str, number: int) -> str:
            (others if number < 0 else said).append(text)
            return text

        given = self._given(conversation, variant, note)
        strings = (self._source, "".join(said), "".join(others))
        used = {character for text in strings if not text.isascii() for character in PRIVATE_USE.findall(text)}
        try:
            text = self._run(given, generation_prompt=generation_prompt)
        except TemplateError as refusal:
            pointer = self._where(conversation, variant, generation_prompt)
            raise TemplateError(
                f"The template does not take the conversation: {refusal.message}", pointer=pointer
            ) from None
        return _Plain(variant, given, text, frozenset(used), any(map(self._spelled.search, others)))

    def _where(self, conversation: Conversation, variant: Variant, generation_prompt: bool) -> str | None:
        """The message that the template was at when it refused."""
        given = self._given(conversation, variant)
        trace = Trace(Marks(()), given.messages)
        try:
            self._run(given, generation_prompt=generation_prompt, trace=trace)
        except TemplateError:
            return f"/messages/{given.positions[trace.item]}" if trace.item >= 0 else None
        return None

    def _marked(
        self, conversation: Conversation, plain: _Plain, way: _Way, generation_prompt: bool
    ) -> list[Piece] | None:
        """The prompt in pieces; ``None`` where that changes it. Raises `TemplateError` for what is left out."""
        try:
            marks = Marks(plain.used)
        except ValueError:
            return None
        subjects, spells, around = plain.given.subjects, self._spelled.search, marks.around
        marks_all, others_spell = way.marks_texts and way.marks_tools, plain.others_spell

        def spell(text: str, number: int) -> str:
            if number < 0:
                return around(text, len(subjects)) if others_spell and spells(text) else text
            return around(text, number) if marks_all or way.marks(subjects[number]) or spells(text) else text

        given = self._given(conversation, plain.variant, spell)
        trace = Trace(marks, given.messages) if way.is_traced else None
        try:
            pieces = marks.read(self._run(given, generation_prompt=generation_prompt, trace=trace))
        except TemplateError:
            return None
        if pieces is None or "".join([piece.text for piece in pieces]) != plain.text:
            return None
        self._check_all_there(pieces, plain.given, way)
        return pieces

    def _check_all_there(self, pieces: list[Piece], given: TemplateInput, way: _Way) -> None:
        found = {piece.subject for piece in pieces}
        for number, subject in enumerate(given.subjects):
            if subject.is_required and number not in found and way.marks(subject):
                raise _left_out(subject)
        if not way.marks_tools:
            written = {name for piece in pieces if piece.subject < 0 for name in _NAME.findall(piece.text)}
            for subject in given.subjects:
                if subject.message < 0 and not written.issuperset(_NAME.findall(subject.text)):
                    raise _left_out(subject)

    def _looks_into(self, conversation: Conversation) -> TemplateError:
        spelling = (
            f"/messages/{position}"
            for position, message in enumerate(conversation.messages)
            if self._spelled.search(message.text)
        )
        return TemplateError(
            "The template looks into what was said, so that its own special tokens cannot be told from those that "
            "content spells; say `trust_content=True` to let content spell them",
            pointer=next(spelling, None),
        )

    def _run(self, given: TemplateInput, *, generation_prompt: bool, trace: Trace | None = None) -> str:
        """The template's text. Raises `TemplateError` for whatever a template raises."""
        template = compiled(self._source, is_traced=trace is not None)
        variables = {**self._variables, "add_generation_prompt": generation_prompt}
        if trace is not None:
            variables |= trace.variables()
        try:
            return template.render({**variables, "messages": given.messages, "tools": given.tools})
        except Exception as error:  # a template is a program, which may fail in any way
            reason = str(error) or type(error).__name__
            raise TemplateError(reason) from error


def _left_out(subject: Subject) -> TemplateError:
    if subject.message < 0:
        return TemplateError(f"The template leaves out {subject.what}", pointer="/tools")
    return TemplateError(f"The template leaves out {subject.what}", pointer=f"/messages/{subject.message}")
