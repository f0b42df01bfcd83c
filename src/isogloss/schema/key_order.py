"""The order in which a schema lists the keys of its objects, which the canonical form does not keep."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

_IN_PLACE_LISTS = frozenset({"allOf", "anyOf", "oneOf"})
_IN_PLACE = frozenset({"if", "then", "else", "not"})
_IN_PLACE_BY_KEY = frozenset({"dependentSchemas", "dependencies"})
_NAMED_CHILDREN = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_CHILDREN = frozenset(
    {"items", "prefixItems", "additionalItems", "additionalProperties", "contains", "unevaluatedItems"}
    | {"unevaluatedProperties", "propertyNames"}
)
_CHOOSING = frozenset({"anyOf", "oneOf", "if", "then", "else", "not"}) | _IN_PLACE_BY_KEY


class _Place(msgspec.Struct):
    """What a schema and the schemas applied in its place say of one object: all keys, in order; those it always
    declares, and always with a constraint; those it always requires; and the lists they come in."""

    names: dict[str, None]
    always: set[str]
    constrained: set[str]
    required: set[str]
    lists: list[list[str]]


class KeyOrder:
    """The keys of every object that some schema documents speak of, in document order.

    ``properties`` come in the order of the keywords that bring them (their own, ``allOf``, ``$ref``...), then the keys
    that are only required.
    """

    def __init__(self, documents: Iterable[Any]) -> None:
        self._documents = list(documents)
        self._places: list[_Place] | None = None
        self._literals: dict[str, list[str]] = {}
        self._mentions: dict[str, list[int]] = {}

    def of_object(self, names: Iterable[str], required: Collection[str] = (), *, additions: bool = False) -> list[str]:
        """The names as the schema lists them; with ``additions``, also what it declares beside them.

        The place that an object has in the documents is told by its names and by those that it requires.
        """
        wanted = dict.fromkeys(names)
        if not wanted or (len(wanted) == 1 and not additions):
            return list(wanted)
        places = self._read()
        missing = dict(wanted)
        ordered: dict[str, None] = {}
        while missing:
            counts: dict[int, int] = {}
            for name in missing:
                for index in self._mentions.get(name, ()):
                    counts[index] = counts.get(index, 0) + 1
            if not counts:
                break
            place = places[min(counts, key=lambda index: self._distance(index, counts[index], wanted, required))]
            added: set[str] = set()
            if additions and not ordered:
                added = place.always.union(*(part for part in place.lists if not wanted.keys().isdisjoint(part)))
            ordered.update(dict.fromkeys(name for name in place.names if name in missing or name in added))
            for name in place.names:
                missing.pop(name, None)
        return [*ordered, *missing]

    def _distance(
        self, index: int, count: int, names: Collection[str], required: Collection[str]
    ) -> tuple[int, int, int, int]:
        """How unlike a place is to an object: the less, the more of its names it has, and the fewer of its own keys
        are missing from the object."""
        place = (self._places or [])[index]
        missing = len(place.required.difference(required)) + len(place.constrained.difference(names))
        return -count, missing, len(place.names), index

    def of_literal(self, members: Mapping[str, Any]) -> list[str]:
        """The keys of an object in an ``enum`` or ``const``, as written there."""
        if len(members) < 2:
            return list(members)
        self._read()
        return self._literals.get(_signature(members), list(members))

    def _read(self) -> list[_Place]:
        """Every place, found by one walk."""
        if self._places is not None:
            return self._places
        self._places = []
        pending: list[tuple[Any, Any]] = [(document, document) for document in reversed(self._documents)]
        while pending:
            schema, root = pending.pop()
            if not isinstance(schema, Mapping):
                continue
            place = _Place({}, set(), set(), set(), [])
            required: dict[str, None] = {}
            self._collect(schema, root, place, required, set(), always=True)
            place.names.update(required)
            if place.names:
                for name in place.names:
                    self._mentions.setdefault(name, []).append(len(self._places))
                self._places.append(place)
            pending.extend(reversed([(child, root) for child in _children(schema)]))
        return self._places

    def _collect(
        self, schema: Any, root: Any, place: _Place, required: dict[str, None], seen: set[int], *, always: bool
    ) -> None:
        if not isinstance(schema, Mapping) or id(schema) in seen:
            return
        seen.add(id(schema))
        for keyword, value in schema.items():
            if keyword == "properties" and isinstance(value, Mapping):
                place.names.update(dict.fromkeys(value))
                place.lists.append(list(value))
                if always:
                    place.always.update(value)
                    place.constrained.update(name for name, part in value.items() if part is not True and part != {})
            elif keyword == "required" and isinstance(value, list):
                named = [name for name in value if isinstance(name, str)]
                required.update(dict.fromkeys(named))
                if always:
                    place.required.update(named)
            elif keyword == "dependentRequired" and isinstance(value, Mapping):
                named = [*value, *(name for part in value.values() if isinstance(part, list) for name in part)]
                required.update(dict.fromkeys(named))
                if always:
                    place.always.update(named)
            elif keyword == "$ref" and isinstance(value, str):
                self._collect(local(root, value), root, place, required, seen, always=always)
            elif keyword in ("enum", "const"):
                self._note_literals(list(value) if keyword == "enum" and isinstance(value, list) else [value])
            else:
                for part in _applied(keyword, value):
                    self._collect(part, root, place, required, seen, always=always and keyword not in _CHOOSING)

    def _note_literals(self, values: list[Any]) -> None:
        while values:
            value = values.pop()
            if isinstance(value, Mapping):
                self._literals.setdefault(_signature(value), list(value))
                values.extend(value.values())
            elif isinstance(value, list):
                values.extend(value)


def _applied(keyword: str, value: Any) -> Iterator[Any]:
    """Schemas that a keyword applies to the same value."""
    if keyword in _IN_PLACE_LISTS and isinstance(value, list):
        yield from value
    elif keyword in _IN_PLACE:
        yield value
    elif keyword in _IN_PLACE_BY_KEY and isinstance(value, Mapping):
        yield from value.values()


def _children(schema: Mapping[str, Any]) -> Iterator[Any]:
    """Schemas for other values than this one's, those inside the schemas applied in its place included."""
    pending: list[Any] = [schema]
    while pending:
        current = pending.pop()
        if not isinstance(current, Mapping):
            continue
        for keyword, value in current.items():
            pending.extend(_applied(keyword, value))
            if keyword in _NAMED_CHILDREN and isinstance(value, Mapping):
                yield from value.values()
            elif keyword in _CHILDREN:
                yield from value if isinstance(value, list) else (value,)


def local(root: Any, reference: str) -> Any:
    """What a reference within the document points at, None for any other."""
    if not reference.startswith("#"):
        return None
    found = root
    for part in reference[1:].split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping):
            found = found.get(part)
        elif isinstance(found, list) and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        else:
            return None
    return found


def _signature(value: Any) -> str:
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
