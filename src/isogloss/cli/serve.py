"""`isogloss serve`."""

from __future__ import annotations

import json
import os
from typing import Annotated, Any

import typer

_KEY = "VARIABLE"


def command(
    model: Annotated[
        str | None,
        typer.Option(help="A GGUF file, hf:OWNER/REPOSITORY/FILE or a URL. Without it: the demo model, fetched once."),
    ] = None,
    engine: Annotated[str | None, typer.Option(help="The engine, where several take such a model.")] = None,
    engine_option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="An option of the engine; may be repeated.")
    ] = None,
    engine_key_env: Annotated[
        str | None, typer.Option(metavar=_KEY, help="Environment variable with the key that the engine wants.")
    ] = None,
    dialect: Annotated[str | None, typer.Option(help="The model's dialect. Without it: found out.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any that is free.")] = 8080,
    api_key_env: Annotated[
        str | None, typer.Option(metavar=_KEY, help="Environment variable with the key that clients must send.")
    ] = None,
    alias: Annotated[list[str] | None, typer.Option(help="A further name of the model; may be repeated.")] = None,
    refusals: Annotated[
        bool, typer.Option("--refusals", help="Let the model refuse where a response format is asked for.")
    ] = False,
    max_body_mib: Annotated[int, typer.Option(min=1, help="Largest request that is read.")] = 32,
    log_level: Annotated[str, typer.Option(help="critical, error, warning, info or debug.")] = "warning",
) -> None:
    """Serve a model under OpenAI's APIs.

    Example: [bold]isogloss serve --model Qwen3-8B-Q4_K_M.gguf --port 8080[/bold]
    """
    from isogloss.server.launch import ServeOptions, serve

    options = dict(map(_engine_option, engine_option or ()))
    if engine_key_env is not None:
        options["api_key"] = _secret(engine_key_env)
    api_key = None if api_key_env is None else _secret(api_key_env)
    if model is None:
        model, dialect = _demo(dialect)
    serve(
        ServeOptions(
            model=model,
            engine=engine,
            engine_options=options,
            dialect=dialect,
            host=host,
            port=port,
            api_key=api_key,
            aliases=alias or (),
            refusals=refusals,
            max_body_bytes=max_body_mib * 1024 * 1024,
            log_level=log_level,
        )
    )


def _demo(dialect: str | None) -> tuple[str, str]:
    from isogloss.demo import DIALECT
    from isogloss.demo_model import demo_model_path

    return str(demo_model_path()), dialect or DIALECT


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
