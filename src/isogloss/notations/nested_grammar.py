"""The grammar of nested values that satisfy a schema, in a notation that is not JSON but may hold JSON.

Members come in the order of the schema; an object takes others only where the schema lists none. What the notation
cannot hold to its schema in its own way, it writes as JSON, which all these notations read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from isogloss.grammar import (
    Choice,
    JsonValue,
    Literal,
    Reference,
    Repeat,
    Rule,
    Term,
    choice,
    optional,
    sequence,
)
from isogloss.notations.counted_members import members
from isogloss.schema.argument_cases import ArgumentCase, argument_cases
from isogloss.schema.keywords import assertions, lists_values
from isogloss.schema.view import ANY_TYPE, SchemaView

_IN_ITS_OWN_WAY = frozenset(
    {
        *("type", "properties", "required", "additionalProperties", "items", "minItems", "maxItems", "anyOf", "oneOf"),
        *("minLength", "maxLength", "pattern", "format"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    }
)
"""Keywords that are followed in the notation; the grammar of JSON knows all others."""

_NUMBERS = frozenset({"integer", "number"})


class NestedGrammar(ABC):
    """Makes the terms of one grammar: rules are named once, so that schemas may refer to themselves."""

    comma: ClassVar[Term] = Literal(",")

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._views: list[SchemaView] = []  # whose identities are in use
        self._any_is_named = False
        self._rules = 0

    # What a notation gives

    @abstractmethod
    def string(self, view: SchemaView | None) -> Term:
        """A string under a schema that permits strings."""

    @abstractmethod
    def written(self, value: Any) -> Term:
        """This one value."""

    @abstractmethod
    def key(self, key: str) -> Term:
        """A key of an object, with what stands between it and its value."""

    @abstractmethod
    def any_key(self) -> Term:
        """Any key."""

    @abstractmethod
    def words(self, types: frozenset[str]) -> list[Term]:
        """``true``, ``false`` and ``null``, as far as the types permit them."""

    # What follows from it

    def value(self, view: SchemaView | None) -> Term:
        """A value that satisfies the schema."""
        if view is None or (view.types == ANY_TYPE and not assertions(view)):
            return self._any()
        if lists_values(view):
            return choice(*[self.written(value) for value in view.const_values or ()])
        if view.only_string:
            return self.string(view)
        if not self.is_plain(view):
            return JsonValue(view.standalone())
        if view.unions:
            return choice(*[self.value(branch) for branch in view.alternatives])
        return self._of_types(view)

    def is_plain(self, view: SchemaView) -> bool:
        """Whether the notation can hold values to the schema in its own way."""
        if not assertions(view) <= _IN_ITS_OWN_WAY or view.prefix_items:
            return False
        if view.unions:
            return len(view.unions) == 1 and _are_told_apart(view)
        closing = [part for part in view.parts if part.get("additionalProperties", True) is not True]
        listing = [part for part in view.parts if "properties" in part]
        if closing and (len(closing) > 1 or any(part is not closing[0] for part in listing)):
            return False  # each part closes over the properties that it lists itself
        return view.required <= view.properties.keys()

    def _of_types(self, view: SchemaView) -> Term:
        types = view.types
        ways: list[Term] = []
        if "string" in types:
            ways.append(self.string(view.view_of({"allOf": [view.schema, {"type": "string"}]})))
        if types & _NUMBERS:
            kind = "number" if "number" in types else "integer"
            ways.append(JsonValue(view.view_of({"allOf": [view.schema, {"type": kind}]}).standalone()))
        ways += self.words(types)
        if types & {"array", "object"}:
            ways.append(self._named(view))
        return choice(*ways)

    def _any(self) -> Term:
        if self._any_is_named:
            return Reference("any_value")
        self._any_is_named = True
        numbers = JsonValue({"type": "number"})
        scalars = (self.string(None), numbers, *self.words(ANY_TYPE))
        return Rule("any_value", Choice((*scalars, self._array(None, 0, None), self._map(None))))

    def _named(self, view: SchemaView) -> Term:
        """Containers, by a name that they can refer to themselves by."""
        name = self._names.get(id(view))
        if name is not None:
            return Reference(name)
        name = self._names[id(view)] = self._new_name("value")
        self._views.append(view)
        ways: list[Term] = []
        if "array" in view.types:
            ways.append(self._bounded_array(view))
        if "object" in view.types:
            ways.append(self._object(view))
        return Rule(name, choice(*ways))

    def _new_name(self, kind: str) -> str:
        self._rules += 1
        return f"{kind}_{self._rules}"

    def _bounded_array(self, view: SchemaView) -> Term:
        least = max([int(part["minItems"]) for part in view.parts if "minItems" in part], default=0)
        most = min([int(part["maxItems"]) for part in view.parts if "maxItems" in part], default=None)
        return self._array(view.items, least, most)

    def _array(self, items: SchemaView | None, least: int, most: int | None) -> Term:
        if most == 0:
            return Literal("[]")
        item = self.value(items)
        again = item if not isinstance(item, Rule) else Reference(item.name)
        more = Repeat(sequence(self.comma, again), max(least - 1, 0), None if most is None else most - 1)
        inside = sequence(item, more)
        return sequence(Literal("["), inside if least else optional(inside), Literal("]"))

    def arguments(self, schema: object) -> Term:
        """The arguments of a call under the schema of its parameters."""
        cases = argument_cases(schema)
        if not are_sayable(cases):
            return JsonValue(of_objects(schema))
        return choice(*[self._of_case(case) for case in cases])

    def _of_case(self, case: ArgumentCase) -> Term:
        if not case.arguments:
            return Literal("{}") if case.others is None else self._map(case.others)
        return sequence(Literal("{"), self.listed(case, self._member), Literal("}"))

    def listed(self, case: ArgumentCase, member: Callable[[str, SchemaView], Term]) -> Term:
        """The arguments that a case lists."""
        listed = [(member(argument.name, argument.view), argument.is_required) for argument in case.arguments]
        if not case.is_counted:
            return self.separated(listed)
        return members(listed, None, case.least, case.most, name=self._new_name("counted"), between=self.comma)

    def _object(self, view: SchemaView) -> Term:
        if not view.properties:
            return Literal("{}") if view.is_closed else self._map(view.additional)
        members = [(self._member(key, member), key in view.required) for key, member in view.properties.items()]
        return sequence(Literal("{"), self.separated(members), Literal("}"))

    def _member(self, key: str, view: SchemaView) -> Term:
        return sequence(self.key(key), self.value(view))

    def _map(self, values: SchemaView | None) -> Term:
        return sequence(Literal("{"), self.separated_any(sequence(self.any_key(), self.value(values))), Literal("}"))

    def separated_any(self, member: Term) -> Term:
        """Any number of members with commas between them."""
        named = Rule(self._new_name("member"), member)
        return optional(sequence(named, Repeat(sequence(self.comma, Reference(named.name)))))

    def separated(self, members: Sequence[tuple[Term, bool]]) -> Term:
        """Members in order, each with whether it is required, with commas between them.

        The first one that there is has no comma in front of it; all that follow it have one. Which one is the first is
        open up to the first that is required: each member has a name, and so have parts of what may follow, so that the
        grammar grows with the number of members and not with its square.
        """
        name = self._new_name("members")
        named = [Rule(f"{name}_{position}", member) for position, (member, _) in enumerate(members)]
        count = len(members)

        def rest(start: int, stop: int, *, names: bool = False) -> list[Term]:
            """The members of a range behind others; ``names`` where they get their names."""
            items = [sequence(self.comma, rule if names else Reference(rule.name)) for rule in named[start:stop]]
            return [
                item if is_required else optional(item)
                for item, (_, is_required) in zip(items, members[start:stop], strict=True)
            ]

        required = next((position for position, (_, is_required) in enumerate(members) if is_required), count)
        if required == 0:
            return sequence(named[0], *rest(1, count, names=True))
        after = Rule(f"{name}_end", sequence(*rest(required, count, names=True)))
        ways: list[Term] = []
        for start in range((required - 1) // _PART * _PART, 0, -_PART):
            stop = min(start + _PART, required)
            behind = Reference(after.name)
            ways += [sequence(Reference(named[p].name), *rest(p + 1, stop), behind) for p in range(start, stop)]
            after = Rule(f"{name}_from_{start}", sequence(*rest(start, stop, names=True), after))
        stop = min(_PART, required)
        first = sequence(named[0], *rest(1, stop, names=True), after)
        others = [sequence(Reference(named[p].name), *rest(p + 1, stop), Reference(after.name)) for p in range(1, stop)]
        last = sequence(Reference(named[required].name), *rest(required + 1, count)) if required < count else sequence()
        return choice(first, *others, *ways, last)


_PART = 16
"""Members whose following is named together."""


def are_sayable(cases: Sequence[ArgumentCase]) -> bool:
    """Whether a notation can write arguments of these cases in its own way."""
    return all(case.is_exact and (not case.is_counted or (case.arguments and case.others is None)) for case in cases)


def of_objects(schema: Any) -> dict[str, Any]:
    """The schema of parameters, of objects alone."""
    return {**schema, "type": "object"} if isinstance(schema, Mapping) else {"type": "object"}


def _are_told_apart(view: SchemaView) -> bool:
    """Whether a value shows which branch of the union it is of, as far as that matters."""
    branches = view.alternatives
    if any(branch.unions for branch in branches) or sum(branch.allows_string for branch in branches) > 1:
        return False
    if not any("oneOf" in part for part in view.parts):
        return True
    types = [branch.types | ({"integer"} if "number" in branch.types else frozenset()) for branch in branches]
    return sum(map(len, types)) == len(frozenset().union(*types))
