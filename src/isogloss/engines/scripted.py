"""An engine that replays recorded output, cut as told. For tests, of this project's and of everybody's, and for demos.

engine = ScriptedEngine([Script("It is 5."), Script(["It", " is", Piece("<|call|>", is_control=True)])])
engine = ScriptedEngine(lambda request: Script(answer_to(request), cut=4))
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from isogloss.engines._protocol import Chunk, GenerationRequest, ModelInfo, TokenLogprob, Usage
from isogloss.engines._stops import Stops
from isogloss.errors import EngineCapabilityError, EngineError, EngineUnavailableError
from isogloss.events import Piece

if TYPE_CHECKING:
    from isogloss.engines._grammar_guard import GrammarGuard
    from isogloss.tokenizers import Tokenizer

TOKENS = "tokens"


class Script(msgspec.Struct, frozen=True):
    """What one generation says.

    ``output`` is cut into pieces. ``cut``: ``None``, as it is given; a number, after so many characters; ``"tokens"``,
    as the engine's tokenizer encodes it, a character that is split over tokens staying whole. A control token, told by
    ``Piece(..., is_control=True)`` or by its spelling in ``control``, is never cut. Every piece counts as one token,
    except with ``"tokens"``, where the tokens are counted and their ids reported.

    ``dies_after`` so many pieces the engine raises `EngineUnavailableError`; 0 is before the first.
    """

    output: str | Sequence[str | Piece] = ""
    cut: int | str | None = None
    control: tuple[str, ...] = ()
    finish: str = "stop"
    logprobs: tuple[TokenLogprob, ...] = ()
    """One a piece, reported when they are asked for; without them the script is certain of every piece."""
    dies_after: int | None = None
    usage: Usage | None = None
    """Instead of the engine's own counts."""


