"""The grammar of arguments as elements (`minimax_m3`).

An object or list is written as elements where a grammar of them says as much as its schema: where the value may be of
one kind of container, about which no keywords say more than what is inside. Any other is JSON in one element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from isogloss.dialects._invoke_calls import escape_attribute
from isogloss.dialects._tag_grammar import arguments, calls, listed
from isogloss.errors import UnrepresentableError
from isogloss.grammar import FreeText, Literal, Marker, Reference, Regex, Repeat, Rule, Term, choice, optional, sequence
from isogloss.messages import Tool
from isogloss.notations.elements import CONTAINERS, ITEM, is_key
from isogloss.notations.markup_grammar import raw_value
from isogloss.schema.argument_cases import Argument
from isogloss.schema.view import SchemaView

_SAID = frozenset(
    {
        *("$schema", "$id", "$comment", "$defs", "definitions", "$ref", "allOf", "nullable", "type"),
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
        *("properties", "required", "additionalProperties", "items", "minItems", "maxItems"),
    }
)
"""Keywords that elements can follow."""
_MOST_ITEMS = 1_000


def block_grammar(token: str, tools: Sequence[Tool], parallel: bool) -> Term:
    """The rest of a block behind its opening tag; ``token`` begins each tag."""
    write = _Grammar(token)
    line = sequence(calls(tools, write.call), Literal("\n"))
    return sequence(Literal("\n"), Repeat(line, 1, None if parallel else 1), write.tag("</tool_call>"))


class _Grammar:
    """Makes the terms of one grammar. Objects and lists are rules, each written once, so that they may be recursive."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._rules: dict[int, str] = {}
        self._views: list[SchemaView] = []

    def tag(self, text: str) -> Marker:
        return Marker(self._token + text, self._token)

    def call(self, tool: Tool) -> Term:
        opening = self.tag(f'<invoke name="{escape_attribute(tool.name)}">')
        return sequence(opening, arguments(tool.parameters, self._element, self._any), self.tag("</invoke>"))

    def _any(self, key: Term, view: SchemaView | None) -> Term:
        """An argument that the schema does not list. The scanner minds no difference between its tags."""
        assert isinstance(key, Regex)
        name = Regex(key.pattern, excluding=(*key.excluding, "tool_call", "invoke"))
        value = raw_value(view, self.tag("</"), self.tag("<"))
        return sequence(self.tag("<"), name, Literal(">"), value, name, Literal(">"))

    def _element(self, key: Term, view: SchemaView | None) -> Term:
        assert isinstance(key, Literal)
        name = key.text
        if is_key(name) is None:
            raise UnrepresentableError(f"No element can be named {name!r}")
        return sequence(self.tag(f"<{name}>"), self._value(view, self.tag(f"</{name}>")))

    def _value(self, view: SchemaView | None, closer: Marker) -> Term:
        """A value and the closing tag behind it."""
        made = None if view is None else _made_of_elements(view)
        if view is None or made is None:
            return raw_value(view, closer, self.tag("<"))
        inside = sequence(self._rule(made), closer)
        others = view.types - CONTAINERS
        if not others:
            return inside
        scalar = raw_value(view.view_of({"allOf": [view.schema, {"type": sorted(others)}]}), closer, self.tag("<"))
        if "string" in others and _may_be_empty(made) and not (isinstance(scalar, FreeText) and not scalar.language):
            return raw_value(view, closer, self.tag("<"))
        return choice(scalar, inside)

    def _rule(self, view: SchemaView) -> Term:
        name = self._rules.get(id(view))
        if name is not None:
            return Reference(name)
        name = self._rules[id(view)] = f"elements_{len(self._rules)}"
        self._views.append(view)  # holds on to the view, whose identity is the key
        return Rule(name, self._items(view) if "array" in view.types else sequence(*self._members(view)))

    def _members(self, view: SchemaView) -> Iterator[Term]:
        members = [Argument(name, member, name in view.required) for name, member in view.properties.items()]
        for term, is_required in listed(members, self._element):
            yield term if is_required else optional(term)

    def _items(self, view: SchemaView) -> Term:
        shortest, longest = _bounds(view)
        return Repeat(self._element(Literal(ITEM), view.items), shortest, longest)


def _made_of_elements(view: SchemaView) -> SchemaView | None:
    """The view, or the branch of its union, that elements can follow."""
    if len(view.types & CONTAINERS) != 1:
        return None
    branches = [branch for branch in view.alternatives or (view,) if branch.types & CONTAINERS]
    if len(branches) != 1 or not all(map(_SAID.issuperset, branches[0].parts)):
        return None
    branch = branches[0]
    if "array" in branch.types:
        shortest, longest = _bounds(branch)
        return None if branch.prefix_items or max(shortest, longest or 0) > _MOST_ITEMS else branch
    if not (branch.is_closed or branch.properties):
        return None
    return branch if all(key in branch.properties and is_key(key) for key in branch.required) else None


def _may_be_empty(view: SchemaView) -> bool:
    """Whether there may be no elements, which reads as an empty string where a string may be meant."""
    return not (view.required or _bounds(view)[0])


def _bounds(view: SchemaView) -> tuple[int, int | None]:
    """The least and the largest number of items."""
    shortest = max([part["minItems"] for part in view.parts if "minItems" in part], default=0)
    longest = min([part["maxItems"] for part in view.parts if "maxItems" in part], default=None)
    return shortest, longest
