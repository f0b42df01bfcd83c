"""Rendering a conversation of 200 messages with 20 tools: against model templates in Jinja, and against renderers.

Templates are those that llama.cpp's sources carry (``scripts/chat_templates.py``). Both sides hold the conversation in
their own form before the clock starts, and keep nothing from one render to the next but a compiled template.
"""

from __future__ import annotations

import json
import runpy
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import scan
from benchmarks.environments import SCRIPTS
from benchmarks.results import Results, Row, Spread, in_turns, ratios
from benchmarks.vocabulary import vocabulary_folder
from benchmarks.workers import Worker, WorkError, running
from isogloss.demo_model import cache_directory
from isogloss.dialects import dialect_names, get_dialect
from isogloss.messages import Conversation
from isogloss.tokenizers import o200k_harmony

TEMPLATES = {
    "deepseek": "deepseek-ai-DeepSeek-V3.1",
    "gemma": "google-gemma-4-31B-it",
    "glm": "GLM-4.7-Flash",
    "harmony": "openai-gpt-oss-120b",
    "hermes": "NousResearch-Hermes-3-Llama-3.1-8B-tool_use",
    "kimi": "Kimi-K2-Thinking",
    "llama3": "meta-llama-Llama-3.1-8B-Instruct",
    "minimax": "MiniMax-M2",
    "qwen3": "Qwen-Qwen3-0.6B",
    "qwen3_coder": "Qwen3-Coder",
}
ROUNDS = 5
TIMES = 5
"""Renders a round."""


def request(turns: int = 50, tools: int = 20) -> dict[str, Any]:
    """Four messages a turn: user, a call with reasoning, its result, the answer."""
    properties = {f"p{number}": {"type": "string", "description": "A parameter"} for number in range(5)}
    parameters = {"type": "object", "properties": properties}
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be of help."}]
    for number in range(turns):
        name, called = "tool_3", {"p0": "a value", "p1": "another, <b>longer</b> one"}
        function = {"name": name, "arguments": called}
        call = {"id": f"call{number:05}", "type": "function", "function": function}
        messages += [
            {"role": "user", "content": "Please look it up, and tell me what you found. " * 4},
            {
                "role": "assistant",
                "content": "",
                "reasoning_content": "I should look it up first.",
                "tool_calls": [call],
            },
            {"role": "tool", "tool_call_id": call["id"], "name": name, "content": "A result of some length. " * 12},
            {"role": "assistant", "content": "Here is what I found. " * 10},
        ]
    return {
        "messages": messages,
        "tools": [
            {
                "type": "function",
                "function": {"name": f"tool_{number}", "description": "What it does", "parameters": parameters},
            }
            for number in range(tools)
        ],
    }


def ours(asked: dict[str, Any]) -> dict[str, Any]:
    """The request with arguments as text, as OpenAI's API has them; templates want objects."""
    written: dict[str, Any] = json.loads(json.dumps(asked))
    for message in written["messages"]:
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = json.dumps(call["function"]["arguments"])
    return written


def measure(results: Results) -> None:
    """Both kinds, and our own table of all dialects."""
    with running("isogloss", "transformers", "jinja2", "renderers") as (workers, missing):
        results.missing.update(missing)
        sides = {worker.name: worker for worker in workers}
        for name in ("transformers", "jinja2"):
            if name in sides:
                results.rows += _templates(sides["isogloss"], sides[name])
        if "renderers" in sides:
            results.rows += _renderers(sides["isogloss"], sides["renderers"])
    results.alone["render"] = list(_alone())


def _templates(mine: Worker, peer: Worker) -> Iterator[Row]:
    folder = cache_directory() / "chat-templates"
    if not folder.is_dir():
        runpy.run_path(str(SCRIPTS / "chat_templates.py"), run_name="__main__")
    asked = request()
    for dialect, file in TEMPLATES.items():
        source = Path(folder / f"{file}.jinja").read_text("utf-8")
        told = {"source": source, "request": asked, "times": TIMES, "alone": peer.name == "jinja2"}
        works = {"by its dialect": "render_text", "by its template": "render_template"}
        for how, work in works.items():
            given = {"dialect": dialect, "source": source, "request": ours(asked), "times": TIMES}
            yield from _row(f"{dialect}, {how}", "ms", mine, peer, (work, given), ("render_template", told))


