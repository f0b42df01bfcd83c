"""A server that misbehaves, spoken to by URL: what it says and what it breaks off must come out as an error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from isogloss.engines import Chunk, GenerationRequest, Sampling, Usage
from isogloss.engines.llamacpp import LlamaCppEngine
from isogloss.errors import EngineCapabilityError, EngineError, EngineTimeoutError, EngineUnavailableError
from isogloss.events import Piece
from isogloss.tokenizers import byte_level

pytestmark = pytest.mark.anyio

PROPS = json.dumps({"model_path": "models/tiny.gguf", "default_generation_settings": {"n_ctx": 64}}).encode()
LAST = {"content": "", "stop": True, "stop_type": "eos", "tokens_predicted": 2, "tokens_evaluated": 1}
ASK = GenerationRequest(prompt="a")


def answer(body: bytes, status: str = "200 OK") -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status.encode(), len(body), body)


def events(*lines: bytes) -> bytes:
    """A whole stream."""
    return answer(b"".join(line + b"\n\n" for line in lines))


def token(text: str, predicted: int) -> bytes:
    event = {"content": text, "tokens": [text.encode()[-1]], "tokens_predicted": predicted, "stop": False}
    return b"data: " + json.dumps(event, ensure_ascii=False).encode()


@asynccontextmanager
async def server(*answers: bytes | None) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """Gives these answers, one a connection; ``None`` keeps silent. Also what was asked of ``/completion``."""
    waiting = iter(answers)
    bodies: list[dict[str, Any]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if b"content-length: " in head:
            length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
            bodies.append(json.loads(await reader.readexactly(length)))
        data = next(waiting)
        if data is None:
            await reader.read()
        else:
            writer.write(data)
        writer.close()
        await writer.wait_closed()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}", bodies


@asynccontextmanager
async def started(url: str, **options: Any) -> AsyncIterator[LlamaCppEngine]:
    engine = LlamaCppEngine(url, tokenizer=byte_level(), **options)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.close()


async def chunks_of(engine: LlamaCppEngine, request: GenerationRequest = ASK) -> list[Chunk]:
    async with aclosing(engine.generate(request)) as chunks:
        return [chunk async for chunk in chunks]


async def test_pings_and_odd_line_ends_are_no_events() -> None:
    stream = events(b": ping", token("\u2028\x85", 1), b"", token("b", 2), b"data: " + json.dumps(LAST).encode())
    async with server(answer(PROPS), stream) as (url, _), started(f"{url}/v1/") as engine:
        chunks = await chunks_of(engine)
    assert [piece for chunk in chunks for piece in chunk.pieces] == [Piece("\u2028\x85"), Piece("b")]
    assert chunks[-1] == Chunk(finish="stop", usage=Usage(1, 2))


async def test_what_is_asked() -> None:
    sampling = Sampling(
        max_tokens=5,
        temperature=0.5,
        top_p=0.9,
        seed=7,
        stop=("x",),
        logprobs=0,
        presence_penalty=0.1,
        frequency_penalty=0.2,
        logit_bias={65: -1.0},
    )
    request = GenerationRequest(prompt_ids=(1, 2), sampling=sampling, options={"top_k": 3, "cache_prompt": False})
    stream = events(b"data: " + json.dumps(LAST).encode())
    always = {"options": {"top_k": 9, "min_p": 0.1}}
    async with server(answer(PROPS), stream, stream) as (url, bodies), started(url, **always) as engine:
        await chunks_of(engine, request)
        await chunks_of(engine)
    asked, plain = bodies
    assert asked["prompt"] == [1, 2]
    assert plain["prompt"] == [ord("a")]
    expected = {"n_predict": 5, "temperature": 0.5, "top_p": 0.9, "seed": 7, "n_probs": 1, "logit_bias": [[65, -1.0]]}
    expected |= {"presence_penalty": 0.1, "frequency_penalty": 0.2, "top_k": 3, "cache_prompt": False}
    assert expected.items() <= asked.items()
    assert "stop" not in asked
    assert plain.keys().isdisjoint(expected.keys() - {"cache_prompt", "top_k"})
    assert [(body["top_k"], body["min_p"]) for body in bodies] == [(3, 0.1), (9, 0.1)]


async def test_a_grammar_that_the_server_dropped_is_noticed() -> None:
    stream = events(token("n", 1), token("o", 2), b"data: " + json.dumps(LAST).encode())
    request = GenerationRequest(prompt="a", grammar='%llguidance {}\nstart: "never"')
    async with server(answer(PROPS), stream) as (url, _), started(url) as engine:
        chunks = engine.generate(request)
        async with aclosing(chunks):
            assert (await anext(chunks)).pieces == (Piece("n"),)
            with pytest.raises(EngineError, match="broke the grammar that it was given: it wrote 'o'"):
                await anext(chunks)


@pytest.mark.parametrize(
    ("stream", "kind", "reason"),
    [
        (events(b'data: {"error": {"code": 500, "message": "no room"}}'), EngineError, "failed: no room"),
        (events(b'error: {"code": 500, "message": "no room"}'), EngineError, "failed: no room"),
        (events(token("a", 1)), EngineUnavailableError, "ended before it was complete"),
        (events(token("a", 1))[:-4], EngineUnavailableError, "broke: peer closed connection"),
        (answer(b"gateway", "502 Bad Gateway"), EngineError, "answered 502: gateway"),
        (answer(b'{"error": "no"}', "400 Bad Request"), EngineCapabilityError, 'answered 400: {"error": "no"}'),
        (
            answer(b'{"error": {"type": "x", "message": "Loading model"}}', "503 Service Unavailable"),
            EngineUnavailableError,
            "answered 503: Loading model",
        ),
    ],
)
async def test_a_generation_that_fails(stream: bytes, kind: type[EngineError], reason: str) -> None:
    async with server(answer(PROPS), stream) as (url, _), started(url) as engine:
        with pytest.raises(EngineError, match=reason) as caught:
            await chunks_of(engine)
        assert type(caught.value) is kind


async def test_a_server_that_falls_silent() -> None:
    async with server(answer(PROPS), None) as (url, _), started(url, timeout=0.05) as engine:
        with pytest.raises(EngineTimeoutError, match="did not answer in time"):
            await chunks_of(engine)


@pytest.mark.parametrize(
    ("props", "kind", "reason"),
    [
        (answer(b"<html>"), EngineUnavailableError, "There is no llama.cpp server at `http://127.0.0.1:"),
        (answer(b"nothing here", "404 Not Found"), EngineUnavailableError, "answered 404: nothing here"),
        (answer(b"broken", "500 Oh"), EngineUnavailableError, "answered 500: broken"),
        (answer(b"no", "400 Bad Request"), EngineCapabilityError, "answered 400: no"),
    ],
)
async def test_what_is_no_llama_server(props: bytes, kind: type[EngineError], reason: str) -> None:
    async with server(props) as (url, _):
        with pytest.raises(kind, match=reason):
            await LlamaCppEngine(url.replace("//", "//user:secret@")).start()


async def test_messages_are_not_for_it() -> None:
    async with server(answer(PROPS)) as (url, _), started(url) as engine:
        with pytest.raises(EngineCapabilityError, match="takes a prompt, not messages"):
            await chunks_of(engine, GenerationRequest(messages=({"role": "user", "content": "a"},)))


@pytest.mark.parametrize("name", ["model", "health"])
async def test_questions_that_are_refused(name: str) -> None:
    async with server(answer(PROPS), answer(b"no", "400 Bad Request")) as (url, _), started(url) as engine:
        ask: Callable[[], Any] = getattr(engine, name)
        with pytest.raises(EngineUnavailableError, match="answered 400: no"):
            await ask()


@pytest.mark.parametrize("name", ["model", "health"])
async def test_questions_that_are_not_answered(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isogloss.engines.llamacpp.ANSWER_WITHIN", 0.05)
    async with server(answer(PROPS), None) as (url, _), started(url) as engine:
        ask: Callable[[], Any] = getattr(engine, name)
        with pytest.raises(EngineUnavailableError, match="did not answer in time"):
            await ask()
