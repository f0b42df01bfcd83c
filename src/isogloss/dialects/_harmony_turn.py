"""The grammar of one assistant turn in harmony, from behind ``<|start|>assistant`` on.

    turn      = { analysis next } body            reasoning; "open": the prompt has written the first header already
    body      = { preamble next } final           auto, none, or no tools
              | [ preamble next ] calls           auto
              | calls                             required, a named tool
              | answer | refusal | calls          a response format, with or without tools
    next      = "<|start|>assistant"
    calls     = { call next } call                one call without parallel calls

Where ``<|call|>`` is a token at which the engine stops, as it is for models of the family, a turn ends with it; a call
that another one follows may end with ``<|end|>``, at which no engine stops.
"""

from __future__ import annotations

from collections.abc import Sequence

from isogloss.constraints.constraint import Constraint
from isogloss.dialects._harmony_builtins import is_builtin
from isogloss.dialects._harmony_calls import FUNCTIONS
from isogloss.dialects._harmony_markers import CALL, CHANNEL, CONSTRAIN, END, MARKERS, MESSAGE, RETURN, START
from isogloss.dialects._markers import REFUSAL, REFUSAL_CLOSE
from isogloss.dialects._turn import answer, arguments
from isogloss.grammar import (
    FreeText,
    Literal,
    Marker,
    Nested,
    Repeat,
    Term,
    choice,
    optional,
    sequence,
)
from isogloss.messages import ResponseFormat, Tool, ToolChoice

FOREIGN = tuple(Marker(marker) for marker in sorted(MARKERS.special))
"""What no text holds."""

NEXT = sequence(Marker(START), Literal("assistant"))
_ENDS = (Marker(END), Marker(RETURN))


def harmony_turn(
    tools: Sequence[Tool],
    tool_choice: ToolChoice,
    response_format: ResponseFormat | None,
    *,
    parallel: bool,
    reasoning: bool | str,
) -> Constraint:
    """The constraint of a turn; the arguments are those of `Dialect.constraint`."""
    body = _body(tool_choice.allowed(tools), tool_choice, response_format, parallel)
    if not reasoning:
        return Constraint(body)
    thoughts: Term = Repeat(sequence(_message("analysis"), NEXT))
    if reasoning == "open":
        thoughts = sequence(_spoken(), NEXT, thoughts)
    return Constraint(sequence(thoughts, body))


def _body(
    tools: Sequence[Tool], tool_choice: ToolChoice, response_format: ResponseFormat | None, parallel: bool
) -> Term:
    calls = _calls(tools, parallel) if tools else None
    if calls is not None and tool_choice.mode == "required":
        return calls
    if response_format is not None and response_format.kind != "text":
        bound = _bound_final(response_format)
        return bound if calls is None else choice(bound, calls)
    final = choice(FreeText(until=_ENDS, excluding=FOREIGN), FreeText(excluding=FOREIGN))
    said = sequence(Repeat(sequence(_message("commentary"), NEXT)), _head("final"), final)
    if calls is None:
        return said
    return choice(said, sequence(optional(sequence(_message("commentary"), NEXT)), calls))


def _bound_final(response_format: ResponseFormat) -> Term:
    refusal = sequence(Marker(REFUSAL), FreeText(until=(Marker(REFUSAL_CLOSE),), excluding=FOREIGN))
    return sequence(_head("final"), choice(answer(response_format), refusal), optional(choice(*_ENDS)))


def _calls(tools: Sequence[Tool], parallel: bool) -> Term:
    last = choice(*[_call(tool, Marker(CALL)) for tool in tools])
    if not parallel:
        return last
    earlier = choice(*[_call(tool, Marker(CALL), Marker(END)) for tool in tools])
    return sequence(Repeat(sequence(earlier, NEXT)), last)


def _call(tool: Tool, *ends: Marker) -> Term:
    built_in = is_builtin(tool.name, tool)
    recipient = tool.name if built_in else FUNCTIONS + tool.name
    opening = sequence(Marker(CHANNEL), Literal(f"{'analysis' if built_in else 'commentary'} to={recipient} "))
    if tool.is_custom:
        if tool.grammar is not None and tool.grammar.syntax == "lark":
            return sequence(opening, Literal("code"), Marker(MESSAGE), Nested(tool.grammar.definition), choice(*ends))
        pattern = None if tool.grammar is None else tool.grammar.definition
        text = FreeText(until=ends, pattern=pattern, excluding=FOREIGN)
        return sequence(opening, Literal("code"), Marker(MESSAGE), text)
    kind = Literal("code") if built_in else sequence(Marker(CONSTRAIN), Literal("json"))
    return sequence(opening, kind, Marker(MESSAGE), arguments(tool), choice(*ends))


def _message(channel: str) -> Term:
    return sequence(_head(channel), _spoken())


def _head(channel: str) -> Term:
    return sequence(Marker(CHANNEL), Literal(channel), Marker(MESSAGE))


def _spoken() -> Term:
    return FreeText(until=(Marker(END),), excluding=FOREIGN)
