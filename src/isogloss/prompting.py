"""How the prompt of a turn is made: by the model's own chat template where it was trained on it, else by its dialect;
and where the conversation goes on, from the very tokens that were seen and sampled before."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from isogloss.chat_template import ChatTemplate
from isogloss.dialects._base import Dialect
from isogloss.dialects._continuation import extend
from isogloss.dialects._markers import REFUSAL, REFUSAL_CLOSE
from isogloss.dialects._told import format_prompt
from isogloss.engines import Chunk, ModelInfo
from isogloss.errors import TemplateError, UnrepresentableError
from isogloss.events import Event, collect
from isogloss.messages import AssistantMessage, Conversation, DeveloperMessage, Message, SystemMessage
from isogloss.prompt import Prompt
from isogloss.sampled_turns import SampledTurns
from isogloss.tokenizers import Tokenizer

_NAMED_TOKENS = re.compile(r"\b(?:bos|eos)_token\b")


class Prompted(msgspec.Struct, frozen=True):
    """A prompt as text. Its tokens are ``ids`` where it goes on from an earlier turn, else those of ``prompt``.

    ``is_templated``: the model's own chat template made it.
    """

    text: str
    is_templated: bool
    ids: tuple[int, ...] | None = None
    prompt: Prompt | None = None

    def tokens(self, tokenizer: Tokenizer) -> tuple[int, ...]:
        """The token ids."""
        if self.ids is not None:
            return self.ids
        return tuple(self.prompt.tokens(tokenizer)) if self.prompt is not None else ()


class Prompter:
    """Makes the prompts of one model. ``uses_template``: its own chat template goes before the dialect's way."""

    def __init__(self, dialect: Dialect, tokenizer: Tokenizer | None, model: ModelInfo, *, uses_template: bool) -> None:
        self._dialect = dialect
        self._tokenizer = tokenizer
        self._turns = SampledTurns()
        self.template = self._trained_on(model) if uses_template else None

    def prompt(self, conversation: Conversation) -> Prompted:
        """The prompt of the model's next turn. Raises `UnrepresentableError`."""
        return self._continued(conversation) or self._rendered(conversation)

    def keep(
        self,
        conversation: Conversation,
        said: AssistantMessage,
        prompt_ids: Sequence[int],
        completion_ids: Sequence[int],
        *,
        is_templated: bool,
    ) -> None:
        """Keep a turn that was sampled, so that the prompt of the next one can go on from it.

        ``completion_ids`` with or without the token that ended the turn.
        """
        control = {} if self._tokenizer is None else self._tokenizer.special_tokens
        ends = {control.get(text) for text in self._dialect.markers.stop}
        if completion_ids and completion_ids[-1] in ends:
            completion_ids = completion_ids[:-1]
        self._turns.keep(conversation, said, prompt_ids, completion_ids, is_templated=is_templated)

    def spells(self, ids: Sequence[int], output: str) -> bool:
        """Whether that output was sampled as these tokens."""
        return self._tokenizer is not None and bool(ids) and self._tokenizer.decode(ids) == output

    def _continued(self, conversation: Conversation) -> Prompted | None:
        """The prompt that begins with what was seen and sampled; ``None`` where there is none."""
        found = None if self._tokenizer is None else self._turns.find(conversation)
        if found is None or self._tokenizer is None:
            return None
        turn, new_messages = found
        try:
            ids = extend(
                self._dialect,
                self._templated if turn.is_templated else self._in_dialect,
                turn.prompt_ids,
                turn.completion_ids,
                new_messages,
                tokenizer=self._tokenizer,
                tools=conversation.tools,
            )
        except (TemplateError, UnrepresentableError):
            return None
        return Prompted(self._tokenizer.decode(ids), turn.is_templated, tuple(ids))

    def _rendered(self, conversation: Conversation) -> Prompted:
        if self.template is not None:
            try:
                prompt = self._templated(conversation)
            except TemplateError:
                pass  # it cannot take this conversation; the dialect may
            else:
                return Prompted(prompt.text, True, prompt=prompt)
        prompt = self._in_dialect(conversation)
        return Prompted(prompt.text, False, prompt=prompt)

    def _templated(self, conversation: Conversation, generation_prompt: bool = True) -> Prompt:
        if self.template is None:
            raise TemplateError("There is no template")
        return self.template.render(_with_format_told(conversation), generation_prompt=generation_prompt)

    def _in_dialect(self, conversation: Conversation, generation_prompt: bool = True) -> Prompt:
        return self._dialect.render(conversation, generation_prompt=generation_prompt)

    def _trained_on(self, model: ModelInfo) -> ChatTemplate | None:
        """The template of a model that was trained on the dialect by it."""
        source = model.chat_template
        if not source or self._dialect.renders_as_trained or not self._dialect.detects(source):
            return None
        if not model.template_tokens.keys() >= set(_NAMED_TOKENS.findall(source)):
            return None  # without its first token a prompt is not what the model was trained on
        special_tokens = () if self._tokenizer is None else self._tokenizer.special_tokens
        try:
            return ChatTemplate(source, tokens=model.template_tokens, special_tokens=special_tokens)
        except TemplateError:
            return None


class Sample:
    """A turn while it is sampled, to be kept once it is whole.

    Nothing is kept of one whose tokens the engine does not tell, or that did not come to its end.
    """

    def __init__(
        self, prompter: Prompter, conversation: Conversation, prompt_ids: Sequence[int], *, is_templated: bool
    ) -> None:
        self._prompter = prompter
        self._conversation = conversation
        self._prompt_ids = prompt_ids
        self._is_templated = is_templated
        self._ids: list[int] = []
        self._events: list[Event] = []

    def take(self, chunk: Chunk) -> None:
        """What the engine said."""
        self._ids.extend(chunk.token_ids)

    def add(self, event: Event) -> None:
        """What it was."""
        self._events.append(event)

    def keep(self, output: Sequence[str]) -> None:
        """Keep the turn, of which the last event has been added. ``output`` is what the model wrote, in pieces."""
        said = collect(self._events)
        is_whole = said.finish in ("stop", "tool_calls") and not said.malformed
        if is_whole and self._prompter.spells(self._ids, "".join(output)):
            self._prompter.keep(self._conversation, said, self._prompt_ids, self._ids, is_templated=self._is_templated)


def _with_format_told(conversation: Conversation) -> Conversation:
    """Templates know nothing of an answer's format and of refusals, so instructions and text tell them."""
    messages: list[Message] = [
        msgspec.structs.replace(message, text=message.text or f"{REFUSAL}{message.refusal}{REFUSAL_CLOSE}")
        if isinstance(message, AssistantMessage) and message.refusal
        else message
        for message in conversation.messages
    ]
    told = format_prompt(conversation.response_format)
    if told:
        first = messages[0] if messages else None
        if isinstance(first, SystemMessage | DeveloperMessage):
            messages[0] = msgspec.structs.replace(first, text=f"{first.text}\n\n{told}" if first.text else told)
        else:
            messages.insert(0, SystemMessage(told))
    return msgspec.structs.replace(conversation, messages=tuple(messages), response_format=None)