class ScriptedEngine:
    """Replays scripts: one after the other, the last one again and again, or whatever a function makes of a request.

    It keeps all ``requests``, and how many generations are ``running`` and how many were ``abandoned``, that is closed
    or cancelled before their end. With a tokenizer it checks what it says against the grammar of the request, and
    raises `EngineError` where the grammar does not allow it. ``before_piece`` is awaited before each piece, with its
    position: a test can hold a generation there. While ``failure`` is set, everything raises it.
    """

    name = "scripted"
    takes_tools = False

    def __init__(
        self,
        scripts: str | Script | Iterable[str | Script] | Callable[[GenerationRequest], str | Script],
        *,
        tokenizer: Tokenizer | None = None,
        takes_grammar: bool = True,
        takes_messages: bool = False,
        model: ModelInfo | None = None,
        before_piece: Callable[[int], Awaitable[object]] | None = None,
        options: Iterable[str] = (),
    ) -> None:
        self.tokenizer = tokenizer
        self.takes_grammar = takes_grammar
        self.takes_messages = takes_messages
        self.options = frozenset(options)
        self.requests: list[GenerationRequest] = []
        self.running = 0
        self.abandoned = 0
        self.failure: EngineError | None = None
        self._script_for = scripts if callable(scripts) else _in_order(scripts)
        self._model = ModelInfo("scripted") if model is None else model
        self._before_piece = before_piece

    @staticmethod
    def accepts(target: str) -> bool:
        """Never chosen by itself."""
        return False

    @classmethod
    def open(cls, target: str, **options: Any) -> ScriptedEngine:
        """An engine that answers everything with the text of the file ``target``, four characters at a time."""
        try:
            text = Path(target).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise EngineUnavailableError(f"Cannot read the script `{target}`: {error}") from error
        return cls(Script(text, cut=4), **options)

    async def start(self) -> None:
        """Raises ``failure``."""
        self._raise_failure()

    async def close(self) -> None:
        """Nothing to stop."""

    async def model(self) -> ModelInfo:
        """Raises ``failure``."""
        self._raise_failure()
        return self._model

    async def health(self) -> None:
        """Raises ``failure``."""
        self._raise_failure()

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[Chunk, None]:
        """See `Engine.generate`."""
        self.requests.append(request)
        self._raise_failure()
        guard = self._guard(request)
        script = self._script_for(request)
        script = Script(script) if isinstance(script, str) else script
        self.running += 1
        try:
            async with contextlib.aclosing(self._replay(script, request, guard)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except (GeneratorExit, asyncio.CancelledError):
            self.abandoned += 1
            raise
        finally:
            self.running -= 1

    async def _replay(
        self, script: Script, request: GenerationRequest, guard: GrammarGuard | None
    ) -> AsyncGenerator[Chunk, None]:
        limit = request.sampling.max_tokens
        stops = Stops(request.sampling.stop, () if self.tokenizer is None else self.tokenizer.special_tokens)
        said, position, finish = 0, -1, script.finish
        is_closed = False
        for position, (piece, ids) in enumerate(self._cut(script)):
            _die(script, position)
            if limit is not None and said >= limit:
                finish = "length"
                break
            await (asyncio.sleep(0) if self._before_piece is None else self._before_piece(position))
            self._raise_failure()
            if is_closed:
                raise EngineError(f"The script goes on with {piece.text!r} where the grammar had ended the turn")
            said += len(ids) or 1
            taken = self._taken(piece, guard)
            if taken is None:
                is_closed = True
                continue
            for chunk in stops.feed(Chunk((taken,), ids, _logprobs(script, request, position, taken))):
                yield chunk
            if stops.found:
                finish = "stop"
                break
        else:
            _die(script, position + 1)
            if guard is not None and finish == "stop" and not guard.is_complete:
                raise EngineError("The script ends where the grammar does not allow an end")
        for chunk in stops.finish():
            yield chunk
        yield Chunk(finish=finish, usage=script.usage or Usage(self._prompt_tokens(request), said))

    def _guard(self, request: GenerationRequest) -> GrammarGuard | None:
        if request.grammar is None:
            return None
        if not self.takes_grammar:
            raise EngineCapabilityError("This scripted engine takes no grammar")
        if self.tokenizer is None:
            return None
        from isogloss.engines._grammar_guard import GrammarGuard

        return GrammarGuard(request.grammar, self.tokenizer)

    def _taken(self, piece: Piece, guard: GrammarGuard | None) -> Piece | None:
        """The piece as the grammar takes it; ``None`` when it only closes the turn."""
        if guard is None or self.tokenizer is None:
            return piece
        from isogloss.engines._grammar_guard import Role

        role = [guard.take(token) for token in self._ids(piece, self.tokenizer)][-1]
        return None if role is Role.CLOSING else Piece(piece.text, role is Role.CONTROL)

    def _cut(self, script: Script) -> Iterator[tuple[Piece, tuple[int, ...]]]:
        given = [script.output] if isinstance(script.output, str) else script.output
        for part in given:
            for piece in _apart(part, script.control):
                if script.cut == TOKENS:
                    yield from self._tokens(piece)
                elif piece.is_control or script.cut is None:
                    yield piece, ()
                else:
                    size = int(script.cut)
                    for start in range(0, len(piece.text), size):
                        yield Piece(piece.text[start : start + size]), ()

    def _tokens(self, piece: Piece) -> Iterator[tuple[Piece, tuple[int, ...]]]:
        if self.tokenizer is None:
            raise EngineCapabilityError("Cutting a script into tokens needs a tokenizer")
        begun: list[int] = []
        data = b""
        for token in self._ids(piece, self.tokenizer):
            begun.append(token)
            data += self.tokenizer.token_bytes(token)
            try:
                text = data.decode()
            except UnicodeDecodeError:
                continue
            yield Piece(text, piece.is_control), tuple(begun)
            begun, data = [], b""

    def _ids(self, piece: Piece, tokenizer: Tokenizer) -> list[int]:
        if not piece.is_control:
            return tokenizer.encode(piece.text)
        token = tokenizer.special_tokens.get(piece.text)
        if token is None:
            raise EngineCapabilityError(f"`{piece.text}` is no control token of the vocabulary `{tokenizer.name}`")
        return [token]

    def _prompt_tokens(self, request: GenerationRequest) -> int:
        if request.prompt_ids is not None:
            return len(request.prompt_ids)
        return 0 if self.tokenizer is None else len(self.tokenizer.encode(request.prompt))

    def _raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure


ENGINE = ScriptedEngine


def _in_order(scripts: str | Script | Iterable[str | Script]) -> Callable[[GenerationRequest], str | Script]:
    waiting = iter([scripts] if isinstance(scripts, (str, Script)) else scripts)
    last: list[str | Script] = []

    def following(request: GenerationRequest) -> str | Script:
        last[:] = [next(waiting, *last)]
        return last[0]

    return following


def _die(script: Script, position: int) -> None:
    if position == script.dies_after:
        raise EngineUnavailableError(f"The scripted engine died after {position} pieces, as it was told to")


def _apart(part: str | Piece, control: Sequence[str]) -> Iterator[Piece]:
    """The part as pieces, each spelling of a control token one of its own."""
    if isinstance(part, Piece):
        if part.text:
            yield part
        return
    spellings = "|".join(re.escape(text) for text in sorted(control, key=len, reverse=True))
    for index, text in enumerate(re.split(f"({spellings})", part) if control else [part]):
        if text:
            yield Piece(text, is_control=index % 2 == 1)


def _logprobs(script: Script, request: GenerationRequest, position: int, piece: Piece) -> tuple[TokenLogprob, ...]:
    asked = request.sampling.logprobs
    if asked is None:
        return ()
    if position < len(script.logprobs):
        return (script.logprobs[position],)
    data = piece.text.encode()
    return (TokenLogprob(piece.text, 0.0, data, ((piece.text, 0.0, data),) if asked else ()),)
