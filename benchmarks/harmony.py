"""harmony: the stand-in for openai_harmony against the package itself, on the same input in one run.

`python -m benchmarks harmony` prints a table of CPU times and their ratio; every result is compared before it is timed.
The package needs its vocabulary as a file, which is written from ours. Memory is the growth of the resident set of a
fresh process that loads the encoding and parses and renders once.
"""

from __future__ import annotations

import base64
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

TEXT = (
    "the quick brown fox jumps over a lazy dog weather Paris temperature function returns object value number string "
    'request response 🙂 Zürich naïve 日本語 def print(x): {"a": 1}'
)
WORDS = TEXT.split()


class Side(NamedTuple):
    """One of the two packages, loaded."""

    module: ModuleType
    encoding: Any


class Measurement(NamedTuple):
    """Microseconds of CPU a unit, for both sides."""

    label: str
    unit: str
    theirs: float
    ours: float


def words(count: int, chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=count))


def tool(module: ModuleType, number: int, chance: random.Random) -> Any:
    properties = {
        f"p{position}": {"type": "string", "description": words(6, chance), "enum": ["a", "b"]}
        if position % 3 == 0
        else {"type": "number", "description": words(6, chance), "default": position}
        for position in range(5)
    }
    schema = {"type": "object", "properties": properties, "required": ["p0"]}
    return module.ToolDescription.new(f"tool_{number}", words(10, chance), schema)


def conversation(module: ModuleType, messages: int, tools: int) -> Any:
    """System and developer message, then turns of user, reasoning, call, result and answer."""
    chance = random.Random(messages)
    role, message = module.Role, module.Message
    system = module.SystemContent.new().with_conversation_start_date("2026-01-01")
    developer = module.DeveloperContent.new().with_instructions(words(40, chance))
    if tools:
        system.with_browser_tool()
        developer.with_function_tools([tool(module, number, chance) for number in range(tools)])
    made = [
        message.from_role_and_content(role.SYSTEM, system),
        message.from_role_and_content(role.DEVELOPER, developer),
    ]
    while len(made) < messages:
        arguments = json.dumps({"p0": words(20, chance)})
        result = module.Author.new(role.TOOL, "functions.tool_1")
        made += [
            message.from_role_and_content(role.USER, words(60, chance)),
            message.from_role_and_content(role.ASSISTANT, words(80, chance)).with_channel("analysis"),
            message.from_role_and_content(role.ASSISTANT, arguments)
            .with_channel("commentary")
            .with_recipient("functions.tool_1")
            .with_content_type("<|constrain|>json"),
            message.from_author_and_content(result, words(60, chance)).with_channel("commentary"),
            message.from_role_and_content(role.ASSISTANT, words(80, chance)).with_channel("final"),
        ]
    return module.Conversation.from_messages(made[:messages])


def completion(side: Side, tokens: int) -> list[int]:
    """Reasoning and an answer, about that many tokens together."""
    chance = random.Random(tokens)
    text = side.encoding.encode(words(tokens, chance))
    marked = [
        side.encoding.encode(f"{head}<|message|>", allowed_special="all")
        for head in ("<|channel|>analysis", "<|end|><|start|>assistant<|channel|>final")
    ]
    half = tokens // 2
    return [*marked[0], *text[:half], *marked[1], *text[half:tokens], 200002]


