"""`isogloss convert`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from isogloss.cli import _completion
from isogloss.dialects import get_dialect
from isogloss.errors import ConversationError, RequestError
from isogloss.transcripts import Converted, Converter

TRANSCRIPTS = typer.Argument(
    help="JSON-lines transcripts; standard input without it.", show_default=False, autocompletion=_completion.files
)


def command(
    source: Annotated[
        str, typer.Option("--from", help="Dialect of the transcripts.", autocompletion=_completion.dialects)
    ],
    target: Annotated[str, typer.Option("--to", help="Dialect to write.", autocompletion=_completion.dialects)],
    file: Annotated[Path | None, TRANSCRIPTS] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File to write; standard output without it.", autocompletion=_completion.files
        ),
    ] = None,
    rejects: Annotated[
        Path | None,
        typer.Option(help="File for the lines that could not be converted.", autocompletion=_completion.files),
    ] = None,
) -> None:
    """Convert transcripts from one dialect to another, line by line; exit 1 when a line could not be converted.

    A line is {"output": ...}, one raw turn, or {"messages": [...]}, a conversation in plain messages; both may have
    "tools". What the target cannot carry is counted on standard error.

    Example: [bold]isogloss convert --from hermes --to glm data.jsonl -o converted.jsonl[/bold]
    """
    _refuse_shared(file, output, rejects)
    converter = Converter(get_dialect(source), get_dialect(target))
    report = Counter[str]()
    console = Console(stderr=True, highlight=False)
    with ExitStack() as stack:
        lines = _lines(_opened(stack, file, "rb", sys.stdin.buffer), file, console, stack)
        converted = _opened(stack, output, "wb", sys.stdout.buffer)
        rejected = None if rejects is None else _opened(stack, rejects, "wb", sys.stderr.buffer)
        for number, line in enumerate(lines, 1):
            _convert(number, line, converter, converted, rejected, report)
    _summary(report, console)
    if report["rejected"]:
        raise typer.Exit(1)


def _refuse_shared(*paths: Path | None) -> None:
    """Reading and writing one file at once would destroy it."""
    real = [path.resolve() for path in paths if path is not None and str(path) != "-"]
    if len(set(real)) < len(real):
        raise RequestError("Expected three different files to read, to write and to reject into")


def _convert(
    number: int,
    line: bytes,
    converter: Converter,
    converted: IO[bytes],
    rejected: IO[bytes] | None,
    report: Counter[str],
) -> None:
    if not line.strip():
        return
    report["lines"] += 1
    try:
        done = converter.convert(_transcript(line))
    except RequestError as error:
        report[f"lost: line {number} is no transcript: {error}"] += 1
        done = Converted(None)
    report.update([f"lost: {loss.reason}" for loss in done.losses])
    if done.transcript is not None:
        converted.write(json.dumps(done.transcript, ensure_ascii=False).encode(errors="backslashreplace") + b"\n")
        return
    report["rejected"] += 1
    if rejected is not None:
        rejected.write(line)


def _transcript(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except UnicodeDecodeError:
        raise ConversationError("Expected UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise ConversationError(f"Expected JSON: {error}") from None
    if not isinstance(value, dict):
        raise ConversationError(f"Expected `object`, got `{type(value).__name__}`")
    return value


def _opened(stack: ExitStack, path: Path | None, mode: str, otherwise: IO[bytes]) -> IO[bytes]:
    if path is None or str(path) == "-":
        return otherwise
    try:
        return stack.enter_context(path.open(mode))
    except OSError as error:
        raise RequestError(f"Cannot open `{path}`: {error.strerror}") from None


def _lines(stream: IO[bytes], path: Path | None, console: Console, stack: ExitStack) -> Iterator[bytes]:
    """The lines, with a progress bar where somebody watches and the file's length is known."""
    if not console.is_terminal:
        yield from stream
        return
    columns = (TextColumn("converting"), BarColumn(), TaskProgressColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    progress = stack.enter_context(Progress(*columns, console=console))
    task = progress.add_task("", total=None if path is None else path.stat().st_size)
    for line in stream:
        yield line
        progress.advance(task, len(line))


def _summary(report: Counter[str], console: Console) -> None:
    lines, rejected = report["lines"], report["rejected"]
    console.print(f"{lines - rejected} of {lines} transcripts converted")
    for reason, count in report.most_common():
        if reason.startswith("lost: "):
            console.print(f"{count:>6} x {reason.removeprefix('lost: ')}", markup=False)
