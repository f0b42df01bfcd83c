"""Values as elements: a string as it is, an object as an element for each member, a list as one ``item`` for each of
its own, anything else as JSON.

What was meant is decided by the schema. Where it says nothing, an element with elements in it is a list if the first of
them is an ``item``, an object otherwise; an element without is read as `isogloss.notations.markup` reads it.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import regex

from isogloss._compiled import mypyc_attr
from isogloss.errors import UnrepresentableError
from isogloss.notations.json import write as write_json
from isogloss.notations.markup import MarkupReader
from isogloss.notations.markup import write as write_markup
from isogloss.schema.view import SchemaView

KEY = r"(?!(?:tool_call|invoke)[\s/>])[^/<>\n](?:[^<>\n]{0,126}?[^/<>\n])?"
"""The key of an argument or a member, as a regular expression."""
ITEM: Final = "item"
"""The name of a list's elements."""

CONTAINERS = frozenset({"object", "array"})

Content: TypeAlias = "str | list[tuple[str, Content]]"
"""What is in an element: text, or elements with their names."""

is_key = regex.compile(KEY).fullmatch


def is_list(view: SchemaView | None, first: str) -> bool:
    """Whether an element whose first inner element is named ``first`` is a list, not an object."""
    kinds = CONTAINERS if view is None else view.types & CONTAINERS
    return ("array" in kinds) if len(kinds) == 1 else first == ITEM


def inner_view(view: SchemaView | None, key: str, position: int | None) -> SchemaView | None:
    """What the element ``key`` of an object may be, or that at a position of a list."""
    if view is None:
        return None
    return view.member(key) if position is None else view.item(position)


@mypyc_attr(allow_interpreted_subclasses=True)
class ElementReader(MarkupReader):
    """Reads the text of an element without elements in it. An empty one may be an empty list or object."""

    def _typed(self, raw: str) -> Any:
        types = frozenset() if self._view is None or raw.strip() else self._view.types
        if types & CONTAINERS and "string" not in types:
            return [] if "array" in types else {}
        return super()._typed(raw)


def content(value: Any, view: SchemaView | None) -> Content:
    """What the element of a value has in it: elements where those say all of the value, else text.

    Raises `UnrepresentableError` when no text reads back as it.
    """
    if isinstance(value, dict | list):
        content = _elements(value, view)
        if content is not None:
            return content
    return write_markup(value, view)


def _elements(value: dict[str, Any] | list[Any], view: SchemaView | None) -> Content | None:
    if not value:
        return [] if ElementReader(view).end() == write_json(value) else None
    of_list = isinstance(value, list)
    members = [(ITEM, item) for item in value] if isinstance(value, list) else list(value.items())
    if is_list(view, members[0][0]) != of_list or not all(is_key(name) for name, _ in members):
        return None
    try:
        return [
            (name, content(member, inner_view(view, name, place if of_list else None)))
            for place, (name, member) in enumerate(members)
        ]
    except UnrepresentableError:
        return None
