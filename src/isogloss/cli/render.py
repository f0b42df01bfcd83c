"""`isogloss render`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isogloss.cli import _completion
from isogloss.cli._input import read_json
from isogloss.dialects import Dialect, get_dialect
from isogloss.errors import RequestError
from isogloss.messages import Conversation
from isogloss.prompt import Prompt

if TYPE_CHECKING:
    from isogloss.chat_template import ChatTemplate
    from isogloss.tokenizers import Tokenizer

REQUEST = typer.Argument(
    help="A request (or its messages) in OpenAI's form; standard input without it.",
    show_default=False,
    autocompletion=_completion.files,
)
DIALECT = typer.Option("--dialect", "-d", help="The model's dialect.", autocompletion=_completion.dialects)


def command(
    file: Annotated[Path | None, REQUEST] = None,
    dialect: Annotated[str, DIALECT] = "hermes",
    tokens: Annotated[bool, typer.Option("--tokens", help="Token ids, as a JSON array.")] = False,
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            help="tokenizer.json or GGUF file; without it that of the template, or o200k_harmony.",
            autocompletion=_completion.files,
        ),
    ] = None,
    inband: Annotated[
        bool, typer.Option("--inband", help="Plain messages with tools told in the text, as JSON.")
    ] = False,
    template: Annotated[
        Path | None,
        typer.Option(
            help="The model's own chat template instead of a dialect: a GGUF file, tokenizer_config.json or its "
            "folder, or a .jinja file.",
            autocompletion=_completion.files,
        ),
    ] = None,
    argument: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A variable of the template, in JSON or as text; may be repeated."),
    ] = None,
) -> None:
    """Make a prompt of a conversation.

    Example: [bold]isogloss render --dialect qwen3 request.json[/bold]
    """
    if template is not None and inband:
        raise RequestError("A chat template writes no plain messages: give --inband or --template")
    if template is None and argument:
        raise RequestError("Only a chat template takes arguments: give --template")
    request = read_json(file)
    conversation = Conversation.from_openai({"messages": request} if isinstance(request, list) else request)
    speaker = get_dialect(dialect)
    if inband:
        plain = [
            {"role": type(message).__struct_config__.tag, "content": message.text}
            for message in speaker.inband(conversation).messages
        ]
        sys.stdout.write(json.dumps(plain, ensure_ascii=False, indent=2) + "\n")
        return
    vocabulary = _tokenizer(tokenizer or _beside(template)) if tokens else None
    if template is None:
        prompt: Prompt = speaker.render(conversation)
    else:
        prompt = _template(template, vocabulary).render(conversation, **dict(map(_argument, argument or ())))
    if vocabulary is not None and tokenizer is None and template is None:
        _require_markers(speaker, vocabulary)
    sys.stdout.write(prompt.text if vocabulary is None else json.dumps(prompt.tokens(vocabulary)) + "\n")


def _require_markers(dialect: Dialect, vocabulary: Tokenizer) -> None:
    """Ids of a vocabulary that knows none of the dialect's control tokens are of no use to its models."""
    ends = [marker for marker in dialect.markers.kinds.get("turn_end", ()) if marker in dialect.markers.special]
    if ends and ends[0] not in vocabulary.special_tokens:
        raise RequestError(
            f"The vocabulary of gpt-oss has no control tokens of {dialect.name}: "
            "name the model's with --tokenizer (a tokenizer.json or a GGUF file)"
        )


def _beside(template: Path | None) -> Path | None:
    """The vocabulary that belongs to a template."""
    if template is None or template.suffix == ".gguf":
        return template
    path = (template if template.is_dir() else template.parent) / "tokenizer.json"
    return path if path.is_file() else None


def _template(path: Path, tokenizer: Tokenizer | None) -> ChatTemplate:
    from isogloss.chat_template import ChatTemplate

    if path.suffix == ".gguf":
        return ChatTemplate.from_gguf(path)
    if path.suffix not in (".jinja", ".json") and path.is_file():
        raise RequestError(f"Expected a .gguf, .jinja or tokenizer_config.json file as a template, got `{path}`")
    if path.suffix == ".jinja":
        return ChatTemplate.from_jinja(path, special_tokens=() if tokenizer is None else tokenizer.special_tokens)
    return ChatTemplate.from_tokenizer_config(path)


def _argument(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise RequestError(f"Expected NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def _tokenizer(path: Path | None) -> Tokenizer:
    from isogloss.tokenizers import from_gguf, from_tokenizer_json, o200k_harmony

    if path is None:
        return o200k_harmony()
    return from_gguf(path) if path.suffix == ".gguf" else from_tokenizer_json(path)
