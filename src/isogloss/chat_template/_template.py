"""The template that a model was trained with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2.exceptions import TemplateSyntaxError

from isogloss.chat_template._environment import compiled
from isogloss.chat_template._files import DEFAULT, TemplateFiles, read_gguf, read_template, read_tokenizer_config
from isogloss.chat_template._rendering import Rendering
from isogloss.chat_template._speech import Part, Turns
from isogloss.chat_template._spellings import longest_of
from isogloss.checks import expect
from isogloss.errors import TemplateError
from isogloss.messages import Conversation, ToolChoice
from isogloss.prompt import Prompt, Segment

WITH_TOOLS = "tool_use"
"""The template that goes before the default one where tools are offered."""


class ChatTemplate:
    """A Jinja chat template. Immutable; one instance serves everybody.

    ``source`` is its text, or several by name, of which ``tool_use`` is taken where tools are offered and else
    ``default``. ``tokens`` are those that it knows by a name, such as ``bos_token``. ``special_tokens`` are the
    spellings of the vocabulary's control tokens: each becomes a marker where the template itself writes it, and none
    where content spells it. Raises `TemplateError` for what is no template.
    """

    def __init__(
        self,
        source: str | Mapping[str, str],
        *,
        tokens: Mapping[str, str] | None = None,
        special_tokens: Iterable[str] = (),
    ) -> None:
        expect(source, (str, Mapping), "a chat template")
        self.sources = MappingProxyType({DEFAULT: source} if isinstance(source, str) else dict(source))
        self.tokens = MappingProxyType(dict(tokens or {}))
        self.special_tokens = frozenset(special_tokens) - {""}
        spelled = longest_of(self.special_tokens)
        self._spelled = re.compile(f"({spelled})")
        self._units = re.compile(rf"{spelled}|<[^<>\s]{{1,64}}>|[\s\S]")
        for name, text in self.sources.items():
            try:
                compiled(text, is_traced=False)
            except TemplateSyntaxError as error:
                raise TemplateError(f"The template `{name}` does not compile: line {error.lineno}: {error}") from error

    @classmethod
    def from_gguf(cls, path: str | PathLike[str]) -> ChatTemplate:
        """The template in a model's GGUF file. Raises `TemplateError`, or `TokenizerError` for what is no GGUF."""
        return cls._of(read_gguf(Path(path)))

    @classmethod
    def from_tokenizer_config(cls, path: str | PathLike[str]) -> ChatTemplate:
        """The template in ``tokenizer_config.json`` (the file, or its folder) or in ``chat_template.jinja`` beside it,
        which goes first. Raises `TemplateError`."""
        return cls._of(read_tokenizer_config(Path(path)))

    @classmethod
    def from_jinja(cls, path: str | PathLike[str], *, special_tokens: Iterable[str] = ()) -> ChatTemplate:
        """The template in a file of its own. Raises `TemplateError`."""
        return cls(read_template(Path(path)), special_tokens=special_tokens)

    @classmethod
    def _of(cls, files: TemplateFiles) -> ChatTemplate:
        return cls(files.sources, tokens=files.tokens, special_tokens=files.special_tokens)

    def source_for(self, conversation: Conversation) -> str:
        """The template that a conversation is rendered with. Raises `TemplateError` where only others are there."""
        offers = bool(conversation.tools) and ToolChoice.of(conversation.tool_choice).mode != "none"
        name = WITH_TOOLS if offers and WITH_TOOLS in self.sources else DEFAULT
        if name not in self.sources:
            raise TemplateError(f"There is no default template, only {', '.join(sorted(self.sources))}")
        return self.sources[name]

    def render(
        self,
        conversation: Conversation,
        *,
        generation_prompt: bool = True,
        trust_content: bool = False,
        **arguments: Any,
    ) -> Prompt:
        """The prompt, as Hugging Face's transformers renders it. ``arguments`` are further variables of the template
        (``enable_thinking=False``); unless they are given, a conversation's reasoning effort is told as
        ``reasoning_effort``, ``enable_thinking`` and ``thinking``.

        Raises `TemplateError`, which says which message the template cannot take and why: it refuses it, leaves out
        what was said, or looks into it, so that what it writes cannot be told from content. ``trust_content`` renders
        the last kind all the same: every special token that content spells then becomes one.
        """
        expect(conversation, Conversation, "what is rendered")
        source = self.source_for(conversation)
        variables = {**self.tokens, **_effort(conversation.reasoning_effort), **arguments}
        rendering = Rendering(source, self._spelled, variables)
        try:
            pieces, given = rendering.whole(
                conversation, generation_prompt=generation_prompt, trust_content=trust_content
            )
        except RecursionError:
            raise TemplateError("The conversation holds a value that is nested too deeply for the template") from None
        turns = Turns(given, rendering.opening() if given.assistants else "", self._units)
        return Prompt(tuple(self._segments(turns.parts(pieces))))

    def _segments(self, parts: Iterable[Part]) -> Iterator[Segment]:
        """The parts as segments, each special token that the template wrote one of its own."""
        split = self._spelled.split
        for part in parts:
            if part.is_content:
                yield Segment(part.text, False, part.message, part.is_assistant)
                continue
            for number, text in enumerate(split(part.text)):
                if text:
                    yield Segment(text, number % 2 == 1, part.message, part.is_assistant)

    def __repr__(self) -> str:
        return f"<chat template {', '.join(self.sources)}>"


def _effort(effort: str | None) -> dict[str, Any]:
    """How templates are told of an effort: most know only whether to think."""
    if effort is None:
        return {}
    thinks = effort != "none"
    told = {"enable_thinking": thinks, "thinking": thinks}
    return {**told, "reasoning_effort": effort} if thinks else told
