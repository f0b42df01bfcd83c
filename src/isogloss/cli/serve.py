"""`isogloss serve`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isogloss.cli import _completion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isogloss.server import ApiKey
    from isogloss.server.hosted_tools import MakeKit

_KEY = "VARIABLE"


def command(
    model: Annotated[
        str | None,
        typer.Option(
            help="A GGUF file, hf:OWNER/REPOSITORY/FILE or a URL. Without it: the demo model, fetched once.",
            autocompletion=_completion.files,
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(help="The engine, where several take such a model.", autocompletion=_completion.engines),
    ] = None,
    engine_option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="An option of the engine; may be repeated.")
    ] = None,
    engine_key_env: Annotated[
        str | None, typer.Option(metavar=_KEY, help="Environment variable with the key that the engine wants.")
    ] = None,
    dialect: Annotated[
        str | None,
        typer.Option(help="The model's dialect. Without it: found out.", autocompletion=_completion.dialects),
    ] = None,
    no_template: Annotated[
        bool, typer.Option("--no-template", help="Prompt the model as its dialect does, not by its own chat template.")
    ] = False,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any that is free.")] = 8080,
    api_key_env: Annotated[
        str | None,
        typer.Option(metavar=_KEY, help="Environment variable with the keys of clients, as in a file of them."),
    ] = None,
    api_key_file: Annotated[
        Path | None, typer.Option(help="File with the keys of clients, one a line: NAME KEY, or the key alone.")
    ] = None,
    alias: Annotated[list[str] | None, typer.Option(help="A further name of the model; may be repeated.")] = None,
    refusals: Annotated[
        bool, typer.Option("--refusals", help="Let the model refuse where a response format is asked for.")
    ] = False,
    store: Annotated[
        str | None,
        typer.Option(
            help="Where responses and conversations are kept: sqlite:///PATH, postgresql://..., or memory. "
            "Without it: a SQLite file in the user's state directory."
        ),
    ] = None,
    keep_days: Annotated[float, typer.Option(min=0, help="How long they are kept.")] = 30,
    requests_per_minute: Annotated[int | None, typer.Option(min=1, help="Limit of each key.")] = None,
    concurrent_requests: Annotated[int | None, typer.Option(min=1, help="Limit of each key.")] = None,
    max_running: Annotated[int, typer.Option(min=1, help="Generations at once; the others wait.")] = 256,
    max_waiting: Annotated[int, typer.Option(min=0, help="Generations that may wait; beyond that: 503.")] = 1024,
    timeout_seconds: Annotated[float, typer.Option(min=0.001, help="Longest that a generation may take.")] = 1800,
    drain_seconds: Annotated[float, typer.Option(min=0, help="How long requests may go on after a stop.")] = 30,
    tool: Annotated[
        list[str] | None,
        typer.Option(
            help="A tool to run here for the model: python (runs whatever code it writes, with this user's rights) or "
            "browser; may be repeated."
        ),
    ] = None,
    search_url: Annotated[
        str | None, typer.Option(help="The browser's search service, one that answers in SearXNG's JSON.")
    ] = None,
    cors_origin: Annotated[
        list[str] | None, typer.Option(help="A web page's origin that may use the server; may be repeated.")
    ] = None,
    max_body_mib: Annotated[int, typer.Option(min=1, help="Largest request that is read.")] = 32,
    log_level: Annotated[str, typer.Option(help="critical, error, warning, info or debug.")] = "warning",
    log_format: Annotated[str, typer.Option(help="text or json.")] = "text",
    log_content: Annotated[
        bool, typer.Option("--log-content", help="Log requests and answers, at level info. Never without this.")
    ] = False,
) -> None:
    """Serve a model under OpenAI's APIs.

    Example: [bold]isogloss serve --model Qwen3-8B-Q4_K_M.gguf --port 8080[/bold]
    """
    from isogloss.dialects import get_dialect
    from isogloss.server import ServerOptions
    from isogloss.server.database import default_url
    from isogloss.server.launch import ServeOptions, serve

    options = dict(map(_engine_option, engine_option or ()))
    if engine_key_env is not None:
        options["api_key"] = _secret(engine_key_env)
    server = ServerOptions(
        aliases=tuple(alias or ()),
        keys=_keys(api_key_env, api_key_file),
        max_body_bytes=max_body_mib * 1024 * 1024,
        store=default_url() if store is None else store,
        keep_seconds=keep_days * 86400,
        requests_per_minute=requests_per_minute,
        concurrent_requests=concurrent_requests,
        max_running=max_running,
        max_waiting=max_waiting,
        timeout_seconds=timeout_seconds,
        drain_seconds=drain_seconds,
        cors_origins=tuple(cors_origin or ()),
        hosted_tools=_hosted_tools(tool or (), search_url),
        log_content=log_content,
    )
    _check_one_of(log_format, ("text", "json"), "--log-format")
    _check_one_of(log_level.lower(), ("critical", "error", "warning", "info", "debug"), "--log-level")
    if dialect is not None:  # no model is fetched or loaded to find that its dialect is none
        get_dialect(dialect)
    if model is None:
        model, dialect = _demo(dialect)
    serve(
        ServeOptions(
            model=model,
            engine=engine,
            engine_options=options,
            dialect=dialect,
            uses_template=not no_template,
            host=host,
            port=port,
            refusals=refusals,
            log_level=log_level,
            log_format=log_format,
            server=server,
        )
    )


def _demo(dialect: str | None) -> tuple[str, str]:
    from isogloss.demo_model import DIALECT, demo_model_path

    return str(demo_model_path()), dialect or DIALECT


def _check_one_of(value: str, options: Sequence[str], flag: str) -> None:
    if value not in options:
        raise typer.BadParameter(f"Expected {', '.join(options[:-1])} or {options[-1]}, got {value!r}", param_hint=flag)


def _hosted_tools(names: Sequence[str], search_url: str | None) -> dict[str, MakeKit]:
    from isogloss.server.hosted_tools import browser_kit, check_installed, python_kit

    if search_url is not None and "browser" not in names:
        raise typer.BadParameter("Nothing is searched without --tool browser", param_hint="--search-url")
    known: dict[str, MakeKit] = {"python": python_kit, "browser": browser_kit(search_url)}
    for name in names:
        if name not in known:
            raise typer.BadParameter(f"Expected one of {', '.join(known)}, got {name!r}", param_hint="--tool")
        check_installed(name)
    return {name: known[name] for name in names}


def _keys(variable: str | None, path: Path | None) -> tuple[ApiKey, ...]:
    from isogloss.server.auth import parse_keys, read_keys

    from_environment = () if variable is None else parse_keys(_secret(variable))
    return (*from_environment, *(() if path is None else read_keys(path)))


def _engine_option(text: str) -> tuple[str, Any]:
    """``NAME=VALUE``, the value JSON if it is, else text."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise typer.BadParameter(f"Expected NAME=VALUE, got {text!r}", param_hint="--engine-option")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def _secret(variable: str) -> str:
    value = os.environ.get(variable, "")
    if not value:
        raise typer.BadParameter(f"The environment variable {variable}, which should hold the key, is not set")
    return value
