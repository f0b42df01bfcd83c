"""Keys, limits, the queue before the engine, time limits, slow readers, metrics, logs, CORS, readiness."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from isogloss.chat import Chat
from isogloss.dialects import get_dialect
from isogloss.engines import Usage
from isogloss.engines.scripted import Script, ScriptedEngine
from isogloss.errors import EngineUnavailableError, RequestError
from isogloss.server import ApiKey, create_app, tracing
from isogloss.server.admission import Admission
from isogloss.server.auth import ANYBODY, Keys, parse_keys, read_keys
from isogloss.server.errors import AuthenticationError, OverloadedError, RateLimitError
from isogloss.server.limits import Limits
from isogloss.server.openapi import openapi_description
from isogloss.server.structured_log import JsonFormatter

from .conftest import Serve, Served
from .hold import Hold

LETTERS = Script("abc", cut=1)
HELLO: list[Any] = [{"role": "user", "content": "Hello"}]


def post(served: Served, path: str = "chat/completions", **options: Any) -> httpx.Response:
    body = {"model": "default", "messages": HELLO} if path == "chat/completions" else {"model": "default", "input": "x"}
    return httpx.post(f"{served.url}/v1/{path}", json={**body, **options}, trust_env=False, timeout=30)


def begin(served: Served, **options: Any) -> socket.socket:
    """A request whose answer is not read."""
    url = httpx.URL(served.url)
    connection = socket.create_connection((url.host, url.port or 80))
    body = json.dumps({"model": "default", "messages": HELLO, **options}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: here\r\ncontent-length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    return connection


# --- keys -------------------------------------------------------------------------------------------------------------


def test_keys_are_read(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("# who may\nada secret-a\n\nbob secret-b\n", encoding="utf-8")
    assert read_keys(path) == (ApiKey("ada", "secret-a"), ApiKey("bob", "secret-b"))
    assert parse_keys("alone") == (ApiKey("default", "alone"),)
    for text in ("", "# nothing\n", "one two three"):
        with pytest.raises(RequestError):
            parse_keys(text)
    with pytest.raises(RequestError, match="Cannot read the keys"):
        read_keys(tmp_path / "none")


def test_keys_have_holders() -> None:
    keys = Keys((ApiKey("ada", "a"), ApiKey("bob", "b"), ApiKey("ada", "newer")))
    holders = [keys.holder(f"Bearer {key}") for key in ("a", "b", "newer")]
    assert holders == ["ada", "bob", "ada"]
    for header in ("", "Bearer", "Bearer ", "Basic a", "Bearer aa", "Bearer é"):
        with pytest.raises(AuthenticationError):
            keys.holder(header)
    assert Keys(()).holder("") == ANYBODY


# --- limits -----------------------------------------------------------------------------------------------------------


def test_requests_a_minute() -> None:
    now = [0.0]
    limits = Limits(2, None, lambda: now[0])

    def ask(holder: str) -> None:
        with limits.request(holder):
            pass

    ask("ada")
    ask("ada")
    with pytest.raises(RateLimitError) as caught:
        ask("ada")
    assert caught.value.retry_after == 30
    ask("bob")
    now[0] = 29.0
    with pytest.raises(RateLimitError) as caught:
        ask("ada")
    assert caught.value.retry_after == 1
    now[0] = 30.0
    ask("ada")
    now[0] = 10_000.0
    ask("ada")
    ask("ada")
    with pytest.raises(RateLimitError):
        ask("ada")


def test_a_key_over_its_limit_is_told_when_to_come_back(serve: Serve) -> None:
    served = serve("Hi", requests_per_minute=1, keys=(ApiKey("ada", "a"), ApiKey("bob", "b")))
    ada = served.client(api_key="a")
    ada.chat.completions.create(model="default", messages=HELLO)
    with pytest.raises(openai.RateLimitError) as caught:
        ada.chat.completions.create(model="default", messages=HELLO)
    assert caught.value.code == "rate_limit_exceeded"
    assert caught.value.type == "requests"
    assert 1 <= int(caught.value.response.headers["retry-after"]) <= 60
    assert ada.models.list().data  # reading costs nothing
    served.client(api_key="b").chat.completions.create(model="default", messages=HELLO)


def test_requests_at_once(serve: Serve) -> None:
    hold = Hold(1)
    served = serve(LETTERS, engine={"before_piece": hold}, concurrent_requests=1)
    with begin(served, stream=True):
        assert hold.reached.wait(30)
        assert post(served).status_code == 429
    assert hold.left.wait(30)
    hold.release()
    while (status := post(served).status_code) == 429:
        pass
    assert status == 200


# --- the way to the engine --------------------------------------------------------------------------------------------


def test_places_are_given_in_order_and_freed() -> None:
    async def work() -> None:
        admission = Admission(1, 1)
        order = []

        async def one(name: str) -> None:
            async with admission.place():
                order.append(name)
                await asyncio.sleep(0)

        async with admission.place():
            waiting = asyncio.create_task(one("a"))
            await asyncio.sleep(0)
            assert (admission.running, admission.waiting) == (1, 1)
            with pytest.raises(OverloadedError):
                await one("b")
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            assert admission.waiting == 0
            waiting = asyncio.create_task(one("c"))
            await asyncio.sleep(0)
        await waiting
        assert order == ["c"]
        assert (admission.running, admission.waiting) == (0, 0)

    asyncio.run(work())


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
@pytest.mark.parametrize("stream", [False, True])
def test_more_than_may_wait_is_a_503(serve: Serve, path: str, stream: bool) -> None:
    hold = Hold(1)
    served = serve(LETTERS, engine={"before_piece": hold}, max_running=1, max_waiting=0)
    with begin(served, stream=True) as connection:
        assert hold.reached.wait(30)
        answer = post(served, path, stream=stream)
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "overloaded"
        assert answer.headers["retry-after"] == "1"
        assert "isogloss_running 1.0" in httpx.get(f"{served.url}/metrics", trust_env=False).text
        hold.release()
        said = b""
        while b"[DONE]" not in said:
            said += connection.recv(65536)
    assert post(served, path, stream=stream).status_code == 200


def test_those_who_wait_get_their_turn(serve: Serve) -> None:
    hold = Hold(1)
    served = serve(LETTERS, engine={"before_piece": hold}, max_running=1, max_waiting=5)
    connections = [begin(served) for _ in range(4)]
    assert hold.reached.wait(30)
    assert served.engine.running == 1
    hold.release()
    for connection in connections:
        with connection:
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
    assert len(served.engine.requests) == 4


@pytest.mark.parametrize("stream", [False, True])
def test_a_generation_that_takes_too_long(serve: Serve, stream: bool) -> None:
    served = serve(LETTERS, engine={"before_piece": Hold(1 if stream else 0)}, timeout_seconds=0.05)
    answer = post(served, stream=stream)
    if stream:
        assert '"code":"engine_timeout"' in answer.text
    else:
        assert answer.status_code == 504
        assert answer.json()["error"]["code"] == "engine_timeout"
    assert served.engine.running == 0


def test_a_slow_reader_holds_the_engine_back(serve: Serve) -> None:
    """What is not read is not generated: some buffers fill, then the engine waits."""
    pieces = 200_000
    made = 0

    async def count(position: int) -> None:
        nonlocal made
        made = position
        await asyncio.sleep(0)

    served = serve(Script("x" * pieces, cut=1), engine={"before_piece": count})
    with begin(served, stream=True) as connection:
        connection.settimeout(30)
        said = connection.recv(4096)
        assert said.startswith(b"HTTP/1.1 200")
        before = -1
        while before != made:  # until it stands still
            before = made
            httpx.get(f"{served.url}/ready", trust_env=False)
        assert 0 < made < pieces / 2
    while served.engine.running:
        httpx.get(f"{served.url}/health", trust_env=False)
    assert served.engine.abandoned == 1


# --- what is told -----------------------------------------------------------------------------------------------------


def test_metrics(serve: Serve) -> None:
    served = serve(Script(["<tool_call>", "oops", "</tool_call>"], usage=Usage(7, 3, 2)), aliases=("own",))
    post(served, tools=[{"type": "function", "function": {"name": "f"}}])
    assert post(served, model="none").status_code == 404
    text = httpx.get(f"{served.url}/metrics", trust_env=False).text
    for line in (
        'isogloss_tokens_total{kind="prompt"} 7.0',
        'isogloss_tokens_total{kind="cached"} 2.0',
        'isogloss_tokens_total{kind="completion"} 3.0',
        'isogloss_malformed_total{dialect="hermes"} 1.0',
        'isogloss_requests_total{route="/v1/chat/completions",status="200"} 1.0',
        'isogloss_requests_total{route="/v1/chat/completions",status="404"} 1.0',
        "isogloss_time_to_first_token_seconds_count 1.0",
        "isogloss_waiting 0.0",
        "isogloss_running 0.0",
    ):
        assert line in text.splitlines()
    assert 'isogloss_grammar_cache_lookups_total{result="hit"}' in text


def test_every_answer_has_an_id(serve: Serve) -> None:
    served = serve("Hi", keys=(ApiKey("me", "secret"),))
    answers = [post(served), httpx.get(f"{served.url}/health", trust_env=False)]
    answers.append(httpx.get(f"{served.url}/v1/none", trust_env=False))
    ids = {answer.headers["x-request-id"] for answer in answers}
    assert len(ids) == 3
    assert all(one.startswith("req_") for one in ids)


@pytest.mark.parametrize("log_content", [False, True])
@pytest.mark.parametrize("path", ["chat/completions", "responses"])
def test_content_is_logged_only_when_asked(
    serve: Serve, caplog: pytest.LogCaptureFixture, log_content: bool, path: str
) -> None:
    caplog.set_level(logging.DEBUG, "isogloss")
    served = serve("a pass word", log_content=log_content)
    said = {"messages": [{"role": "user", "content": "open sesame"}]}
    asked: dict[str, Any] = said if path == "chat/completions" else {"input": "open sesame"}
    assert post(served, path, **asked).status_code == 200
    while not any(record.name == "isogloss.server.access" for record in caplog.records):
        httpx.get(f"{served.url}/health", trust_env=False)  # the line is written when the answer has been sent
    lines = [JsonFormatter().format(record) for record in caplog.records]
    access = [json.loads(line) for line in lines if f"/v1/{path}" in line and "isogloss.server.access" in line]
    assert [(one["method"], one["path"], one["status"], one["key"]) for one in access] == [
        ("POST", f"/v1/{path}", 200, "anybody")
    ]
    for secret in ("open sesame", "a pass word"):
        assert any(secret in line for line in lines) == log_content


def test_a_line_of_the_log() -> None:
    record = logging.LogRecord("isogloss", logging.WARNING, "", 0, "%s fell", ("Ada",), None)
    record.fields = {"status": 5, "thing": object}
    line = json.loads(JsonFormatter().format(record))
    assert (line["level"], line["message"], line["status"]) == ("warning", "Ada fell", 5)
    assert "request_id" not in line
    try:
        raise ValueError("x")
    except ValueError as error:
        record.exc_info = (ValueError, error, None)
    assert "ValueError: x" in json.loads(JsonFormatter().format(record))["exception"]


def test_requests_are_traced(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    spans: list[tuple[str, dict[str, str]]] = []

    class Tracer:
        @contextmanager
        def start_as_current_span(self, name: str, attributes: dict[str, str]) -> Iterator[None]:
            spans.append((name, attributes))
            yield

    served = serve("Hi")
    monkeypatch.setattr(tracing, "_tracer", Tracer)
    answer = post(served)
    [(name, attributes)] = spans
    assert (name, attributes["url.path"]) == ("POST", "/v1/chat/completions")
    assert attributes["isogloss.request_id"] == answer.headers["x-request-id"]


def test_readiness(serve: Serve) -> None:
    served = serve("Hi")
    assert httpx.get(f"{served.url}/ready", trust_env=False).json() == {"status": "ok"}
    served.engine.failure = EngineUnavailableError("gone")
    assert httpx.get(f"{served.url}/ready", trust_env=False).status_code == 503


def test_a_defect_is_a_500_without_details(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    served = serve("Hi")

    def broken(*_: object) -> Any:
        raise ZeroDivisionError("a detail")

    served.engine._script_for = broken
    answer = post(served)
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "internal_error"
    assert "a detail" not in answer.text
    assert answer.headers["x-request-id"].startswith("req_")
    assert "a detail" in caplog.text


def test_browsers_are_let_in_by_name_only(serve: Serve) -> None:
    headers = {"origin": "https://page.example", "access-control-request-method": "POST"}
    closed = httpx.options(f"{serve('Hi').url}/v1/responses", headers=headers, trust_env=False)
    assert "access-control-allow-origin" not in closed.headers
    served = serve("Hi", cors_origins=("https://page.example",), keys=(ApiKey("me", "secret"),))
    opened = httpx.options(f"{served.url}/v1/responses", headers=headers, trust_env=False)
    assert opened.headers["access-control-allow-origin"] == "https://page.example"
    other = httpx.options(
        f"{served.url}/v1/responses", headers={**headers, "origin": "https://other.example"}, trust_env=False
    )
    assert "access-control-allow-origin" not in other.headers


def test_the_description(serve: Serve) -> None:
    description = httpx.get(f"{serve('Hi').url}/openapi.json", trust_env=False, timeout=30).json()
    assert description["openapi"] == "3.1.0"
    text = json.dumps(description)
    names = set(description["components"]["schemas"])
    referred = {part.partition('"')[0] for part in text.split('"#/components/schemas/')[1:]}
    assert referred <= names
    assert "/v1/conversations/{conversation_id}/items/{item_id}" in description["paths"]


def test_the_description_has_the_options_of_the_engine(serve: Serve) -> None:
    served = serve("Hi", engine={"options": ["priority"]})
    paths = httpx.get(f"{served.url}/openapi.json", trust_env=False, timeout=30).json()["paths"]
    for path, has in (("/v1/chat/completions", True), ("/v1/responses", True), ("/v1/responses/compact", False)):
        body = paths[path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert ("priority" in body["properties"]) is has


def test_every_route_is_described() -> None:
    app = create_app(Chat(ScriptedEngine("Hi"), get_dialect("hermes")))
    assert set(app.openapi()["paths"]) == set(openapi_description()["paths"]) | {"/metrics", "/openapi.json"}
