"""What the playground shows: a scanned output, a turn in every dialect, a place in a grammar, a schema, a prompt.

Each function takes the JSON object that the page sent and gives the one that it gets. They raise `RequestError`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from isogloss.chat import Chat
from isogloss.constraints import Constraint
from isogloss.constraints.continuation import continuation
from isogloss.dialects import Dialect, dialect_names, get_dialect
from isogloss.errors import RequestError, SchemaError, UnrepresentableError
from isogloss.events import Event, collect
from isogloss.json_fields import Fields, as_string
from isogloss.messages import AssistantMessage, Conversation, Tool, ToolCall, UserMessage
from isogloss.openai_chat import response_format_from_openai, tool_choice_from_openai, tools_from_openai
from isogloss.schema import check_strict, to_strict
from isogloss.server.chat_request import read_chat_request
from isogloss.server.dialect_guess import guess_dialects
from isogloss.server.output_runs import runs_of

LONGEST_OUTPUT = 200_000
"""Characters that are scanned for a person to look at."""
MOST_STEPS = 2_000
"""Pieces that an output is cut into: a longer one in larger pieces."""
LONGEST_GUESS = 20_000
"""Characters by which a dialect is found out."""

DETECTED = "detect"
"""Instead of a dialect's name: whichever it looks like."""

_STARTS = ("text", "reasoning")

_SAMPLE_TOOL = Tool(
    "get_weather",
    "The weather forecast for a city",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Name of the city"},
            "days": {"type": "integer", "minimum": 1, "maximum": 7},
        },
        "required": ["city", "days"],
        "additionalProperties": False,
    },
)
_SAMPLE = AssistantMessage(
    text="I will look that up.",
    reasoning="They want a forecast for Paris.",
    tool_calls=(ToolCall("call_1", "get_weather", {"city": "Paris", "days": 3}),),
)


def sample(body: Mapping[str, Any], served: Dialect) -> dict[str, Any]:
    """A turn that shows what a dialect looks like, and the tool that it calls."""
    dialect = get_dialect(Fields(body, "").optional_string("dialect") or served.name)
    output = dialect.render_output(_SAMPLE, (_SAMPLE_TOOL,))
    function = {
        "name": _SAMPLE_TOOL.name,
        "description": _SAMPLE_TOOL.description,
        "parameters": _SAMPLE_TOOL.parameters,
    }
    return {
        "dialect": dialect.name,
        "output": output,
        "starts_in": _opening(dialect, (_SAMPLE_TOOL,)),
        "tools": [{"type": "function", "function": function}],
    }


# --- scanning ---------------------------------------------------------------------------------------------------------


