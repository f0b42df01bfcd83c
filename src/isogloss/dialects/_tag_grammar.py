"""The grammar of tagged parameters: in the schema's order, optional ones left out or not, further ones at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2s
from typing import Any

import msgspec

from isogloss.errors import UnrepresentableError, UnsatisfiableSchemaError
from isogloss.grammar import (
    Choice,
    Literal,
    Loose,
    Marker,
    Regex,
    Repeat,
    Term,
    choice,
    optional,
    sequence,
)
from isogloss.messages import Tool
from isogloss.notations.counted_members import members
from isogloss.notations.markup_grammar import raw_value
from isogloss.schema.argument_cases import Argument, ArgumentCase, argument_cases
from isogloss.schema.view import SchemaView

ANY_KEY = r"[A-Za-z_][A-Za-z0-9_.\-]{0,63}"
"""Names of parameters that the schema does not list."""

Tag = Literal | Marker

Parameter = Callable[[Term, SchemaView | None], Term]
"""A parameter, or its opening tag: of its key, and the view of its value (``None``: anything)."""


def calls(tools: Sequence[Tool], call: Callable[[Tool], Term]) -> Term:
    """A call of one of the tools."""
    return Choice(tuple(map(call, tools)))


def parameters(
    schema: Any,
    opener: Parameter,
    closer: Tag,
    excluding: Sequence[Tag] = (),
    *,
    spell: Callable[[str], str] = str,
    after: Term | None = None,
    value_and_closer: Callable[..., Term] = raw_value,
) -> Term:
    """All parameters of a call under the tool's ``schema``, ``after`` behind each of them.

    String values hold neither ``closer`` nor ``excluding``. ``spell`` writes a key in its tag and raises
    `UnrepresentableError` for one that the format cannot carry; so does this function when such a key is required.
    ``value_and_closer`` takes what `raw_value` does.
    """
    barred = tuple(excluding)

    def parameter(key: Term, value: SchemaView | None) -> Term:
        parts = (opener(key, value), value_and_closer(value, closer, *barred))
        return sequence(*parts) if after is None else sequence(*parts, after)

    return arguments(schema, parameter, parameter, spell)


def arguments(schema: Any, parameter: Parameter, further: Parameter, spell: Callable[[str], str] = str) -> Term:
    """The arguments of a call in the order of the schema of its parameters. ``further`` writes those whose keys are not
    listed."""
    name = f"arguments_{blake2s(msgspec.json.encode(schema), digest_size=6).hexdigest()}"
    ways = []
    for number, case in enumerate(argument_cases(schema)):
        term = _case(case, list(listed(case.arguments, parameter, spell)), further, f"{name}_{number}")
        is_exact = case.is_exact and all(argument.reads_as_such for argument in case.arguments)
        ways.append(term if is_exact else Loose(term))
    return choice(*ways)


def _case(case: ArgumentCase, listed: list[tuple[Term, bool]], further: Parameter, name: str) -> Term:
    names = tuple(argument.name for argument in case.arguments)
    other = None if case.others is None else further(Regex(ANY_KEY, excluding=names), case.others)
    if case.is_counted:
        return members(listed, other, case.least, case.most, name=name)
    terms = [term if is_required else optional(term) for term, is_required in listed]
    return sequence(*terms) if other is None else sequence(*terms, Repeat(other))


def listed(
    arguments: Iterable[Argument], parameter: Parameter, spell: Callable[[str], str] = str
) -> Iterator[tuple[Term, bool]]:
    """The arguments that a schema lists, each with whether it is required."""
    for argument in arguments:
        try:
            yield parameter(Literal(spell(argument.name)), argument.view), argument.is_required
        except (UnrepresentableError, UnsatisfiableSchemaError):
            if argument.is_required:
                raise
