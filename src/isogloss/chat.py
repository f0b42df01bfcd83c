"""The one place where a conversation becomes a turn: render, generate under a grammar, scan, verify.

    chat = Chat(engine, get_dialect("hermes"))
    turn = chat.stream(conversation)
    async for event in turn: ...                # or: message = await turn.message()

With an engine that takes grammars the turn streams as it is made. With one that does not, whatever the request binds
(strict tools, a tool choice, an answer's format) is verified on the whole turn, and the model is asked again, told what
was wrong, a stated number of times; `OutputError` is raised when none of its turns holds. So is a custom tool's text
that has a grammar of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, NamedTuple

import msgspec

from isogloss.constraints import Constraint, compile_check
from isogloss.dialects._base import Dialect
from isogloss.dialects._scanner import MADE_UP_RESULT, StreamScanner
from isogloss.endpoint_scanner import EndpointScanner
from isogloss.engines import Engine, GenerationRequest, ModelInfo, Sampling, TokenLogprob, Usage
from isogloss.errors import ConversationError, EngineCapabilityError, EngineUnavailableError, OutputError
from isogloss.events import Event, Finish, Malformed, TextDelta, ToolCallEnd, collect
from isogloss.messages import AssistantMessage, Conversation, ToolChoice, UserMessage
from isogloss.prompting import Prompter, Sample
from isogloss.stop_strings import StopStrings
from isogloss.token_spans import TokenSpans
from isogloss.tokenizers import Tokenizer
from isogloss.verification import Verification

LONGEST_TOKEN = 512
"""Characters. No vocabulary has longer ones, so that a text far too long is refused before it is cut into tokens."""

SHORT = 4096
"""Characters of a conversation from which a prompt is made at once."""


class Update(NamedTuple):
    """An event, and the log probabilities of its visible text where they were asked for."""

    event: Event
    logprobs: tuple[TokenLogprob, ...] = ()


class Chat:
    """An engine and the dialect that its model speaks.

    ``attempts`` is how often a model that no grammar binds is asked for a turn that holds what the request asks.
    ``may_refuse``: whether the model may refuse where an answer's format is asked for; small models do so at random.
    ``uses_template``: a model that was trained on the dialect by its own chat template is prompted by that template.
    """

    def __init__(
        self,
        engine: Engine,
        dialect: Dialect,
        *,
        attempts: int = 3,
        may_refuse: bool = True,
        uses_template: bool = True,
    ) -> None:
        if attempts < 1:
            raise ValueError(f"Expected `int` >= 1 for attempts, got {attempts}")
        self.engine = engine
        self.dialect = dialect
        self.attempts = attempts
        self.may_refuse = may_refuse
        self.uses_template = uses_template
        self._model: ModelInfo | None = None
        self._prompter: Prompter | None = None
        self._starting = asyncio.Lock()
        self._is_started = False

    async def start(self) -> None:
        """Bring the engine up, once. Raises `EngineUnavailableError`; trying again is allowed."""
        async with self._starting:
            if not self._is_started:
                await self.engine.start()
                self._is_started = True

    async def close(self) -> None:
        """Stop the engine."""
        async with self._starting:
            if self._is_started:
                self._is_started = False
                await self.engine.close()

    async def health(self) -> None:
        """Return when the engine answers. Raises `EngineUnavailableError` with the reason."""
        await self.start()
        await self.engine.health()

    async def model(self) -> ModelInfo:
        """The model being served, asked once as long as the engine lives. Raises `EngineUnavailableError`."""
        await self.start()
        if self._model is None:
            self._model = await self.engine.model()
        return self._model

    def stream(
        self,
        conversation: Conversation,
        sampling: Sampling = Sampling(),  # noqa: B008 - a value
        options: Mapping[str, Any] | None = None,
    ) -> Turn:
        """The model's next turn. Nothing happens until it is iterated. ``options`` are the engine's own (a priority, a
        cache's salt), by its names; one that it does not know is an `EngineCapabilityError`."""
        if not self.may_refuse and conversation.response_format is not None:
            form = msgspec.structs.replace(conversation.response_format, may_refuse=False)
            conversation = msgspec.structs.replace(conversation, response_format=form)
        return Turn(self, conversation, sampling, options)

    async def prompt_tokens(self, conversation: Conversation) -> int:
        """How many tokens the prompt of the next turn has.

        Raises `EngineCapabilityError` where the engine's vocabulary is not known.
        """
        await self.start()
        tokenizer = self.engine.tokenizer
        if tokenizer is None:
            raise EngineCapabilityError(f"The engine `{self.engine.name}` cannot count the tokens of a prompt")
        prompter = await self.prompter()
        return len(await asyncio.to_thread(lambda: prompter.prompt(conversation).tokens(tokenizer)))

    async def prompter(self) -> Prompter:
        """What makes the prompts of the model being served. Raises `EngineUnavailableError`."""
        model = await self.model()
        prompter = self._prompter
        if prompter is None:
            make = partial(Prompter, self.dialect, self.engine.tokenizer, model, uses_template=self.uses_template)
            prompter = self._prompter = await asyncio.to_thread(make)
        return prompter

    def forget_model(self) -> None:
        """The engine went away: what comes back may serve another model."""
        self._model = None
        self._prompter = None


class Turn:
    """One turn of the model, as it is generated. Iterate over it once, for its events or for its `updates`.

    Close it (``async with contextlib.aclosing(turn)``) when leaving early; that stops the engine. Iterating raises
    `RequestError` for what cannot be asked, `OutputError` for an answer that does not hold, and `EngineError`.
    """

    def __init__(
        self, chat: Chat, conversation: Conversation, sampling: Sampling, options: Mapping[str, Any] | None = None
    ) -> None:
        self.conversation = conversation
        self.sampling = sampling
        self.options = options or {}
        self.usage = Usage()
        """The engine's counts, whole once the turn ended; of the turn that was accepted, not of those before it."""
        self.reasoning_tokens = 0
        """How many of the completion's tokens were reasoning."""
        self._chat = chat
        self._output: list[str] = []
        self._updates = self._run()

    def __aiter__(self) -> AsyncIterator[Event]:
        return self._events()

    def updates(self) -> AsyncGenerator[Update, None]:
        """The events with their log probabilities."""
        return self._updates

    @property
    def output(self) -> Sequence[str]:
        """What the model wrote so far, raw and in the pieces in which it came; of the turn that was accepted."""
        return self._output

    async def message(self) -> AssistantMessage:
        """The whole turn."""
        async with aclosing(self):
            return collect([event async for event in self])

    async def aclose(self) -> None:
        """Stop the generation if it is still running."""
        await self._updates.aclose()

    async def _events(self) -> AsyncIterator[Event]:
        async for update in self._updates:
            yield update.event

    async def _run(self) -> AsyncGenerator[Update, None]:
        try:
            await self._chat.start()
            verification = Verification(self.conversation)
            if not verification.binds:
                generated = self._generate(self.conversation)
            elif self._chat.engine.takes_grammar and not verification.is_beyond_grammars:
                generated = self._verified_as_it_streams(verification)
            else:
                generated = self._verified_as_a_whole(verification)
            async with aclosing(generated):
                async for update in generated:
                    yield update
        except EngineUnavailableError:
            self._chat.forget_model()
            raise

    async def _verified_as_it_streams(self, verification: Verification) -> AsyncGenerator[Update, None]:
        events: list[Event] = []
        async with aclosing(self._generate(self.conversation)) as updates:
            async for update in updates:
                events.append(update.event)
                fault = verification.fault(collect(events)) if isinstance(update.event, Finish) else None
                if fault is not None:
                    raise OutputError(f"The model's turn does not hold what was asked: {fault}")
                yield update

    async def _verified_as_a_whole(self, verification: Verification) -> AsyncGenerator[Update, None]:
        conversation = self.conversation
        fault: str | None = None
        for _ in range(self._chat.attempts):
            updates = [update async for update in self._generate(conversation)]
            fault = verification.fault(collect([update.event for update in updates if not _is_made_up(update.event)]))
            if fault is None:
                for update in updates:
                    yield update
                return
            conversation = _asked_again(conversation, "".join(self._output), fault)
        raise OutputError(f"No turn of {self._chat.attempts} holds what was asked; in the last one {fault}")

    async def _generate(self, conversation: Conversation) -> AsyncGenerator[Update, None]:
        """One generation, scanned."""
        chat = self._chat
        request, starts_in, sample = await self._request(conversation)
        scanner = self._scanner(conversation, starts_in)
        own = _OwnWords()
        stops = StopStrings(self.sampling.stop)
        spans = TokenSpans(chat.engine.tokenizer)
        self._output = []
        usage: Usage | None = None
        finish = "stop"
        async with aclosing(chat.engine.generate(request)) as chunks:
            async for chunk in chunks:
                spans.extend(chunk)
                sample.take(chunk)
                usage = chunk.usage or usage
                finish = chunk.finish or finish
                for piece in chunk.pieces:
                    self._output.append(piece.text)
                    events = scanner.feed(piece)
                    for event in stops.pass_on(own.pass_on(events)) if events else ():
                        sample.add(event)
                        yield Update(event, spans.take(event))
                if stops.hit or scanner.makes_up_results:
                    break
        last = stops.pass_on(own.pass_on(scanner.finish(finish)))
        for event in last:
            sample.add(event)
        if not (stops.hit or scanner.makes_up_results):
            await asyncio.to_thread(sample.keep, self._output)
        for event in last:
            update = Update(event, spans.take(event))
            self.usage = usage or Usage(len(request.prompt_ids or ()), spans.tokens)
            self.reasoning_tokens = spans.reasoning_tokens
            yield update

    def _scanner(self, conversation: Conversation, starts_in: str) -> StreamScanner | EndpointScanner:
        engine, dialect = self._chat.engine, self._chat.dialect
        if engine.takes_tools:
            return EndpointScanner()
        control = engine.tokenizer.special_tokens if engine.tokenizer is not None else ()
        scanner = dialect.scanner(conversation.tools, starts_in=starts_in, control=control)
        return EndpointScanner(scanner) if engine.takes_messages else scanner

    async def _request(self, conversation: Conversation) -> tuple[GenerationRequest, str, Sample]:
        """What the engine is asked, what its output starts in, and what keeps it. Made in a thread where it takes its
        time; what is short and needs no grammar is made sooner than a thread has begun."""
        limit = (await self._chat.model()).context_length
        prompter = await self._chat.prompter()
        if _is_light(conversation):
            return self._prepare(conversation, prompter, limit)
        return await asyncio.to_thread(self._prepare, conversation, prompter, limit)

    def _prepare(
        self, conversation: Conversation, prompter: Prompter, limit: int | None
    ) -> tuple[GenerationRequest, str, Sample]:
        engine = self._chat.engine
        if engine.takes_tools or engine.takes_messages:
            return self._message_request(conversation), "text", Sample(prompter, conversation, (), is_templated=False)
        prompted = prompter.prompt(conversation)
        dialect, text = self._chat.dialect, prompted.text
        starts_in = dialect.starts_in(text)
        constraint = self._constraint(conversation, starts_in) if engine.takes_grammar else None
        grammar = None if constraint is None else _lark(constraint, engine.tokenizer)
        ids = None
        if engine.tokenizer is not None:
            _check_length(len(text) // LONGEST_TOKEN, limit, "at least ")
            ids = prompted.tokens(engine.tokenizer)
            _check_length(len(ids), limit)
        stop = dialect.markers.stop if grammar is None else ()
        term = None if constraint is None else constraint.term
        sampling = self._sampling(stop)
        request = GenerationRequest(
            prompt=text, prompt_ids=ids, grammar=grammar, term=term, sampling=sampling, options=self.options
        )
        return request, starts_in, Sample(prompter, conversation, ids or (), is_templated=prompted.is_templated)

    def _message_request(self, conversation: Conversation) -> GenerationRequest:
        """What a chat endpoint is asked."""
        dialect = self._chat.dialect
        if self._chat.engine.takes_tools:
            return GenerationRequest(conversation=conversation, sampling=self._sampling(()), options=self.options)
        messages = tuple(_plain(dialect.inband(conversation)))
        stop = tuple(dict.fromkeys((*dialect.markers.kinds.get("result", ()), *dialect.markers.stop)))
        return GenerationRequest(messages=messages, sampling=self._sampling(stop), options=self.options)

    def _sampling(self, stop: tuple[str, ...]) -> Sampling:
        """The engine stops where the dialect's turn ends. The caller's stop strings are matched in visible text."""
        return msgspec.structs.replace(self.sampling, stop=stop)

    def _constraint(self, conversation: Conversation, starts_in: str) -> Constraint | None:
        """What binds the turn, if anything does."""
        form = conversation.response_format
        if not conversation.tools and (form is None or form.kind == "text"):
            return None
        effort_is_none = conversation.reasoning_effort == "none"
        return self._chat.dialect.constraint(
            conversation.tools,
            ToolChoice.of(conversation.tool_choice),
            form,
            parallel=conversation.parallel_tool_calls,
            reasoning="open" if starts_in == "reasoning" else not effort_is_none,
        )


class _OwnWords:
    """Passes events on, up to and with the first tool result that the model made up: what follows rests on nothing."""

    def __init__(self) -> None:
        self._is_over = False
        self._called = False
        self._mark = 0

    def pass_on(self, events: Sequence[Event]) -> Sequence[Event]:
        if len(events) == 1 and type(events[0]) is TextDelta and not self._is_over:
            return events  # by far the most
        kept: list[Event] = []
        for event in events:
            if not self._is_over:
                self._called = self._called or isinstance(event, ToolCallEnd)
                self._is_over = _is_made_up(event)
                self._mark = event.end
                kept.append(event)
            elif isinstance(event, Finish):
                kept.append(Finish("tool_calls" if self._called else "stop", self._mark, event.end))
        return kept


def _is_light(conversation: Conversation) -> bool:
    if conversation.tools or conversation.response_format is not None:
        return False
    return sum(len(message.text) for message in conversation.messages) <= SHORT


def _is_made_up(event: Event) -> bool:
    return isinstance(event, Malformed) and event.reason == MADE_UP_RESULT


def _lark(constraint: Constraint, tokenizer: Tokenizer | None) -> str:
    """The grammar for the engine's vocabulary. Raises `GrammarError`."""
    if tokenizer is None:
        return constraint.lark
    lark = constraint.lark_for(tokenizer)
    compile_check(lark, tokenizer)
    return lark


def _check_length(count: int, limit: int | None, bound: str = "") -> None:
    """Raise `ConversationError` when the context has no place for a prompt of ``count`` tokens and one more."""
    if limit is not None and count >= limit:
        raise ConversationError(
            f"This model's maximum context length is {limit} tokens. However, your messages resulted in "
            f"{bound}{count} tokens. Please reduce the length of the messages.",
            pointer="/messages",
            code="context_length_exceeded",
        )


def _asked_again(conversation: Conversation, output: str, fault: str) -> Conversation:
    """The conversation with a turn that does not hold, and what is wrong with it."""
    told = f"Your last message cannot be accepted: {fault}. Write it again, whole, without that fault."
    messages = (*conversation.messages, AssistantMessage(text=output), UserMessage(told))
    return msgspec.structs.replace(conversation, messages=messages)


def _plain(conversation: Conversation) -> Iterable[dict[str, Any]]:
    """Plain messages as chat endpoints take them."""
    for message in conversation.messages:
        yield {"role": type(message).__struct_config__.tag, "content": message.text}
