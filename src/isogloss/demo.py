"""`isogloss demo`: a server with a small model, and the official client asking it for three things."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import httpx
from openai import OpenAI
from pydantic import BaseModel, Field
from rich.console import Console
from rich.rule import Rule

from isogloss.demo_model import DIALECT, demo_model_path
from isogloss.errors import EngineUnavailableError

START_LIMIT = 120.0
"""Seconds the server may take to come up, model loading included."""


SENTENCE = "Alice and Bob are going to a science fair on Friday, 2026-12-04."

TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather forecast for a city",
            "strict": True,
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Name of the city", "pattern": "^[A-Z][a-z]{2,20}$"},
                    "days": {"type": "integer", "minimum": 1, "maximum": 7},
                    "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                },
                "required": ["city", "days", "unit"],
                "additionalProperties": False,
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "get_time",
            "description": "The local time of a city",
            "strict": True,
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "description": "Name of the city"}},
                "required": ["city"],
                "additionalProperties": False,
            },
        },
    },
]


class CalendarEvent(BaseModel):
    """An event in a calendar."""

    name: str
    date: Annotated[str, Field(json_schema_extra={"format": "date"})]
    participants: Annotated[list[str], Field(min_length=1, max_length=4)]


def run(console: Console) -> None:
    """All of it. Raises `IsoglossError` subclasses for what can go wrong on a user's machine."""
    console.print(Rule("Isogloss demo"))
    with console.status("Looking for the demo model (SmolLM2-135M-Instruct, 98 MB, fetched once)"):
        model = demo_model_path()
    port = free_port()
    console.print(f"Serving {model.name} on http://127.0.0.1:{port}")
    with served(model, port) as url:
        client = OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=300)
        name = client.models.list().data[0].id
        _typed_answer(client, name, console)
        _tool_call(client, name, console)
        _plain_answer(client, name, console)
    console.print(Rule("Done"))


def _typed_answer(client: OpenAI, model: str, console: Console) -> None:
    console.print(Rule("1. A typed answer: chat.completions.parse(response_format=CalendarEvent)", align="left"))
    console.print(f"user: {SENTENCE}", style="dim", highlight=False)
    completion = client.chat.completions.parse(
        model=model,
        messages=[
            {"role": "system", "content": "Extract the event as JSON with name, date and participants."},
            {"role": "user", "content": SENTENCE},
        ],
        response_format=CalendarEvent,
        temperature=0,
        max_completion_tokens=120,
    )
    event = completion.choices[0].message.parsed
    console.print(repr(event), highlight=False)
    console.print(f"-> a {type(event).__name__} that satisfies its schema", style="green")


def _tool_call(client: OpenAI, model: str, console: Console) -> None:
    console.print(Rule('2. A tool call: stream=True, two tools, tool_choice="required"', align="left"))
    question = "What will the weather be in Paris tomorrow, in celsius?"
    console.print(f"user: {question}", style="dim", highlight=False)
    stream = client.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": question}],
        tools=TOOLS,
        tool_choice="required",
        parallel_tool_calls=False,
        temperature=0,
        max_completion_tokens=120,
        stream=True,
    )
    name = arguments = finish = ""
    for chunk in stream:
        choice = chunk.choices[0]
        finish = choice.finish_reason or finish
        for call in choice.delta.tool_calls or ():
            function = call.function
            if function is not None and function.name:
                name = function.name
                console.print(f"{name} ", end="", style="bold", highlight=False)
            if function is not None and function.arguments:
                arguments += function.arguments
                console.print(function.arguments, end="", style="cyan", highlight=False, markup=False)
    console.print()
    value = json.loads(arguments)
    console.print(f"-> finish_reason {finish}: {name}({value})", style="green", highlight=False, markup=False)


def _plain_answer(client: OpenAI, model: str, console: Console) -> None:
    console.print(Rule("3. A plain answer, streamed", align="left"))
    question = "What is the capital of France? Answer in one sentence."
    console.print(f"user: {question}", style="dim", highlight=False)
    stream = client.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": question}],
        temperature=0,
        max_completion_tokens=60,
        stream=True,
    )
    for chunk in stream:
        console.print(chunk.choices[0].delta.content or "", end="", highlight=False, markup=False)
    console.print()


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def served(model: Path | str, port: int, *options: str) -> Iterator[str]:
    """`isogloss serve` in a process of its own, with further options, ready to answer; its address."""
    command = [sys.executable, "-m", "isogloss", "serve", "--model", str(model), "--dialect", DIALECT]
    command += ["--port", str(port), "--store", "memory", *options]
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait_until_ready(url, process, log)
            yield url
        finally:
            process.terminate()
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Any) -> None:
    deadline = time.monotonic() + START_LIMIT
    while time.monotonic() < deadline:
        if process.poll() is not None:
            log.seek(0)
            said = log.read().decode(errors="replace").strip()
            raise EngineUnavailableError(f"The server ended with exit code {process.returncode}: {said[-2000:]}")
        try:
            if httpx.get(f"{url}/health", timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise EngineUnavailableError(f"The server was not ready after {START_LIMIT:.0f} seconds")
