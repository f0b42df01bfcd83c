"""What an engine is: something that continues a prompt, token by token, under a grammar. It knows no dialect."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import msgspec

from isogloss.events import Piece
from isogloss.grammar import Term
from isogloss.messages import Conversation

if TYPE_CHECKING:
    from isogloss.tokenizers import Tokenizer


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How the next token is chosen and when to stop. ``None`` leaves a setting to the engine."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    """Choose among so many of the likeliest tokens; 0: among all."""
    min_p: float | None = None
    """Choose among the tokens that are at least so likely, relative to the likeliest."""
    seed: int | None = None
    stop: tuple[str, ...] = ()
    """Strings that end the generation. One that spells a control token is matched by that token only."""
    logprobs: int | None = None
    """How many of the likeliest tokens to report with each chosen one; 0: the chosen one alone, ``None``: nothing."""
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    """What a token's probability is divided by, roughly, once it was said; 1: nothing."""
    logit_bias: Mapping[int, float] = msgspec.field(default_factory=dict)


class GenerationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One continuation.

    Engines that take token ids read ``prompt_ids``, the others ``prompt``, chat endpoints ``messages`` or, where they
    have tool calls of their own, ``conversation``.
    """

    prompt: str = ""
    prompt_ids: tuple[int, ...] | None = None
    messages: tuple[Mapping[str, Any], ...] | None = None
    conversation: Conversation | None = None
    grammar: str | None = None
    """llguidance's Lark, for this engine's tokenizer."""
    term: Term | None = None
    """The same as a term, where it is one: for engines that speak another grammar language."""
    sampling: Sampling = Sampling()
    options: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """What only this kind of engine knows (a cache salt, a priority, native tools). An unknown name is an error."""


class NativePiece(Piece, frozen=True, kw_only=True):
    """A piece of a turn that a chat endpoint took apart itself. A call's first piece has its ``call_id`` and ``name``;
    ``call`` counts the calls of the turn from 0."""

    kind: Literal["text", "reasoning", "refusal", "call"]
    call: int = 0
    call_id: str = ""
    name: str = ""


class TokenLogprob(msgspec.Struct, frozen=True):
    """A token that was chosen, and the alternatives that were considered. ``data`` is its bytes."""

    token: str
    logprob: float
    data: bytes
    top: tuple[tuple[str, float, bytes], ...] = ()


class Usage(msgspec.Struct, frozen=True):
    """The engine's own counts of tokens. ``cached_tokens`` of the prompt were reused from an earlier request."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0


class Chunk(msgspec.Struct, frozen=True):
    """What an engine reports at once: pieces of output, their ids and log probabilities where it has them.

    A control token is a piece of its own, the one that ended the turn included. Under a grammar, a token by which the
    engine closes a turn that was already complete is not part of the output. A stop string and what follows it are not
    reported. The last chunk of a generation, and no other, has ``finish`` (``stop`` or ``length``) and ``usage``.
    """

    pieces: tuple[Piece, ...] = ()
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[TokenLogprob, ...] = ()
    finish: str | None = None
    usage: Usage | None = None


class ModelInfo(msgspec.Struct, frozen=True):
    """The model that an engine serves."""

    id: str
    context_length: int | None = None
    chat_template: str | None = None
    template_tokens: Mapping[str, str] = {}
    """The tokens that the template knows by a name, such as ``bos_token``."""
    settings: Mapping[str, Any] = {}
    """How the engine runs it, by the names of the engine's options, where that was chosen on this side."""


class Engine(Protocol):
    """Continues prompts. All methods may be called from many tasks at once."""

    name: str
    takes_grammar: bool
    """Whether ``GenerationRequest.grammar`` binds the sampling."""
    takes_messages: bool
    """Whether it is a chat endpoint: asked with ``GenerationRequest.messages``, the dialect told in them."""
    takes_tools: bool
    """Whether it is a chat endpoint that has tool calls of its own: asked with ``GenerationRequest.conversation``, it
    answers in `NativePiece`s."""
    options: frozenset[str]
    """The names that a client may give in ``GenerationRequest.options``."""
    tokenizer: Tokenizer | None
    """``None`` where the engine takes text only."""

    async def start(self) -> None:
        """Bring the engine up and fill in ``tokenizer``. Raises `EngineUnavailableError`, and `EngineCapabilityError`
        where trying again is of no use."""

    async def close(self) -> None:
        """Stop what `start` started."""

    async def model(self) -> ModelInfo:
        """The model being served. Raises `EngineUnavailableError`."""
        ...

    async def health(self) -> None:
        """Return when the engine answers. Raises `EngineUnavailableError` with the reason."""

    def generate(self, request: GenerationRequest) -> AsyncGenerator[Chunk, None]:
        """Stream the continuation.

        Whoever leaves the loop early closes the generator (``async with contextlib.aclosing(...)``); that stops the
        generation and frees its place in the engine. Raises `EngineError` and `GrammarError`, at the first step.
        """
        ...


class EngineType(Protocol):
    """What the registry knows of an engine: its class."""

    name: ClassVar[str]

    def accepts(self, target: str) -> bool:
        """Whether such a target (a file, ``hf:OWNER/REPOSITORY/FILE``, a URL) can be for this engine."""
        ...

    def open(self, target: str, **options: Any) -> Engine:
        """An engine over that target, not yet started."""
        ...
