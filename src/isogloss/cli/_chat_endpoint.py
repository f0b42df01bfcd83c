"""A server with the Chat Completions API, as a client of it sees it."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import httpx

from isogloss.engines._event_lines import EventLines, event_data
from isogloss.errors import EngineError, EngineUnavailableError, RequestError

_TIMEOUT = httpx.Timeout(10, read=None)
"""A model may think for as long as it likes."""
_DONE = b"[DONE]"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""No proxy stands between a machine and itself."""


class ChatEndpoint:
    """Where to ask, and for which model.

    Every method raises `EngineUnavailableError` when the server cannot be reached, `RequestError` for what it does not
    accept, and `EngineError` when it fails.
    """

    def __init__(self, url: str, *, key: str | None = None, model: str | None = None) -> None:
        """Raises `RequestError` for what is no URL of a server."""
        base = _checked(url).rstrip("/")
        self.url = base if base.endswith("/v1") else f"{base}/v1"
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        is_near = httpx.URL(self.url).host in _LOOPBACK
        self._client = httpx.Client(headers=headers, timeout=_TIMEOUT, trust_env=not is_near)
        self._model = model

    def close(self) -> None:
        self._client.close()

    @property
    def model(self) -> str:
        """The model that is asked: the one that was named, else the first that the server lists."""
        if self._model is None:
            try:
                answer = self._client.get(f"{self.url}/models")
            except httpx.TransportError as error:
                raise self._unreachable(error) from None
            _check(answer)
            try:
                models = [str(entry["id"]) for entry in answer.json()["data"]]
            except (ValueError, TypeError, KeyError):
                raise EngineError(
                    f"`{self.url}` lists no models: is it a server with the Chat Completions API?"
                ) from None
            if not models:
                raise EngineError(f"`{self.url}` serves no model")
            self._model = models[0]
        return self._model

    def stream(self, request: dict[str, Any]) -> Generator[dict[str, Any], None, None]:
        """The chunks of an answer as they come. Closing the generator stops the server."""
        body = {"model": self.model, **request, "stream": True}
        lines = EventLines()
        try:
            with self._client.stream("POST", f"{self.url}/chat/completions", json=body) as answer:
                if answer.is_error:
                    answer.read()
                _check(answer)
                for data in answer.iter_bytes():
                    for line in lines.feed(data):
                        said = event_data(line)
                        if said and said != _DONE:
                            yield _chunk(said)
        except httpx.TransportError as error:
            raise self._unreachable(error) from None

    def _unreachable(self, error: httpx.TransportError) -> EngineUnavailableError:
        return EngineUnavailableError(f"Cannot reach `{self.url}`: {error or type(error).__name__}")


def _checked(url: str) -> str:
    """The URL. Raises `RequestError` where it is none, with the one that may be meant."""
    try:
        parsed = httpx.URL(url)
        if parsed.scheme in ("http", "https") and parsed.host:
            return url
    except httpx.InvalidURL:
        pass
    address = url.rpartition("//")[2]
    raise RequestError(
        f"Expected a URL that begins with http:// or https://, got {url!r}"
        + (f"; did you mean http://{address}?" if address else "")
    )


def _chunk(data: bytes) -> dict[str, Any]:
    try:
        chunk = json.loads(data)
    except (ValueError, RecursionError):
        chunk = None
    if not isinstance(chunk, dict):
        raise EngineError(f"Expected a chunk of a Chat Completions stream, got {data[:80]!r}")
    if "error" in chunk:
        raise EngineError(_message(chunk) or "The server failed")
    return chunk


def _check(answer: httpx.Response) -> None:
    if not answer.is_error:
        return
    try:
        message = _message(answer.json())
    except ValueError:
        message = None
    kind = EngineError if answer.status_code >= 500 else RequestError
    raise kind(message or f"The server answered {answer.status_code}")


def _message(body: Any) -> str | None:
    """What an ``error`` says, an object with a message or a string."""
    error = body.get("error") if isinstance(body, dict) else None
    return str(error.get("message")) if isinstance(error, dict) else error
