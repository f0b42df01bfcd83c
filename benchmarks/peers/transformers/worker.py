"""A model's chat template through transformers, and through Jinja alone, which transformers renders with."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from transformers.utils.chat_template_utils import _compile_jinja_template, render_jinja_template
from worker import serve, timed

TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


def render_template(source: str, request: dict[str, Any], times: int, alone: bool) -> dict[str, Any]:
    """``alone`` calls the compiled template itself: Jinja and nothing else."""
    template = _compile_jinja_template(source)

    def by_jinja() -> str:
        rendered: str = template.render(
            messages=request["messages"], tools=request["tools"], add_generation_prompt=True, **TOKENS
        )
        return rendered

    def by_transformers() -> str:
        [rendered], _ = render_jinja_template(
            [request["messages"]], request["tools"], chat_template=source, add_generation_prompt=True, **TOKENS
        )
        return str(rendered)

    run = by_jinja if alone else by_transformers
    length = len(run())
    return {**timed(run, times), "length": length}


serve({"render_template": render_template})