def _renderers(mine: Worker, peer: Worker) -> Iterator[Row]:
    vocabulary, asked = vocabulary_folder(), request()
    for dialect in peer.ask("dialects")["dialects"]:
        markers = sorted(get_dialect(dialect).markers.special)
        try:
            special = peer.ask("special_tokens", dialect=dialect, vocabulary=vocabulary, markers=markers)
        except WorkError as error:
            print(f"renderers fails at {dialect}: {error}", flush=True)
            continue
        told = {"dialect": dialect, "vocabulary": vocabulary, "request": asked, "times": TIMES, **special}
        given = {**told, "request": ours(asked)}
        yield from _row(f"{dialect}, to token ids", "ms", mine, peer, ("render_tokens", given), ("render_tokens", told))
        text = scan.output(get_dialect(dialect), 20_000)
        told = {"dialect": dialect, "vocabulary": vocabulary, "tools": scan.OPENAI, "text": text, "times": TIMES}
        try:
            answer = peer.ask("parse_tokens", **told)
        except WorkError as error:
            print(f"renderers fails at {dialect}: {error}", flush=True)
            continue
        given = {**told, "ids": answer["ids"], **special}
        note = scan.difference(answer["arguments"], 20_000)
        works = ("parse_tokens", given), ("parse_tokens", told)
        yield from _row(f"{dialect}, a 20 KB call from token ids", "ms", mine, peer, *works, note)


def _row(
    case: str,
    unit: str,
    mine: Worker,
    peer: Worker,
    given: tuple[str, dict[str, Any]],
    told: tuple[str, dict[str, Any]],
    note: str = "",
) -> Iterator[Row]:
    lengths: dict[str, int] = {}

    def run(side: Worker, work: str, arguments: dict[str, Any]) -> float:
        answer = side.ask(work, **arguments)
        lengths[side.name] = answer.get("length", 0)
        return float(answer["seconds"]) / TIMES * 1e3

    sides = {mine.name: lambda: run(mine, *given), peer.name: lambda: run(peer, *told)}
    try:
        figures = in_turns(sides, ROUNDS)
    except WorkError as error:
        print(f"{case}, {peer.name}: {error}", flush=True)
        return
    spreads = (Spread.of(figures[mine.name]), Spread.of(figures[peer.name]))
    if abs(lengths[mine.name] - lengths[peer.name]) > 0.05 * lengths[peer.name]:
        note = f"lengths differ: {lengths[mine.name]:,} and {lengths[peer.name]:,}"
    ratio = ratios(figures[mine.name], figures[peer.name])
    row = Row("render", case, peer.name, peer.version, unit, *spreads, ratio, note=note)
    print(f"{row.case}, {row.peer}: {row.ours.min:.2f} {row.theirs.min:.2f} ms {row.ratio} {note}", flush=True)
    yield row


def milliseconds(work: Callable[[], object], repeats: int = 7) -> float:
    """CPU milliseconds, the best of several runs."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best * 1e3


def _alone() -> Iterator[dict[str, Any]]:
    """Every dialect, whether or not a peer has it."""
    asked = Conversation.from_openai(ours(request()))
    tokenizer = o200k_harmony()
    tokenizer.encode("warm")
    for name in dialect_names():
        dialect = get_dialect(name)
        prompt = dialect.render(asked)
        ids = prompt.tokens(tokenizer)
        text = milliseconds(lambda dialect=dialect: dialect.render(asked).text)  # type: ignore[misc]
        tokens = milliseconds(lambda dialect=dialect: dialect.render(asked).tokens(tokenizer))  # type: ignore[misc]
        yield {
            "dialect": name,
            "characters": len(prompt.text),
            "text, ms": round(text, 2),
            "tokens": len(ids),
            "token ids, ms": round(tokens, 2),
        }
