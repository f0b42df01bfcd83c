"""`isogloss render`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isogloss.cli._input import read_json
from isogloss.dialects import get_dialect
from isogloss.messages import Conversation

if TYPE_CHECKING:
    from isogloss.tokenizers import Tokenizer

REQUEST = typer.Argument(
    help="A request (or its messages) in OpenAI's form; standard input without it.", show_default=False
)


def command(
    file: Annotated[Path | None, REQUEST] = None,
    dialect: Annotated[str, typer.Option("--dialect", "-d", help="The model's dialect.")] = "hermes",
    tokens: Annotated[bool, typer.Option("--tokens", help="Token ids, as a JSON array.")] = False,
    tokenizer: Annotated[
        Path | None, typer.Option(help="tokenizer.json or GGUF file; o200k_harmony without it.")
    ] = None,
    inband: Annotated[
        bool, typer.Option("--inband", help="Plain messages with tools told in the text, as JSON.")
    ] = False,
) -> None:
    """Make a prompt of a conversation.

    Example: [bold]isogloss render --dialect qwen3 request.json[/bold]
    """
    request = read_json(file)
    conversation = Conversation.from_openai({"messages": request} if isinstance(request, list) else request)
    speaker = get_dialect(dialect)
    if inband:
        plain = [
            {"role": type(message).__struct_config__.tag, "content": message.text}
            for message in speaker.inband(conversation).messages
        ]
        sys.stdout.write(json.dumps(plain, ensure_ascii=False, indent=2) + "\n")
    elif tokens:
        sys.stdout.write(json.dumps(speaker.render(conversation).tokens(_tokenizer(tokenizer))) + "\n")
    else:
        sys.stdout.write(speaker.render(conversation).text)


def _tokenizer(path: Path | None) -> Tokenizer:
    from isogloss.tokenizers import from_gguf, from_tokenizer_json, o200k_harmony

    if path is None:
        return o200k_harmony()
    return from_gguf(path) if path.suffix == ".gguf" else from_tokenizer_json(path)