def scanned(body: Mapping[str, Any], served: Dialect) -> dict[str, Any]:
    """The events of an output that is cut as asked, each with the number of characters that had come when it did."""
    fields = Fields(body, "")
    output, tools = _output(fields), tools_from_openai(fields.get("tools"), "/tools")
    dialect, starts_in, likely = _reading(fields, output, tools, served)
    cut = max(fields.integer("cut", 1) or 1, -(-len(output) // MOST_STEPS))
    events = list(_cut_events(dialect, output, tools, starts_in, cut, fields.optional_string("finish") or "stop"))
    return {
        "dialect": dialect.name,
        "starts_in": starts_in,
        "likely": likely,
        "cut": cut,
        "events": [{**_shown(event, output), "at": at} for event, at in events],
        "turn": msgspec.to_builtins(collect([event for event, _ in events])),
    }


def converted(body: Mapping[str, Any], served: Dialect) -> dict[str, Any]:
    """The turn as every dialect writes it, with what it cannot carry."""
    fields = Fields(body, "")
    output, tools = _output(fields), tools_from_openai(fields.get("tools"), "/tools")
    dialect, starts_in, _ = _reading(fields, output, tools, served)
    turn = dialect.parse(output, tools, starts_in=starts_in)
    others = [get_dialect(name) for name in dialect_names()]
    return {
        "dialect": dialect.name,
        "dropped": [{"raw": part.raw, "reason": part.reason} for part in turn.malformed],
        "dialects": [_written(other, turn, tools) for other in others],
    }


def _output(fields: Fields) -> str:
    output = as_string(fields.get("output") or "", "/output")
    if len(output) > LONGEST_OUTPUT:
        raise RequestError(
            f"Expected at most {LONGEST_OUTPUT} characters, got {len(output)}: use `isogloss scan`", pointer="/output"
        )
    return output


def _reading(fields: Fields, output: str, tools: Sequence[Tool], served: Dialect) -> tuple[Dialect, str, Sequence[str]]:
    """The dialect and what the output starts in, named or found out; and the dialects that are equally likely."""
    starts_in = fields.choice("starts_in", _STARTS) if fields.has("starts_in") else None
    name = fields.optional_string("dialect") or served.name
    if name != DETECTED:
        return get_dialect(name), starts_in or "text", ()
    guesses = guess_dialects(output[:LONGEST_GUESS], tools)
    likely = [guess for guess in guesses if guess.rank == guesses[0].rank]
    if not likely:
        return served, starts_in or "text", ()
    best = next((guess for guess in likely if guess.dialect is served), likely[0])
    return best.dialect, starts_in or best.starts_in, [guess.dialect.name for guess in likely]


def _cut_events(
    dialect: Dialect, output: str, tools: Sequence[Tool], starts_in: str, cut: int, finish: str
) -> Iterator[tuple[Event, int | None]]:
    scanner = dialect.scanner(tools, starts_in=starts_in)
    for start in range(0, len(output), cut):
        end = min(start + cut, len(output))
        for event in scanner.feed(output[start:end]):
            yield event, end
    for event in scanner.finish(finish):
        yield event, None


def _shown(event: Event, output: str) -> dict[str, Any]:
    return {**msgspec.to_builtins(event), "runs": runs_of(event, output[event.start : event.end])}


def _written(dialect: Dialect, turn: AssistantMessage, tools: Sequence[Tool]) -> dict[str, Any]:
    head = {"name": dialect.name, "title": dialect.title}
    try:
        output = dialect.render_output(turn, tools)
    except UnrepresentableError as error:
        return {**head, "output": None, "reason": error.message}
    starts_in = _opening(dialect, tools)
    events = dialect.events(output, tools, starts_in=starts_in)
    return {
        **head,
        "output": output,
        "starts_in": starts_in,
        "runs": [run for event in events for run in runs_of(event, output[event.start : event.end])],
        "losses": list(_losses(turn, collect(events))),
    }


def _losses(turn: AssistantMessage, found: AssistantMessage) -> Iterator[str]:
    """What of a turn is not in what was read back."""
    for field in ("text", "reasoning", "refusal"):
        if getattr(turn, field) != getattr(found, field):
            yield f"the {field} is not the same"
    if [(call.name, call.arguments) for call in turn.tool_calls] != [
        (call.name, call.arguments) for call in found.tool_calls
    ]:
        yield "the calls are not the same"


def _opening(dialect: Dialect, tools: Sequence[Tool]) -> str:
    """What an output starts in behind a prompt of the dialect."""
    return dialect.starts_in(dialect.render(Conversation((UserMessage(""),), tuple(tools))).text)


# --- grammars and schemas ---------------------------------------------------------------------------------------------


def constrained(body: Mapping[str, Any], served: Dialect) -> dict[str, Any]:
    """Where a text stands in the grammar of a turn, or in that of a bare JSON value, and what may come next."""
    fields = Fields(body, "")
    text = as_string(fields.get("text") or "", "/text")
    if len(text) > LONGEST_GUESS:
        raise RequestError(f"Expected at most {LONGEST_GUESS} characters, got {len(text)}", pointer="/text")
    constraint = _constraint(fields, served)
    place = continuation(constraint, text)
    return {**place._asdict(), "lark": constraint.lark}


def _constraint(fields: Fields, served: Dialect) -> Constraint:
    form = response_format_from_openai(fields.get("response_format"), "/response_format")
    if fields.boolean("is_bare", False):
        if form is None or form.schema is None:
            raise RequestError("Expected a JSON Schema", pointer="/response_format")
        return Constraint.from_json_schema(form.schema)
    tools = tools_from_openai(fields.get("tools"), "/tools")
    starts_in = fields.choice("starts_in", _STARTS) if fields.has("starts_in") else "text"
    return get_dialect(fields.optional_string("dialect") or served.name).constraint(
        tools,
        tool_choice_from_openai(fields.get("tool_choice"), tools, "/tool_choice"),
        form,
        parallel=fields.boolean("parallel_tool_calls", True),
        reasoning="open" if starts_in == "reasoning" else True,
    )


def checked(body: Mapping[str, Any]) -> dict[str, Any]:
    """What keeps a schema out of the strict subset, and the schema that is in it."""
    schema = dict(Fields(body, "").object("schema").members)
    violations = [{"pointer": v.pointer, "message": v.message} for v in check_strict(schema)]
    try:
        strict, losses = to_strict(schema) if violations else (schema, [])
    except SchemaError as error:
        return {"violations": violations, "strict": None, "losses": [], "reason": error.message}
    told = [{"pointer": loss.pointer, "message": loss.message} for loss in losses]
    return {"violations": violations, "strict": strict, "losses": told}


# --- prompts ----------------------------------------------------------------------------------------------------------


def prompted(body: dict[str, Any], chat: Chat) -> dict[str, Any]:
    """The prompt that a request for a chat completion makes; plain messages where the engine takes these."""
    conversation = read_chat_request(body).conversation
    dialect, tokenizer = chat.dialect, chat.engine.tokenizer
    if chat.engine.takes_messages:
        plain = dialect.inband(conversation).messages
        return {"messages": [{"role": type(m).__struct_config__.tag, "content": m.text} for m in plain]}
    prompt = dialect.render(conversation)
    control = dialect.markers.special if tokenizer is None else frozenset(tokenizer.special_tokens)
    return {
        "starts_in": dialect.starts_in(prompt.text),
        "segments": [
            {
                "text": segment.text,
                "kind": _segment_kind(segment.text in control) if segment.is_marker else "content",
            }
            for segment in prompt.segments
        ],
        "tokens": None if tokenizer is None else len(prompt.tokens(tokenizer)),
    }


def _segment_kind(is_control: bool) -> str:
    """A marker is a control token, or text like any other in a vocabulary that has none for it."""
    return "control" if is_control else "marker"
