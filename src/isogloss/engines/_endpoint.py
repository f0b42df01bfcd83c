"""A server that is spoken to over HTTP: where it is, what key it wants, what its refusals and its silence mean."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Iterator, Mapping
from email.utils import parsedate_to_datetime
from time import time
from typing import Any

import httpx
import msgspec

from isogloss.errors import EngineCapabilityError, EngineError, EngineTimeoutError, EngineUnavailableError

CONNECT_WITHIN = 10.0
ANSWER_WITHIN = 20.0
"""Seconds; for questions that need no generation, or a short one."""
_CONTEXT_CODE = "context_length_exceeded"
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_LONGEST_MESSAGE = 500


class EngineBusyError(EngineUnavailableError):
    """The server has too much to do, or the caller used up its share. ``retry_after``: seconds, where it says so."""

    code = "engine_busy"

    def __init__(self, message: str, retry_after: float | None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Endpoint:
    """One server. ``title`` is what errors call it, ``running`` how many streams it is at work on for us."""

    def __init__(self, url: str, *, title: str, api_key: str | None = None, timeout: float) -> None:
        """``timeout``: seconds that may pass between two pieces of a stream."""
        self.url = url.rstrip("/")
        self.title = title
        self.running = 0
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            # Connections are not kept: after a stream a server may close one that is about to be used again.
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
            timeout=httpx.Timeout(timeout, connect=CONNECT_WITHIN),
            trust_env=not self.is_loopback,
        )

    @property
    def is_loopback(self) -> bool:
        return httpx.URL(self.url).host in _LOOPBACK

    @property
    def shown(self) -> str:
        """The address without the credentials in it."""
        return str(httpx.URL(self.url).copy_with(userinfo=b""))

    async def close(self) -> None:
        await self._client.aclose()

    async def ask(self, method: str, path: str, body: Any = None, *, within: float = ANSWER_WITHIN) -> bytes:
        """The answer to a question. Raises `EngineError`."""
        response = await self._send(method, path, body, within)
        async with contextlib.aclosing(self._pieces(response)) as pieces:
            return b"".join([piece async for piece in pieces])

    async def stream(self, path: str, body: Any) -> AsyncGenerator[bytes, None]:
        """The pieces of an answer as they come. Raises `EngineError`; closing it closes the connection."""
        with self._at_work():
            async with contextlib.aclosing(self._pieces(await self._send("POST", path, body))) as pieces:
                async for piece in pieces:
                    yield piece

    def ended_early(self) -> EngineUnavailableError:
        """The error for a stream that ended before the answer did."""
        return EngineUnavailableError(
            f"The connection to {self.title} at `{self.shown}` broke: the answer ended before it was complete"
        )

    @contextlib.contextmanager
    def _at_work(self) -> Iterator[None]:
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1

    async def _send(self, method: str, path: str, body: Any, within: float | None = None) -> httpx.Response:
        """A response that has begun, and is none of a refusal."""
        content = None if body is None else msgspec.json.encode(body)
        headers = {} if body is None else {"Content-Type": "application/json"}
        timeout = httpx.USE_CLIENT_DEFAULT if within is None else httpx.Timeout(within, connect=CONNECT_WITHIN)
        request = self._client.build_request(method, self.url + path, content=content, headers=headers, timeout=timeout)
        try:
            response = await self._client.send(request, stream=True)
        except httpx.RequestError as error:
            raise self._lost(error) from error
        if response.status_code == httpx.codes.OK:
            return response
        async with contextlib.aclosing(self._pieces(response)) as pieces:
            said = b"".join([piece async for piece in pieces])
        raise self._refusal(response.status_code, said, response.headers)

    async def _pieces(self, response: httpx.Response) -> AsyncGenerator[bytes, None]:
        try:
            async for piece in response.aiter_bytes():
                yield piece
        except httpx.RequestError as error:
            raise self._lost(error) from error
        finally:
            await response.aclose()

    def _lost(self, error: httpx.RequestError) -> EngineError:
        if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
            return EngineTimeoutError(f"{_capital(self.title)} at `{self.shown}` did not answer in time")
        reason = str(error) or type(error).__name__
        return EngineUnavailableError(f"The connection to {self.title} at `{self.shown}` broke: {reason}")

    def _refusal(self, status: int, content: bytes, headers: Mapping[str, str]) -> EngineError:
        """The error for an answer that is none."""
        message, code = error_in(content)
        said = f"{_capital(self.title)} at `{self.shown}` answered {status}: {message}"
        if status == 429 or (status == 503 and "retry-after" in headers):
            return EngineBusyError(said, _seconds(headers.get("retry-after")))
        if status in (408, 504):
            return EngineTimeoutError(said)
        if status in (401, 403, 404, 502, 503):  # a wrong key or address is not the fault of who asks for a turn
            return EngineUnavailableError(said)
        if status == 400 and (code == _CONTEXT_CODE or "maximum context length" in message):
            return EngineCapabilityError(message, code=_CONTEXT_CODE)
        return EngineCapabilityError(said) if 400 <= status < 500 else EngineError(said)


def error_in(content: bytes) -> tuple[str, str]:
    """The message and the code of OpenAI's error object, or of what servers send that have another one."""
    try:
        said = msgspec.json.decode(content)
        error = said.get("error", said) if isinstance(said, dict) else said
        if isinstance(error, dict):
            message = error.get("message", error.get("detail", error))
            return str(message)[:_LONGEST_MESSAGE], str(error.get("code") or "")
        return str(error)[:_LONGEST_MESSAGE], ""
    except msgspec.DecodeError:
        return content[:_LONGEST_MESSAGE].decode("utf-8", "replace").strip(), ""


def _seconds(value: str | None) -> float | None:
    """``Retry-After``: a number of seconds, or a date."""
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time())
    except ValueError:
        return None


def _capital(title: str) -> str:
    return title[:1].upper() + title[1:] if not title.startswith("vLLM") else title
