"""The grammar of one assistant turn, for dialects whose turns are text, reasoning and blocks of calls.

    turn      = [ reasoning ] body
    body      = { text block } text            auto; at most one block and one call without parallel calls
              | block { block }                required, a named tool
              | text                           none, or no tools
              | answer | refusal | block ...   a response format, with or without tools
    reasoning = think text think_close         "open": the prompt has written think already

A dialect adds what a block is from its marker ``call`` on (`CallGrammar`); where blocks have no marker they begin with
a text of their own at the start of a line. Free text holds no marker that would make it anything else: no call outside
a block, no result, no end of the turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from isogloss.constraints.constraint import Constraint
from isogloss.dialects._markers import Markers
from isogloss.errors import ConversationError
from isogloss.grammar import (
    Choice,
    FreeText,
    JsonValue,
    Literal,
    Marker,
    Regex,
    Repeat,
    Term,
    optional,
    sequence,
)
from isogloss.grammar import choice as choice_of
from isogloss.messages import ResponseFormat, Tool, ToolChoice
from isogloss.notations.json import write as write_json

CallGrammar = Callable[[Sequence[Tool], bool], Term]
"""The tools that may be called and whether several may be: the rest of a block behind the marker ``call``."""

GAP = Regex(r"[ \n]{0,2}")
"""White space that families write around tags, bounded."""


def turn(
    markers: Markers,
    calls: CallGrammar,
    tools: Sequence[Tool],
    choice: ToolChoice,
    response_format: ResponseFormat | None,
    *,
    parallel: bool,
    reasoning: bool | str,
    gap: Term = GAP,
    bare: str = "",
) -> Constraint:
    """The constraint of a turn. ``gap`` may stand between tags; formats framed by control tokens have none. ``bare`` is
    what a block begins with where the format has no marker for it: a character at the start of a line, or a text."""
    allowed = choice.allowed(tools)
    if choice.mode == "required" and not allowed:
        raise ConversationError("Expected tools to choose from, got none", pointer="/tool_choice")
    parts: list[Term] = []
    if reasoning and "think" in markers.kinds:
        parts.append(_reasoning(markers, is_open=reasoning == "open"))
        parts.append(gap)
    parts.append(_body(markers, calls, allowed, choice, response_format, parallel, gap, bare))
    return Constraint(sequence(*parts))


def _reasoning(markers: Markers, *, is_open: bool) -> Term:
    close = Marker(markers["think_close"])
    rest = FreeText(until=(close,), excluding=_foreign(markers, "turn_end"))
    return rest if is_open else optional(sequence(Marker(markers["think"]), rest))


def _body(
    markers: Markers,
    calls: CallGrammar,
    tools: Sequence[Tool],
    choice: ToolChoice,
    response_format: ResponseFormat | None,
    parallel: bool,
    gap: Term,
    bare: str,
) -> Term:
    call = Literal(bare) if bare else markers.term(markers["call"])
    rest = calls(tools, parallel) if tools else None
    blocks: Term | None = None
    if rest is not None:
        block = sequence(call, rest)
        blocks = sequence(block, Repeat(sequence(gap, block)), gap) if parallel else sequence(block, gap)
    if choice.mode == "required" and blocks is not None:
        return blocks
    if response_format is not None and response_format.kind != "text":
        ways = [answer(response_format)]
        if response_format.may_refuse:
            ways.append(refusal(markers))
        if blocks is not None:
            ways.append(blocks)
        return choice_of(*ways)
    inside = _foreign(markers, "turn_end", "result", "result_close", "call_close", "bare_call")
    if len(bare) == 1:
        return _bare_body(bare, rest, inside)
    silent = FreeText(excluding=(*inside, call, *_foreign(markers, "call")))
    if rest is None:
        return silent
    spoken = sequence(FreeText(until=(call,), excluding=inside), rest)
    return sequence(Repeat(spoken), silent) if parallel else sequence(optional(spoken), silent)


def _bare_body(bare: str, rest: Term | None, inside: tuple[Marker, ...]) -> Term:
    """Text, or perhaps text and a block that begins with ``bare`` at the start of the turn or of a line, and ends the
    turn; no text may hold that."""
    line = Literal("\n" + bare)
    other_line = rf"[^\S\n]*(?:[^\s\{bare[0]}][^\n]*)?"
    prose = rf"{other_line}(?:\n{other_line})*"
    silent = FreeText(pattern=prose, excluding=inside)
    if rest is None:
        return silent
    first = sequence(Literal(bare), rest)
    later = sequence(FreeText(until=(line,), pattern=prose, excluding=inside), rest)
    return choice_of(silent, first, later)


def answer(response_format: ResponseFormat) -> Term:
    """The answer that a response format asks for."""
    if response_format.kind == "json_object" or response_format.schema is None:
        return JsonValue({"type": "object"})
    return JsonValue(response_format.schema)


def refusal(markers: Markers) -> Term:
    """The way out of a response format."""
    close = Marker(markers["refusal_close"])
    return sequence(Marker(markers["refusal"]), FreeText(until=(close,), excluding=_foreign(markers, "turn_end")))


def _foreign(markers: Markers, *kinds: str) -> tuple[Marker, ...]:
    """Markers that free text must not spell."""
    return tuple(markers.term(spelled) for kind in kinds for spelled in markers.kinds.get(kind, ()))


def json_envelopes(tools: Sequence[Tool], parallel: bool) -> Term:
    """One or, where ``parallel``, more calls as JSON objects with commas between them, and the end of the array."""
    call = json_envelope(tools)
    more = Repeat(sequence(Literal(","), optional(Literal(" ")), call)) if parallel else sequence()
    return sequence(call, more, Literal("]"))


def arguments(tool: Tool) -> JsonValue:
    """The arguments of a call as JSON: an object, also where the schema of the parameters would permit more."""
    schema = tool.parameters
    types = schema.get("type", ["object"])
    permits_more = isinstance(types, list) and "object" in types
    return JsonValue({**schema, "type": "object"} if permits_more else schema)


def json_envelope(
    tools: Sequence[Tool], name_key: str = "name", arguments_key: str = "arguments", *, is_open: bool = False
) -> Term:
    """A call to one of the tools as a JSON object, compact or with a blank behind colons and commas. ``is_open``: its
    first brace is already written."""
    blank = optional(Literal(" "))
    return Choice(
        tuple(
            sequence(
                Literal(f"{'' if is_open else '{'}{write_json(name_key)}:"),
                blank,
                Literal(f"{write_json(tool.name)},"),
                blank,
                Literal(f"{write_json(arguments_key)}:"),
                blank,
                arguments(tool),
                Literal("}"),
            )
            for tool in tools
        )
    )