def seconds(run: Callable[[], object], repeats: int) -> float:
    """CPU time, the best of several runs."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def compared(label: str, unit: str, units: int, runs: Sequence[Callable[[], object]], repeats: int = 7) -> Measurement:
    """Both sides, theirs first; ``units`` is how many of the unit one run does."""
    theirs, ours = (seconds(run, repeats) / units * 1e6 for run in runs)
    return Measurement(label, unit, theirs, ours)


def rendering(sides: Sequence[Side]) -> list[Measurement]:
    measured = []
    for messages, tools, times in ((200, 20, 1), (4, 0, 50)):
        made = [conversation(side.module, messages, tools) for side in sides]

        def render(side: Side, made: Any, times: int = 1) -> list[int]:
            tokens: list[int] = []
            for _ in range(times):
                tokens = side.encoding.render_conversation_for_completion(made, side.module.Role.ASSISTANT)
            return tokens

        first, second = (render(side, one) for side, one in zip(sides, made, strict=True))
        assert first == second
        runs = [lambda s=side, m=one, t=times: render(s, m, t) for side, one in zip(sides, made, strict=True)]
        label = f"render {messages} messages, {tools} tools ({len(first)} tokens)"
        measured.append(compared(label, "conversation", times, runs))
    return measured


def parsing(sides: Sequence[Side]) -> list[Measurement]:
    measured = []
    for size in (10_000, 100_000):
        tokens = completion(sides[1], size)

        def parse(side: Side, tokens: list[int] = tokens) -> list[dict[str, Any]]:
            role = side.module.Role.ASSISTANT
            return [m.to_dict() for m in side.encoding.parse_messages_from_completion_tokens(tokens, role)]

        assert parse(sides[0]) == parse(sides[1])
        runs = [lambda s=side, p=parse: p(s) for side in sides]
        measured.append(compared(f"parse {size} tokens at once", "token", len(tokens), runs))
    return measured


def read_nothing(parser: Any) -> None:
    pass


def read_delta(parser: Any) -> object:
    return parser.last_content_delta


def read_delta_and_header(parser: Any) -> object:
    return parser.last_content_delta, parser.current_channel, parser.current_recipient


def read_content(parser: Any) -> object:
    return parser.current_content


READERS: tuple[tuple[str, Callable[[Any], object], tuple[int, ...]], ...] = (
    ("nothing", read_nothing, (10_000, 100_000)),
    ("the delta", read_delta, (10_000, 100_000)),
    ("delta, channel, recipient", read_delta_and_header, (10_000,)),
    ("the whole text", read_content, (10_000, 40_000)),
)


def streaming(sides: Sequence[Side]) -> list[Measurement]:
    measured = []
    for what, read, sizes in READERS:
        for size in sizes:
            tokens = completion(sides[1], size)

            def stream(side: Side, tokens: list[int] = tokens, read: Callable[[Any], object] = read) -> Any:
                parser = side.module.StreamableParser(side.encoding, side.module.Role.ASSISTANT)
                process = parser.process
                for token in tokens:
                    process(token)
                    read(parser)
                return parser

            first, second = (stream(side).messages[-1].content[0].text for side in sides)
            assert first == second
            runs = [lambda s=side, f=stream: f(s) for side in sides]
            label = f"stream {size} tokens, each time reading {what}"
            measured.append(compared(label, "token", len(tokens), runs, repeats=2 if read is read_content else 5))
    return measured


def loading(sides: Sequence[Side]) -> list[Measurement]:
    runs = [lambda s=side: s.module.load_harmony_encoding("HarmonyGptOss") for side in sides]
    return [compared("load the encoding again", "load", 1, runs, repeats=3)]


FRESH = """
import resource, sys, time
start = time.process_time()
{prepare}
encoding = harmony.load_harmony_encoding("HarmonyGptOss")
loaded = time.process_time()
tokens = encoding.encode("one two three " * 40_000, disallowed_special=())
parser = harmony.StreamableParser(encoding, harmony.Role.ASSISTANT).process(200008)
for token in tokens:
    parser.process(token)
parser.process_eos()
print(loaded - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
PREPARE = ("import openai_harmony as harmony", "import isogloss.compat.openai_harmony as harmony")


def fresh_process(prepare: str) -> tuple[float, float]:
    """Seconds of CPU to import and load, and the peak of the resident set in MiB after 120,000 streamed tokens."""
    runs = []
    for _ in range(3):
        code = FRESH.format(prepare=prepare)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        runs.append(tuple(map(float, done.stdout.split())))
    return min(run[0] for run in runs), min(run[1] for run in runs)


def write_vocabulary(folder: Path) -> None:
    """The file of ordinary tokens that the package reads."""
    from isogloss.tokenizers import o200k_harmony

    tokenizer = o200k_harmony()
    ordinary = range(min(tokenizer.special_tokens.values()))
    lines = [base64.b64encode(tokenizer.token_bytes(token)) + b" %d\n" % token for token in ordinary]
    (folder / "o200k_base.tiktoken").write_bytes(b"".join(lines))


def main(names: Sequence[str]) -> None:
    """Print the table."""
    try:
        import openai_harmony
    except ImportError:
        print("openai-harmony is not installed: pip install openai-harmony==0.0.8")
        return
    import isogloss.compat.openai_harmony as stand_in

    with tempfile.TemporaryDirectory() as folder:
        write_vocabulary(Path(folder))
        os.environ["TIKTOKEN_ENCODINGS_BASE"] = folder
        sides = [Side(module, module.load_harmony_encoding("HarmonyGptOss")) for module in (openai_harmony, stand_in)]
        print("microseconds of CPU per unit\n")
        print("| work | unit | openai-harmony | isogloss | ratio |\n|---|---|---:|---:|---:|")
        for group in (rendering, parsing, streaming, loading):
            for row in group(sides):
                figures = f"{row.theirs:.2f} | {row.ours:.2f} | {row.theirs / row.ours:.1f}"
                print(f"| {row.label} | {row.unit} | {figures} |", flush=True)
        (load_theirs, peak_theirs), (load_ours, peak_ours) = map(fresh_process, PREPARE)
        figures = f"{load_theirs * 1e6:.0f} | {load_ours * 1e6:.0f} | {load_theirs / load_ours:.1f}"
        print(f"| import and load in a fresh process | process | {figures} |")
        print(f"\npeak memory of that process after 120,000 streamed tokens: {peak_theirs:.0f} and {peak_ours:.0f} MiB")
