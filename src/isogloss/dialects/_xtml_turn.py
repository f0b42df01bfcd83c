"""The grammar of a turn in XTML (`kimi_k3`).

turn = heads text "<|close|>response<|sep|>" [ block ] [ "<|close|>message<|sep|>" ]
head = what the prompt has not opened yet: nothing, the response, or reasoning and the response
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from isogloss.constraints.constraint import Constraint
from isogloss.dialects._markers import Markers
from isogloss.dialects._tag_grammar import calls, parameters
from isogloss.dialects._turn import answer, refusal
from isogloss.dialects._xtml import CLOSE, END, OPEN, SEP, closing, end_of, escaped, opening
from isogloss.grammar import FreeText, JsonValue, Literal, Marker, Regex, Repeat, Term, choice, optional, sequence
from isogloss.messages import ResponseFormat, Tool, ToolChoice
from isogloss.notations.markup_grammar import raw_value
from isogloss.schema.view import SchemaView

_TYPES = {
    "string": {"string"},
    "number": {"integer", "number"},
    "boolean": {"boolean"},
    "null": {"null"},
    "object": {"object"},
    "array": {"array"},
}
"""What an argument may say of its type: the types of JSON Schema that it covers."""


def turn(
    markers: Markers,
    tools: Sequence[Tool],
    wanted: ToolChoice,
    response_format: ResponseFormat | None,
    *,
    parallel: bool,
    reasoning: bool | str,
) -> Constraint:
    """The constraint of a turn, of which the prompt has opened the reasoning (``"open"``) or the response (false)."""
    allowed = wanted.allowed(tools)
    called = block(allowed, parallel) if allowed else None
    body: Term
    if wanted.mode == "required" and called is not None:
        body = sequence(closing("response"), called)
    elif response_format is not None and response_format.kind != "text":
        ways = [sequence(answer(response_format), closing("response"))]
        if response_format.may_refuse:
            ways.append(sequence(refusal(markers), closing("response")))
        if called is not None:
            ways.append(sequence(closing("response"), called))
        body = choice(*ways)
    else:
        said = sequence(_text_up_to_a_tag(), end_of("response"))
        body = said if called is None else sequence(said, optional(called))
    return Constraint(sequence(*_heads(reasoning), body, optional(closing("message"))))


def block(tools: Sequence[Tool], parallel: bool) -> Term:
    """The calls of a turn."""
    call = calls(tools, _call)
    return sequence(opening("tools"), Repeat(call, 1) if parallel else call, closing("tools"))


def _heads(reasoning: bool | str) -> Iterator[Term]:
    if not reasoning:
        return
    thought = sequence(_text_up_to_a_tag(), end_of("think"))
    yield thought if reasoning == "open" else optional(sequence(opening("think"), thought))
    yield opening("response")


def _text_up_to_a_tag() -> Term:
    """Text and the beginning of the closing tag behind it."""
    return FreeText(until=(Marker(CLOSE),), excluding=(Marker(OPEN), Marker(SEP), Marker(END)))


def _call(tool: Tool) -> Term:
    return sequence(
        Marker(OPEN),
        Literal(f'call tool="{escaped(tool.name)}" index="'),
        Regex("[0-9]{1,3}"),
        Literal('"'),
        Marker(SEP),
        parameters(
            tool.parameters,
            _argument_opener,
            Marker(CLOSE),
            (Marker(OPEN), Marker(SEP), Marker(END)),
            spell=escaped,
            after=end_of("argument"),
            value_and_closer=_value_and_closer,
        ),
        closing("call"),
    )


def _argument_opener(key: Term, value: SchemaView | None) -> Term:
    return sequence(Marker(OPEN), Literal('argument key="'), key, Literal('" type="'))


def _value_and_closer(view: SchemaView | None, closer: Marker, *excluding: Marker) -> Term:
    """The rest of an argument's opening tag, which says the type, and a value of that type."""
    view = SchemaView(True) if view is None else view
    ways: list[Term] = []
    for name, types in _TYPES.items():
        if types & view.types:
            of_type = view.view_of({"allOf": [view.schema, {"type": sorted(types & view.types)}]})
            text = name == "string"
            value = raw_value(of_type, closer, *excluding) if text else _json(of_type, closer)
            ways.append(sequence(Literal(f'{name}"'), Marker(SEP), value))
    return choice(*ways)


def _json(view: SchemaView, closer: Marker) -> Term:
    return sequence(JsonValue(view.standalone()), closer)
