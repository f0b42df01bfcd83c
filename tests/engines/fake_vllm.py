"""A stand-in for vLLM's server that speaks its wire format on loopback: what it says is decided by the test.

As the server does it holds output to the grammar, closes a turn that is complete with the token that ends one, delivers
text late where a character is split over tokens, and ignores fields that it does not know.
"""

from __future__ import annotations

import asyncio
import codecs
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from isogloss.constraints import Matcher
from isogloss.errors import GrammarError
from isogloss.tokenizers import Tokenizer

Say = Callable[[Mapping[str, Any]], Sequence[int]]
"""The tokens that the model would say, by the body of the request."""


class FakeVllm:
    """``backend``: the library by which it constrains output; ``None`` for a version that ignores grammars.

    It keeps the bodies of all ``completions``. ``answers`` are raw bytes sent instead of the next answers to them.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        say: Say,
        *,
        backend: str | None = "guidance",
        model: str = "m",
        root: str = "models/m",
        max_model_len: int = 1024,
        api_key: str | None = None,
        tokens_per_event: int = 1,
        answers: Sequence[bytes | None] = (),
    ) -> None:
        self.tokenizer = tokenizer
        self.say = say
        self.backend = backend
        self.model = model
        self.root = root
        self.max_model_len = max_model_len
        self.api_key = api_key
        self.tokens_per_event = tokens_per_event
        self.answers = list(answers)
        self.completions: list[dict[str, Any]] = []
        self.running = 0
        self.is_healthy = True
        self.url = ""
        self.hold: asyncio.Event | None = None
        """While set, a generation waits for it behind its first event."""

    @property
    def asked(self) -> list[dict[str, Any]]:
        """The completions without those by which it was probed."""
        return [body for body in self.completions if body.get("stream")]

    @asynccontextmanager
    async def serving(self, port: int = 0) -> AsyncIterator[FakeVllm]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            method, path, _ = head.split(" ", 2)
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head.splitlines())}
            body = json.loads(await reader.readexactly(int(headers.get("content-length", 0))) or b"{}")
            if self.api_key is not None and headers.get("authorization") != f"Bearer {self.api_key}":
                writer.write(refusal(401, "Unauthorized"))
            elif (method, path) == ("POST", "/v1/completions"):
                await self._complete(body, reader, writer)
            else:
                writer.write(self._answer(path, body))
            await writer.drain()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    def _answer(self, path: str, body: Mapping[str, Any]) -> bytes:
        if not self.is_healthy:
            return answer(b"", "503 Service Unavailable")
        if path == "/health":
            return answer(b"")
        if path == "/v1/models":
            entry = {"id": self.model, "object": "model", "root": self.root, "max_model_len": self.max_model_len}
            return answer(json.dumps({"object": "list", "data": [entry]}).encode())
        if path == "/detokenize":
            return answer(json.dumps({"prompt": self.tokenizer.decode(body["tokens"])}).encode())
        return answer(b'{"detail":"Not Found"}', "404 Not Found")

    async def _complete(self, body: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.completions.append(body)
        if body.get("stream") and self.answers:
            data = self.answers.pop(0)
            if data is None:
                await reader.read()
            else:
                writer.write(data)
            return
        if body["model"] != self.model:
            writer.write(refusal(404, f"The model `{body['model']}` does not exist. Valid aliases: {self.model}."))
            return
        try:
            ids, finish = self._generate(body)
        except GrammarError as error:
            writer.write(refusal(400, f"Grammar error: {error.message}"))
            return
        except NotImplementedError as error:
            writer.write(refusal(500 if self.backend == "xgrammar" else 400, str(error)))
            return
        if body.get("stream"):
            await self._stream(body, ids, finish, reader, writer)
            return
        text = self.tokenizer.decode([token for token in ids if token not in self.tokenizer.special_tokens.values()])
        writer.write(answer(json.dumps({"choices": [{"index": 0, "text": text, "finish_reason": finish}]}).encode()))

    def _generate(self, body: Mapping[str, Any]) -> tuple[list[int], str]:
        constraint = body.get("structured_outputs") if self.backend is not None else None
        ends = {*self.tokenizer.end_tokens} if not body.get("ignore_eos") else set()
        ends |= {*body.get("stop_token_ids", ())}
        limit = body.get("max_tokens") or 16
        if constraint is None:
            said = list(self.say(body))
        elif "grammar" in constraint and self.backend == "guidance":
            said = self._constrained(constraint["grammar"], self.say(body))
        elif "structural_tag" in constraint and self.backend == "xgrammar":
            tag = json.loads(constraint["structural_tag"])["format"]
            said = self.tokenizer.encode(tag["value"]) if tag["type"] == "const_string" else list(self.say(body))
        else:
            raise NotImplementedError("Internal server error" if self.backend == "xgrammar" else "'triggers'")
        for position, token in enumerate(said):
            if position == limit:
                return said[:limit], "length"
            if token in ends:
                return said[: position + 1], "stop"
        return (said, "stop") if len(said) < limit else (said[:limit], "length")

    def _constrained(self, grammar: str, wanted: Sequence[int]) -> list[int]:
        """What the model wants to say as far as the grammar allows it, and then whatever it allows."""
        matcher = Matcher(grammar, self.tokenizer)
        said = list(wanted[: matcher.accept_all(wanted)])
        end = min(self.tokenizer.end_tokens)
        while not matcher.is_ended and len(said) < self.max_model_len:
            mask = matcher.mask()
            allowed = [token for token in range(self.tokenizer.vocabulary_size) if mask[token // 32] >> token % 32 & 1]
            token = (matcher.forced_tokens() or [end if matcher.is_complete else allowed[0]])[0]
            assert matcher.accept(token) or matcher.is_stopped
            said.append(token)
            if token in self.tokenizer.end_tokens:
                break
        return said

    async def _stream(
        self,
        body: Mapping[str, Any],
        ids: Sequence[int],
        finish: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.running += 1
        gone = asyncio.create_task(reader.read())
        try:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
            for event in self._events(body, ids, finish):
                writer.write(b"data: " + json.dumps(event).encode() + b"\n\n")
                await writer.drain()
                await asyncio.sleep(0)
                if self.hold is not None:
                    held = asyncio.create_task(self.hold.wait())
                    await asyncio.wait({gone, held}, return_when=asyncio.FIRST_COMPLETED)
                    held.cancel()
                if gone.done():
                    return
            writer.write(b"data: [DONE]\n\n")
        finally:
            gone.cancel()
            self.running -= 1

    def _events(self, body: Mapping[str, Any], ids: Sequence[int], finish: str) -> Iterator[dict[str, Any]]:
        head = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": self.model}
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for start in range(0, len(ids), self.tokens_per_event):
            run = ids[start : start + self.tokens_per_event]
            is_last = start + self.tokens_per_event >= len(ids)
            choice: dict[str, Any] = {
                "index": 0,
                "text": decoder.decode(b"".join(map(self.tokenizer.token_bytes, run))),
                "logprobs": None,
                "finish_reason": finish if is_last else None,
                "stop_reason": None,
            }
            if body.get("return_token_ids"):
                choice["prompt_token_ids"] = body["prompt"] if start == 0 else None
                choice["token_ids"] = list(run)
            if body.get("logprobs") is not None:
                choice["logprobs"] = self._logprobs(run, body["logprobs"])
            yield {**head, "choices": [choice]}
        if body.get("stream_options", {}).get("include_usage"):
            counts = {"prompt_tokens": len(body["prompt"]), "completion_tokens": len(ids)}
            details = {"prompt_tokens_details": {"cached_tokens": len(body["prompt"]) // 16 * 16}}
            yield {**head, "choices": [], "usage": {**counts, **details, "total_tokens": sum(counts.values())}}

    def _logprobs(self, run: Sequence[int], count: int) -> dict[str, Any]:
        """The chosen token is the likeliest; the others are its neighbours."""
        tops = [{f"token_id:{token + rank}": -0.5 - rank for rank in range(max(1, count))} for token in run]
        return {
            "text_offset": [0] * len(run),
            "tokens": [f"token_id:{token}" for token in run],
            "token_logprobs": [-0.5] * len(run),
            "top_logprobs": tops,
        }


def answer(body: bytes, status: str = "200 OK") -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status.encode(), len(body), body)


def refusal(status: int, message: str, *headers: str) -> bytes:
    """An error as vLLM writes it."""
    error = {"message": message, "type": "BadRequestError", "param": None, "code": status}
    body = json.dumps({"error": error}).encode()
    lines = [f"HTTP/1.1 {status} No", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
