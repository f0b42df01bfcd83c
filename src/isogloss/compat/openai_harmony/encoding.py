"""The encoding: conversations to tokens, tokens to messages, text to tokens and back."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import cached_property, lru_cache
from typing import Literal

from pydantic import BaseModel

from isogloss.compat.openai_harmony.errors import HarmonyError, raise_disallowed_special_token
from isogloss.compat.openai_harmony.messages import Conversation, Message, Role
from isogloss.compat.openai_harmony.parser import StreamableParser
from isogloss.compat.openai_harmony.renderer import Renderer
from isogloss.compat.openai_harmony.vocabulary import (
    CALL,
    END,
    RETURN,
    Vocabulary,
    checked_id,
    checked_ids,
    harmony_vocabulary,
)


class RenderConversationConfig(BaseModel):
    """``auto_drop_analysis``: reasoning in front of the first answer is left out once the last turn has answered."""

    auto_drop_analysis: bool = True


class RenderOptions(BaseModel):
    """What a single message cannot know of its conversation."""

    conversation_has_function_tools: bool = False


class HarmonyEncodingName(str, Enum):
    """The encodings there are."""

    HARMONY_GPT_OSS = "HarmonyGptOss"

    def __str__(self) -> str:
        return str(self.value)


class HarmonyEncoding:
    """Renders, parses, encodes and decodes."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._renderer = Renderer(vocabulary)

    @property
    def name(self) -> str:
        return HarmonyEncodingName.HARMONY_GPT_OSS.value

    @cached_property
    def special_tokens_set(self) -> set[str]:
        return set(self.vocabulary.tokenizer.special_tokens)

    # -- rendering

    def render_conversation_for_completion(
        self, conversation: Conversation, next_turn_role: Role, config: RenderConversationConfig | None = None
    ) -> list[int]:
        """The prompt for the next turn. Raises `HarmonyError`."""
        role = next_turn_role.value
        try:
            return self._renderer.conversation(conversation.messages, _drops(config), role)
        except HarmonyError:
            raise
        except RuntimeError as error:
            raise HarmonyError(str(error)) from None

    def render_conversation(
        self, conversation: Conversation, config: RenderConversationConfig | None = None
    ) -> list[int]:
        """The conversation as it is. Raises `RuntimeError`."""
        return self._renderer.conversation(conversation.messages, _drops(config))

    def render_conversation_for_training(
        self, conversation: Conversation, config: RenderConversationConfig | None = None
    ) -> list[int]:
        """The conversation, its last answer ended by ``<|return|>``. Raises `RuntimeError`."""
        tokens = self.render_conversation(conversation, config)
        last = conversation.messages[-1] if conversation.messages else None
        if last is not None and last.author.role is Role.ASSISTANT and last.channel == "final":
            tokens[-1] = RETURN
        return tokens

    def render(self, message: Message, render_options: RenderOptions | None = None) -> list[int]:
        """One message. Raises `RuntimeError`."""
        has_functions = render_options is not None and render_options.conversation_has_function_tools
        return self._renderer.message(message, has_functions)

    # -- parsing

    def parse_messages_from_completion_tokens(
        self, tokens: Sequence[int], role: Role | None = None, *, strict: bool = True
    ) -> list[Message]:
        """The messages of a whole completion. Raises `HarmonyError`, unless forgiving."""
        return StreamableParser(self, role, strict=strict).process_many(tokens).process_eos().messages

    # -- text

    def encode(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = frozenset(),
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> list[int]:
        """Text to tokens. Of the special tokens that it spells those in ``allowed_special`` become tokens, those in
        ``disallowed_special`` (all others, by default) raise `HarmonyError`, and the rest is text."""
        special = self.vocabulary.tokenizer.special_tokens
        if isinstance(allowed_special, str) and allowed_special == "all":
            allowed_special = special.keys()
        if isinstance(disallowed_special, str) and disallowed_special == "all":
            found = [name for name in _ANY_SPECIAL.findall(text) if name in special and name not in allowed_special]
            if found:
                raise_disallowed_special_token(found[0])
        elif disallowed_special:
            match = _one_of(frozenset(disallowed_special)).search(text)
            if match:
                raise_disallowed_special_token(match[0])
        tokens: list[int] = []
        encode = self.vocabulary.tokenizer.encode
        at = 0
        for match in _ANY_SPECIAL.finditer(text) if allowed_special else ():
            if match[0] in special and match[0] in allowed_special:
                tokens += encode(text[at : match.start()])
                tokens.append(special[match[0]])
                at = match.end()
        return tokens + encode(text[at:]) if tokens else encode(text)

    def decode_utf8(self, tokens: Sequence[int]) -> str:
        """Tokens to text. Raises `HarmonyError` for bytes that are no UTF-8 and for unknown ids."""
        try:
            return self._bytes(tokens).decode()
        except UnicodeDecodeError as error:
            raise HarmonyError(f"Could not decode tokens: Invalid utf-8 sequence: {_fault(error)}") from None
        except HarmonyError as error:
            raise HarmonyError(f"Could not decode tokens: Invalid token error: {error}") from None

    def decode(self, tokens: Sequence[int], errors: str = "replace") -> str:
        """Tokens to text; ``errors`` as for `bytes.decode`. Raises `HarmonyError` for unknown ids."""
        return self._bytes(tokens).decode(errors=errors)

    def is_special_token(self, token: int) -> bool:
        return checked_id(token, "token") in self.vocabulary.special_ids

    def stop_tokens(self) -> list[int]:
        """The tokens that end a message."""
        return [RETURN, END, CALL]

    def stop_tokens_for_assistant_actions(self) -> list[int]:
        """The tokens at which an engine stops."""
        return [RETURN, CALL]

    def _bytes(self, tokens: Sequence[int]) -> bytes:
        tokens = list(tokens)
        try:
            return b"".join(map(self.vocabulary.bytes.__getitem__, tokens))
        except KeyError as error:
            checked_ids(tokens)
            raise HarmonyError(f"Invalid token for decoding: {error.args[0]}") from None


def load_harmony_encoding(name: str | HarmonyEncodingName) -> HarmonyEncoding:
    """The encoding of that name, which comes with the package. Raises `ValueError` for any other."""
    if str(name) != HarmonyEncodingName.HARMONY_GPT_OSS.value:
        raise ValueError(f"Invalid HarmonyEncodingName: {name}")
    return HarmonyEncoding(harmony_vocabulary())


_ANY_SPECIAL = re.compile(r"<\|[a-z_0-9]+\|>")


@lru_cache(maxsize=32)
def _one_of(names: frozenset[str]) -> re.Pattern[str]:
    return re.compile("|".join([re.escape(name) for name in sorted(names, key=len, reverse=True)]))


def _drops(config: RenderConversationConfig | None) -> bool:
    return True if config is None else config.auto_drop_analysis


def _fault(error: UnicodeDecodeError) -> str:
    if error.reason == "unexpected end of data":
        return f"incomplete utf-8 byte sequence from index {error.start}"
    return f"invalid utf-8 sequence of {error.end - error.start} bytes from index {error.start}"
