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
        base = url.rstrip("/")
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
            models = [entry["id"] for entry in answer.json().get("data", ())]
            if not models:
                raise EngineError(f"`{self.url}` serves no model")
            self._model = str(models[0])
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


def _chunk(data: bytes) -> dict[str, Any]:
    chunk: dict[str, Any] = json.loads(data)
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
