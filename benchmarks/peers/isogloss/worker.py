"""Isogloss itself, measured as its peers are."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from harmony_works import harmony_works
from worker import as_json, serve, streamed, timed

from isogloss.chat_template import ChatTemplate
from isogloss.constraints import Constraint
from isogloss.dialects import get_dialect
from isogloss.errors import IsoglossError
from isogloss.events import ToolCallDelta
from isogloss.messages import Conversation, Tool
from isogloss.tokenizers import Tokenizer, o200k_harmony
from isogloss.tokenizers._vocabulary import Vocabulary


def scan(dialect: str, tools: list[Any], pieces: list[str], limit: float, **_: Any) -> dict[str, Any]:
    scanner = get_dialect(dialect).scanner([Tool.from_openai(tool) for tool in tools])
    return streamed(scanner.feed, pieces, limit)


def arguments(dialect: str, tools: list[Any], pieces: list[str], **_: Any) -> dict[str, Any]:
    scanner = get_dialect(dialect).scanner([Tool.from_openai(tool) for tool in tools])
    events = [*(event for piece in pieces for event in scanner.feed(piece)), *scanner.finish()]
    said = [event.arguments for event in events if isinstance(event, ToolCallDelta)]
    return {"arguments": as_json(said), "deltas": len(said)}


@cache
def vocabulary_with(special_tokens: tuple[str, ...]) -> Tokenizer:
    """The ordinary tokens of o200k, and these for control."""
    base = o200k_harmony()
    ordinary = min(base.special_tokens.values())
    tokens = [*map(base.token_bytes, range(ordinary)), *(token.encode() for token in special_tokens)]
    ids = {token: ordinary + number for number, token in enumerate(special_tokens)}
    return Vocabulary("o200k", tokens, ids, base.encode)


def render_tokens(
    dialect: str, request: dict[str, Any], times: int, special_tokens: list[str], **_: Any
) -> dict[str, Any]:
    tokenizer, conversation = vocabulary_with(tuple(special_tokens)), Conversation.from_openai(request)
    render = get_dialect(dialect).render
    length = len(render(conversation).tokens(tokenizer))
    return {**timed(lambda: render(conversation).tokens(tokenizer), times), "length": length}


def render_text(dialect: str, request: dict[str, Any], times: int, **_: Any) -> dict[str, Any]:
    conversation = Conversation.from_openai(request)
    render = get_dialect(dialect).render
    return {**timed(lambda: render(conversation).text, times), "length": len(render(conversation).text)}


def render_template(source: str, request: dict[str, Any], times: int, **_: Any) -> dict[str, Any]:
    conversation = Conversation.from_openai(request)
    template = ChatTemplate(source, tokens={"bos_token": "<s>", "eos_token": "</s>"})
    length = len(template.render(conversation).text)
    return {**timed(lambda: template.render(conversation).text, times), "length": length}


def parse_tokens(
    dialect: str, tools: list[Any], text: str, times: int, ids: list[int], special_tokens: list[str], **_: Any
) -> dict[str, Any]:
    """A whole output, from token ids."""
    tokenizer, offered = vocabulary_with(tuple(special_tokens)), [Tool.from_openai(tool) for tool in tools]
    parse = get_dialect(dialect).parse
    calls = parse(tokenizer.decode(ids), offered).tool_calls
    answer = timed(lambda: parse(tokenizer.decode(ids), offered), times)
    return {**answer, "arguments": dict(calls[0].arguments) if calls else None}


def first_mask(schema: Any, tokens: list[int], **_: Any) -> dict[str, Any]:
    """From a schema to the first mask, and each mask along ``tokens``."""
    tokenizer = o200k_harmony()
    tokenizer.llguidance()
    start = process_time()
    try:
        matcher = Constraint.from_json_schema(schema).matcher(tokenizer)
    except IsoglossError as error:
        return {"refused": str(error)[:200]}
    matcher.mask()
    seconds, masks = process_time() - start, []
    for token in tokens:
        start = process_time()
        matcher.mask()
        masks.append(process_time() - start)
        if not matcher.accept(token):
            break
    return {"seconds": seconds, "masks": masks}


serve(
    {
        "arguments": arguments,
        "first_mask": first_mask,
        "parse_tokens": parse_tokens,
        "render_template": render_template,
        "render_text": render_text,
        "render_tokens": render_tokens,
        "scan": scan,
        **harmony_works("isogloss.compat.openai_harmony"),
    }
)
