"""A response being made: whole, or as the events of a stream."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from typing import Any

from isogloss.chat import Turn, Update
from isogloss.errors import IsoglossError
from isogloss.server.generation import updates_of
from isogloss.server.journal import Checkpoints, Event, Forgotten, Journal, LostResponseError, Recording
from isogloss.server.response_object import ResponseObject
from isogloss.server.response_output import ResponseOutput
from isogloss.server.response_request import ResponseRequest
from isogloss.server.response_store import StoredResponse
from isogloss.server.service import Service

_log = logging.getLogger("isogloss.server")


class ResponseRun:
    """Makes one response for an owner. Ask it once, for the `whole` or, after `begin`, for its `events`."""

    def __init__(self, service: Service, owner: str, asked: ResponseRequest, model: str) -> None:
        self.asked = asked
        self.response = ResponseObject(asked, model)
        self.owner = owner
        self.journal: Journal = self._journal(service)
        self._service = service
        self._turn: Turn = service.chat.stream(asked.conversation, asked.sampling)
        seal = (lambda text: service.state.seal.close(owner, text)) if asked.wants_encrypted_reasoning else None
        self._output = ResponseOutput(asked.custom_tools, asked.wants_logprobs, seal)
        self._updates = updates_of(service, [self._turn])
        self._first: Update | None = None
        self._sequence_number = -1
        self._is_kept = asked.background
        self._has_ended = False

    @property
    def id(self) -> str:
        return self.response.id

    @property
    def stored(self) -> StoredResponse:
        """The response as it is now, with its input."""
        return StoredResponse(self.response.fields, self.asked.input_items, self.asked.background)

    async def whole(self) -> dict[str, Any]:
        """Make the response without a stream. Raises what the turn raises."""
        async for _, update in self._updates:
            for _ in self._output.add(update):
                pass
        self._end()
        if self.asked.store:
            await self._service.state.responses.add(self.owner, self.stored, self._conversation_id)
        return self.response.fields

    async def without_output(self) -> list[Event]:
        """Make a response that says nothing, to be continued: its events."""
        await self._updates.aclose()
        created = self._event("response.created", {"response": dict(self.response.fields)})
        self.response.end("stop", [], self._turn)
        if self.asked.store:
            await self._service.state.responses.add(self.owner, self.stored, self._conversation_id)
        return [created, self._event("response.completed", self._whole())]

    async def begin(self) -> None:
        """Wait for the first sign of the model, so that what fails before it is an error of the request."""
        try:
            _, self._first = await anext(self._updates)
            self._is_kept = True
            await self.journal.begin(self.stored)
        except BaseException:
            await self.close()
            raise

    async def events(self) -> AsyncGenerator[Event, None]:
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
            await self._updates.aclose()
        finally:
            if self._is_kept and not self._has_ended:
                await self._cancel()
            self._service.state.responses.release(self.id)

    async def _made(self) -> AsyncGenerator[Event, None]:
        yield await self._told("response.created", self._whole())
        if self.asked.background:
            yield await self._told("response.queued", self._whole())
        first = self._first or (await anext(self._updates))[1]
        self.response.start()
        yield await self._told("response.in_progress", self._whole())
        for kind, fields in self._output.add(first):
            yield await self._told(kind, fields)
        async for _, update in self._updates:
            for kind, fields in self._output.add(update):
                yield await self._told(kind, fields)
        self._end()
        yield await self._told_last()

    def _end(self) -> None:
        self.response.end(self._output.finish, self._output.items, self._turn)
        if self._service.options.log_content:
            fields = {"request": self.asked.body, "answer": self.response.fields}
            _log.info("response", extra={"fields": fields})

    async def _fail(self, error: IsoglossError | None) -> Event:
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

    async def _told(self, kind: str, fields: dict[str, Any]) -> Event:
        """The event, kept as far as it has to be."""
        event = self._event(kind, fields)
        if kind == "response.output_item.done":
            self.response.reached(self._output.items)
        await self.journal.add(event, self.stored)
        return event

    async def _told_last(self) -> Event:
        event = self._event(f"response.{self.response.status}", self._whole())
        await self.journal.end(event, self.stored)
        self._has_ended = True
        return event

    def _event(self, kind: str, fields: dict[str, Any]) -> Event:
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
