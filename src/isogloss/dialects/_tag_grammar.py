"""The grammar of tagged parameters: in the schema's order, optional ones left out or not, further ones at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from isogloss.errors import UnrepresentableError
from isogloss.grammar import Choice, Literal, Marker, Regex, Repeat, Term, optional, sequence
from isogloss.messages import Tool
from isogloss.notations.markup_grammar import raw_value
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
    view = SchemaView(schema)
    barred = tuple(excluding)

    def parameter(key: Term, value: SchemaView | None) -> Term:
        parts = (opener(key, value), value_and_closer(value, closer, *barred))
        return sequence(*parts) if after is None else sequence(*parts, after)

    return sequence(*listed(view, parameter, spell), *further(view, parameter))


def listed(view: SchemaView, parameter: Parameter, spell: Callable[[str], str] = str) -> Iterator[Term]:
    """The parameters that the schema lists."""
    for key, value in view.properties.items():
        is_required = key in view.required
        try:
            term = parameter(Literal(spell(key)), value)
        except UnrepresentableError:
            if is_required:
                raise
            continue
        yield term if is_required else optional(term)


def further(view: SchemaView, parameter: Parameter) -> Iterator[Term]:
    """Keys that the schema does not list, where it is open to any or says what they hold."""
    says_so = any(part.get("additionalProperties") not in (None, False) for part in view.parts)
    if not view.is_closed and (says_so or not view.properties):
        yield Repeat(parameter(Regex(ANY_KEY, excluding=tuple(view.properties)), view.additional))
