"""A response being made: whole, or as the events of a stream."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import msgspec

from isogloss.chat import Turn
from isogloss.engines import Sampling
from isogloss.errors import IsoglossError
from isogloss.events import Event, collect
from isogloss.messages import AssistantMessage, Conversation, ToolMessage
from isogloss.server.generation import updates_of
from isogloss.server.journal import (
    Checkpoints,
    Forgotten,
    Journal,
    LostResponseError,
    Recording,
    StreamMessage,
)
from isogloss.server.response_object import ResponseObject
from isogloss.server.response_output import ResponseOutput, StreamEvent
from isogloss.server.response_request import ResponseRequest
from isogloss.server.response_store import StoredResponse
from isogloss.server.service import Service

_log = logging.getLogger("isogloss.server")


_MOST_CALLS = 128
"""Calls that are run for one response which does not say how many may be."""


class ResponseRun:
    """Makes one response for an owner. Ask it once, for the `whole` or, after `begin`, for its `events`."""

    def __init__(self, service: Service, owner: str, asked: ResponseRequest, model: str) -> None:
        self.asked = asked
        self.response = ResponseObject(asked, model)
        self.stored = StoredResponse(self.response.fields, asked.input_items, asked.background)
        """The response as it is now, with its input."""
        self.owner = owner
        self.journal: Journal = self._journal(service)
        self._service = service
        self._turns: list[Turn] = []
        seal = (lambda text: service.state.seal.close(owner, text)) if asked.wants_encrypted_reasoning else None
        self._output = ResponseOutput(asked.custom_tools, asked.wants_logprobs, seal, asked.hosted.item_type)
        self._produced = self._produce()
        self._first: StreamEvent | None = None
        self._sequence_number = -1
        self._has_begun = False
        self._is_kept = asked.background
        self._has_ended = False

    @property
    def id(self) -> str:
        return self.response.id

    async def whole(self) -> dict[str, Any]:
        """Make the response without a stream. Raises what the turn raises."""
        try:
            async for _ in self._produced:
                pass
        finally:
            await self.close()
        self._end()
        if self.asked.store:
            await self._service.state.responses.add(self.owner, self.stored, self._conversation_id)
        return self.response.fields

    async def without_output(self) -> list[StreamMessage]:
        """Make a response that says nothing, to be continued: its events."""
        await self.close()
        created = self._event("response.created", {"response": dict(self.response.fields)})
        self.response.end("stop", [], [])
        if self.asked.store:
            await self._service.state.responses.add(self.owner, self.stored, self._conversation_id)
        return [created, self._event("response.completed", self._whole())]

    async def begin(self) -> None:
        """Wait for the first sign of the model, so that what fails before it is an error of the request."""
        try:
            self._first = await anext(self._produced, None)
            self._has_begun = True
            self._is_kept = True
            await self.journal.begin(self.stored)
        except BaseException:
            await self.close()
            raise

    async def events(self) -> AsyncGenerator[StreamMessage, None]:
        """The stream. What fails once it has begun is told in it, as its last event.

        An event must be used before the next one is asked for: it holds what still grows. When the stream is closed
        early the response is cancelled.
        """
        try:
            async for event in self._made():
                yield event
        except LostResponseError:
            self._has_ended = True  # whoever ended it has told so
        except IsoglossError as error:
            _log.error("%s: %s", type(error).__name__, error)
            yield await self._fail(error)
        except Exception:
            _log.exception("A stream failed")
            yield await self._fail(None)
        finally:
            await self.close()

    async def close(self) -> None:
        """Stop making the response. One that has not ended is cancelled."""
        try:
            await self._produced.aclose()
        finally:
            if self._is_kept and not self._has_ended:
                await self._cancel()
            self._service.state.responses.release(self.id)
            await self.asked.hosted.close()

    async def _made(self) -> AsyncGenerator[StreamMessage, None]:
        yield await self._told("response.created", self._whole())
        if self.asked.background:
            yield await self._told("response.queued", self._whole())
        if not self._has_begun:
            self._first = await anext(self._produced, None)
        self.response.start()
        yield await self._told("response.in_progress", self._whole())
        if self._first is not None:
            yield await self._told(*self._first)
        async for kind, fields in self._produced:
            yield await self._told(kind, fields)
        self._end()
        yield await self._told_last()

    async def _produce(self) -> AsyncGenerator[StreamEvent, None]:
        """The events of the output: of a turn, of the tools that it calls and that are run here, of the next turn."""
        conversation, runs_left = self.asked.conversation, self.asked.max_tool_calls or _MOST_CALLS
        while True:
            turn = self._service.chat.stream(conversation, self._sampling(), self.asked.options)
            self._turns.append(turn)
            events: list[Event] = []
            async with aclosing(updates_of(self._service, [turn])) as updates:
                async for batch in updates:
                    for _, update in batch:
                        events.append(update.event)
                        for event in self._output.add(update):
                            yield event
            message = collect(events)
            calls, self._output.calls = self._output.calls, []
            results: list[ToolMessage] = []
            for call in calls:
                if len(results) >= runs_left:
                    yield call.given_up()
                    continue
                async with aclosing(call.run(self.asked.hosted.run, results)) as running:
                    async for event in running:
                        yield event
            runs_left -= len(results)
            if not calls or len(results) < len(calls) or len(message.tool_calls) > len(calls):
                return  # the answer, or the end of what may be called, or calls that are the client's to run
            conversation = _continued(conversation, message, results)

    def _sampling(self) -> Sampling:
        """What is left of the tokens that may be generated."""
        most = self.asked.sampling.max_tokens
        if most is None:
            return self.asked.sampling
        used = sum(turn.usage.completion_tokens for turn in self._turns)
        return msgspec.structs.replace(self.asked.sampling, max_tokens=max(most - used, 1))

    def _end(self) -> None:
        self.response.end(self._output.finish, self._output.items, self._turns)
        if self._service.options.log_content:
            fields = {"request": self.asked.body, "answer": self.response.fields}
            _log.info("response", extra={"fields": fields})

    async def _fail(self, error: IsoglossError | None) -> StreamMessage:
        self.response.fail(error, self._output.items)
        try:
            return await self._told_last()
        except (IsoglossError, LostResponseError):
            self._has_ended = True
            return self._event("response.failed", self._whole())

    async def _cancel(self) -> None:
        self._has_ended = True
        self.response.cancel(self._output.items)
        try:
            await self.journal.end(self._event("response.incomplete", self._whole()), self.stored)
        except (IsoglossError, LostResponseError) as error:
            _log.info("A cancelled response could not be kept: %r", error)

    async def _told(self, kind: str, fields: dict[str, Any]) -> StreamMessage:
        """The event, kept as far as it has to be."""
        event = self._event(kind, fields)
        if kind == "response.output_item.done":
            self.response.reached(self._output.items)
        await self.journal.add(event, self.stored)
        return event

    async def _told_last(self) -> StreamMessage:
        event = self._event(f"response.{self.response.status}", self._whole())
        await self.journal.end(event, self.stored)
        self._has_ended = True
        return event

    def _event(self, kind: str, fields: dict[str, Any]) -> StreamMessage:
        self._sequence_number += 1
        return {"type": kind, "sequence_number": self._sequence_number, **fields}

    def _whole(self) -> dict[str, Any]:
        return {"response": self.response.fields}

    @property
    def _conversation_id(self) -> str | None:
        conversation = self.response.fields["conversation"]
        return None if conversation is None else conversation["id"]

    def _journal(self, service: Service) -> Journal:
        if not self.asked.store:
            return Forgotten()
        kind = Recording if self.asked.background else Checkpoints
        return kind(service.state.responses, self.owner, self._conversation_id)


def _continued(conversation: Conversation, message: AssistantMessage, results: Sequence[ToolMessage]) -> Conversation:
    """The conversation after calls whose results are there. What had to be called has been called."""
    answered = zip(message.tool_calls, results, strict=True)
    said = tuple(msgspec.structs.replace(call, id=result.call_id) for call, result in answered)
    turn = AssistantMessage(message.text, message.reasoning, message.refusal, said)
    return msgspec.structs.replace(conversation, messages=(*conversation.messages, turn, *results), tool_choice="auto")
