"""One resolved view of a JSON Schema: what a value may be, read through references, unions and ``allOf``.

Everything that asks "what may stand here?" (the typing of raw text, the TypeScript of a prompt, the grammars of the
notations) asks a `SchemaView`. A view is lazy, and total: broken references, booleans as schemas, schemas that refer to
themselves and values that are no schemas at all give a view that permits anything (``False``: nothing), never an error.
Work is linear in the size of the schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from isogloss.schema.references import MISSING, References, standalone
from isogloss.schema.values import common, type_of, unique

JSON_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
"""``integer`` is a whole number; ``number`` one that is not. A schema of type number permits both."""

ANY_TYPE = frozenset(JSON_TYPES)
NO_TYPE: frozenset[str] = frozenset()

# Schemas in the wild also say Python's and C's names, and Gemini's upper case ones.
_TYPE_NAMES: dict[str, frozenset[str]] = {
    **{name: frozenset({name}) for name in JSON_TYPES},
    "number": frozenset({"integer", "number"}),
    **{name: frozenset({"integer", "number"}) for name in ("float", "double")},
    **{name: frozenset({"integer"}) for name in ("int", "long")},
    **{name: frozenset({"string"}) for name in ("str",)},
    **{name: frozenset({"boolean"}) for name in ("bool",)},
    **{name: frozenset({"array"}) for name in ("list", "tuple")},
    **{name: frozenset({"object"}) for name in ("dict",)},
    **{name: frozenset({"null"}) for name in ("none",)},
}

_MOST_PARTS = 256
"""Schemas joined by ``$ref`` and ``allOf`` into one view; more are not looked at."""

_MOST_BRANCHES = 2048
"""Branches of unions looked at for one question; beyond, the answer is "anything"."""

_MOST_PASSES = 8
"""Unions that refer to each other settle in two or three passes."""

_UNIONS = ("anyOf", "oneOf")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class SchemaView:
    """What a value under ``schema`` may be. ``root`` is the document that its references point into."""

    __slots__ = (
        "_additional",
        "_alternatives",
        "_document",
        "_found",
        "_in_unions",
        "_items",
        "_parts",
        "_prefix",
        "_properties",
        "_required",
        "_types",
        "_unions",
        "_values",
        "schema",
    )

    schema: Any
    """The schema as given, before anything was resolved."""

    def __init__(self, schema: object, root: object = MISSING) -> None:
        self._start(_Document(schema if root is MISSING else root), schema)
        self._document.adopt(self)

    def _start(self, document: _Document, schema: object) -> None:
        self.schema = schema
        self._document = document
        self._parts: tuple[dict[str, Any], ...] | None = None
        self._types: frozenset[str] | None = None
        self._unions: tuple[tuple[SchemaView, ...], ...] | None = None
        self._values: tuple[Any, ...] | object | None = MISSING
        self._properties: dict[str, SchemaView] | None = None
        self._required: frozenset[str] | None = None
        self._in_unions: dict[str, list[Any]] | None = None
        self._found: dict[str, SchemaView] = {}
        self._additional: SchemaView | object | None = MISSING
        self._items: SchemaView | object | None = MISSING
        self._prefix: tuple[SchemaView, ...] | None = None
        self._alternatives: tuple[SchemaView, ...] | None = None

    def __repr__(self) -> str:
        return f"SchemaView({' | '.join(name for name in JSON_TYPES if name in self.types) or 'nothing'})"

    # What the schema is made of

    @property
    def parts(self) -> tuple[dict[str, Any], ...]:
        """The schemas that all apply: this one, what it refers to, the members of ``allOf``, and theirs."""
        if self._parts is None:
            self._parts = _joined(self.schema, self._document)
        return self._parts

    @property
    def reference(self) -> str | None:
        """The text of the schema's own ``$ref``, if it is one."""
        reference = self.schema.get("$ref") if isinstance(self.schema, dict) else None
        return reference if isinstance(reference, str) else None

    def resolve(self, reference: str) -> SchemaView | None:
        """What a reference in the same document points at, ``None`` when it points at nothing."""
        target = self._document.references.resolve(reference)
        return None if target is MISSING else self._document.view(target)

    def view_of(self, schema: object) -> SchemaView:
        """The view of another schema in the same document."""
        return self._document.view(schema)

    def standalone(self) -> Any:
        """The schema as a document of its own, for a grammar or a validator that sees nothing of its root."""
        return standalone(self.schema, self._document.references.root)

    def annotation(self, keyword: str) -> Any:
        """The value of ``description``, ``title``, ``default`` and the like: the nearest one, or ``None``."""
        for part in self.parts:
            if keyword in part:
                return part[keyword]
        return None

    # What kind of value may stand here

    @property
    def types(self) -> frozenset[str]:
        """The JSON types that the value may have: `JSON_TYPES`, through references, unions, enum and const."""
        if self._types is None:
            _settle_types(self)
        assert self._types is not None
        return self._types

    @property
    def allows_string(self) -> bool:
        return "string" in self.types

    @property
    def allows_null(self) -> bool:
        return "null" in self.types

    @property
    def only_string(self) -> bool:
        """The value can be nothing but a string (of any kind)."""
        return self.types == _ONLY_STRING

    @property
    def const_values(self) -> tuple[Any, ...] | None:
        """Every value there may be when ``enum``, ``const`` and null are all that is permitted, else ``None``."""
        if self._values is MISSING:
            self._values = _enumerate(self, [_MOST_BRANCHES], 0)
        return self._values  # type: ignore[return-value]

    @property
    def unions(self) -> tuple[tuple[SchemaView, ...], ...]:
        """The branches of each ``anyOf`` and ``oneOf`` of the parts; a branch's view leaves out what stands beside."""
        if self._unions is None:
            view = self._document.view
            self._unions = tuple(
                tuple([view(branch) for branch in branches])
                for part in self.parts
                for keyword in _UNIONS
                if isinstance(branches := part.get(keyword), list) and branches
            )
        return self._unions

    @property
    def alternatives(self) -> tuple[SchemaView, ...]:
        """The branches of the first union, each joined with all that stands beside it; empty without a union.

        A branch may have alternatives of its own, and a schema that refers to itself may be its own branch.
        """
        if self._alternatives is None:
            self._alternatives = tuple(_alternatives(self, self._document))
        return self._alternatives

    # What is inside

    @property
    def properties(self) -> dict[str, SchemaView]:
        """The properties that the parts declare, in order. Those of a union's branches are in `alternatives`."""
        if self._properties is None:
            self._properties = {name: self._document.joined(schemas) for name, schemas in _declared(self.parts).items()}
        return self._properties

    def member(self, name: str) -> SchemaView | None:
        """What the value under ``name`` may be, looked for in unions too; ``None`` when the schema says nothing."""
        found = self._found.get(name)
        if found is not None:
            return found
        schemas = [view.schema] if (view := self.properties.get(name)) is not None else []
        within = self._document.any_of(self._union_properties().get(name, []))
        if within is not None:
            schemas.append(within.schema)
        if not schemas:
            return self.additional
        found = self._found[name] = self._document.joined(schemas)
        return found

    def _union_properties(self) -> dict[str, list[Any]]:
        if self._in_unions is None:
            self._in_unions = _declared_in_unions(self)
        return self._in_unions

    @property
    def member_names(self) -> list[str]:
        """The names that the schema says something about: its own properties, then those of unions."""
        return list({**self.properties, **self._union_properties()})

    @property
    def additional(self) -> SchemaView | None:
        """What a value under a name that no ``properties`` lists may be, ``None`` when the schema says nothing.

        Patterns are not matched: it is any of ``patternProperties`` and ``additionalProperties``.
        """
        if self._additional is MISSING:
            self._additional = self._document.any_of(
                [schema for view in _with_branches(self) for part in view.parts for schema in _open_schemas(part)]
            )
        return self._additional  # type: ignore[return-value]

    @property
    def is_closed(self) -> bool:
        """No name but those in ``properties`` (and ``patternProperties``) is permitted."""
        return any(
            part.get(keyword) is False
            for part in self.parts
            for keyword in ("additionalProperties", "unevaluatedProperties")
        )

    @property
    def required(self) -> frozenset[str]:
        """The names that the parts require."""
        if self._required is None:
            self._required = frozenset(
                name
                for part in self.parts
                if isinstance(names := part.get("required"), list)
                for name in names
                if isinstance(name, str)
            )
        return self._required

    @property
    def prefix_items(self) -> tuple[SchemaView, ...]:
        """The elements of a tuple, by position."""
        if self._prefix is None:
            rows = [row for part in self.parts if (row := _prefix(part))]
            width = max(map(len, rows), default=0)
            self._prefix = tuple(
                self._document.joined([row[position] for row in rows if position < len(row)])
                for position in range(width)
            )
        return self._prefix

    @property
    def items(self) -> SchemaView | None:
        """The elements of an array after `prefix_items`, looked for in unions too; ``None`` when nothing is said."""
        if self._items is MISSING:
            rests = [_rests(view.parts) for view in _with_branches(self)]
            within = self._document.any_of([self._document.joined(rest).schema for rest in rests[1:] if rest])
            own = rests[0] if within is None else [*rests[0], within.schema]
            self._items = self._document.joined(own) if own else None
        return self._items  # type: ignore[return-value]

    def item(self, position: int) -> SchemaView | None:
        """What the element at a position may be, ``None`` when the schema says nothing."""
        prefix = self.prefix_items
        return prefix[position] if position < len(prefix) else self.items


def shared_view(schema: object) -> SchemaView:
    """The view of a whole document: the same one while the document is in use, for views keep what they have found."""
    return _shared_view(_Identity(schema))


class _Identity:
    """A document by its identity, which it has as long as this holds it."""

    __slots__ = ("schema",)

    def __init__(self, schema: object) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.schema is self.schema


@lru_cache(maxsize=128)
def _shared_view(document: _Identity) -> SchemaView:
    return SchemaView(document.schema)


_ONLY_STRING = frozenset({"string"})
_ONLY_NULL = frozenset({"null"})


class _Document:
    """The views of one document, one for each schema in it.

    Views are found by the identity of their schema, which they hold on to, so that no identity is ever reused. A
    schema that is changed afterwards keeps the views made of it before.
    """

    __slots__ = ("_made", "_views", "references")

    def __init__(self, root: object) -> None:
        self.references = References(root)
        self._views: dict[int, SchemaView] = {}
        self._made: dict[tuple[object, ...], dict[str, Any]] = {}

    def adopt(self, view: SchemaView) -> None:
        self._views[id(view.schema)] = view

    def view(self, schema: object) -> SchemaView:
        view = self._views.get(id(schema))
        if view is None:
            view = SchemaView.__new__(SchemaView)
            view._start(self, schema)
            self.adopt(view)
        return view

    def joined(self, schemas: list[Any]) -> SchemaView:
        """The view of a value that all the schemas apply to."""
        return self._combined("allOf", schemas)

    def any_of(self, schemas: list[Any]) -> SchemaView | None:
        """The view of a value that one of the schemas applies to."""
        return self._combined("anyOf", schemas) if schemas else None

    def _combined(self, keyword: str, schemas: list[Any]) -> SchemaView:
        if len(schemas) == 1:
            return self.view(schemas[0])
        key = (keyword, *map(id, schemas))
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = {keyword: schemas}
        return self.view(made)

    def without(self, part: dict[str, Any], keywords: frozenset[str]) -> dict[str, Any]:
        """The part without some of its keywords."""
        if keywords.isdisjoint(part):
            return part
        key = (id(part), keywords)
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = {name: value for name, value in part.items() if name not in keywords}
            self.view(part)  # holds on to the part, whose identity is in the key
        return made


def _joined(schema: object, document: _Document) -> tuple[dict[str, Any], ...]:
    if schema is False:
        return (_NOTHING,)
    parts: list[dict[str, Any]] = []
    pending: list[object] = [schema]
    seen: set[int] = set()
    while pending and len(parts) < _MOST_PARTS:
        node = pending.pop()
        if node is False:
            return (_NOTHING,)
        if not isinstance(node, dict) or id(node) in seen:
            continue
        seen.add(id(node))
        parts.append(node)
        members = node.get("allOf")
        if isinstance(members, list):
            pending.extend(reversed(members[:_MOST_PARTS]))
        for keyword in _REFERENCES:
            reference = node.get(keyword)
            if isinstance(reference, str):
                pending.append(document.references.resolve(reference))
    return tuple(parts)


_NOTHING: dict[str, Any] = {"enum": []}


def _own_types(part: dict[str, Any]) -> frozenset[str]:
    types = ANY_TYPE
    named = part.get("type")
    if isinstance(named, str):
        types = _named_types((named,))
    elif isinstance(named, list):
        types = _named_types(named)
    for values in (part.get("enum"), [part["const"]] if "const" in part else None):
        if isinstance(values, list):
            types &= frozenset(map(type_of, values))
    return types | _ONLY_NULL if part.get("nullable") is True else types


def _named_types(names: Iterable[object]) -> frozenset[str]:
    types: set[str] = set()
    for name in names:
        known = _TYPE_NAMES.get(name.lower()) if isinstance(name, str) else None
        if known is None:  # a name that nobody defined says nothing
            return ANY_TYPE
        types |= known
    return frozenset(types) if types else ANY_TYPE


def _settle_types(view: SchemaView) -> None:
    """Find the types of a view and of all those it is a union of: the least sets that fit together."""
    order = _reachable(view)
    base = {id(member): _intersection(member.parts) for member in order}
    types: dict[int, frozenset[str]] = dict.fromkeys(base, NO_TYPE)
    for _ in range(_MOST_PASSES):
        changed = False
        for member in order:
            result = base[id(member)]
            for branches in member.unions:
                permitted: set[str] = set()
                for branch in branches:
                    permitted |= types[id(branch)] if branch._types is None else branch._types
                result &= permitted
            if isinstance(member.schema, dict) and member.schema.get("nullable") is True:
                result |= _ONLY_NULL  # beside a `$ref` or `allOf`, it is meant of the whole
            if result != types[id(member)]:
                types[id(member)] = result
                changed = True
        if not changed:
            break
    else:
        types = dict.fromkeys(base, ANY_TYPE)
    for member in order:
        member._types = types[id(member)]


def _intersection(parts: tuple[dict[str, Any], ...]) -> frozenset[str]:
    types = ANY_TYPE
    for part in parts:
        types &= _own_types(part)
    return types


def _reachable(view: SchemaView) -> list[SchemaView]:
    """The views whose types are not known yet and that the view is a union of, innermost first, and the view."""
    order: list[SchemaView] = []
    seen = {id(view)}
    stack = [(view, _branches(view))]
    while stack:
        member, branches = stack[-1]
        for branch in branches:
            if branch._types is None and id(branch) not in seen:
                seen.add(id(branch))
                stack.append((branch, _branches(branch)))
                break
        else:
            stack.pop()
            order.append(member)
    return order


def _branches(view: SchemaView) -> Iterator[SchemaView]:
    for branches in view.unions:
        yield from branches


def _enumerate(view: SchemaView, budget: list[int], depth: int) -> tuple[Any, ...] | None:
    budget[0] -= 1
    if budget[0] < 0 or depth > 8:
        return None
    values: list[Any] | None = None
    for part in view.parts:
        for listed in (part.get("enum"), [part["const"]] if "const" in part else None):
            if isinstance(listed, list):
                values = unique(listed) if values is None else common(values, listed)
    if values is None and view.types == _ONLY_NULL:
        return (None,)
    if values is None:
        for branches in view.unions:
            values = _enumerate_branches(branches, budget, depth)
            if values is not None:
                break
    if values is None:
        return None
    types = view.types
    kept = [value for value in values if type_of(value) in types]
    if "null" in types and not any(value is None for value in kept):
        kept.append(None)  # `nullable` beside an enum without null
    return tuple(kept)


def _enumerate_branches(branches: tuple[SchemaView, ...], budget: list[int], depth: int) -> list[Any] | None:
    values: list[Any] = []
    for branch in branches:
        within = _enumerate(branch, budget, depth + 1)
        if within is None:
            return None
        values.extend(within)
    return unique(values)


def _alternatives(view: SchemaView, document: _Document) -> Iterator[SchemaView]:
    for part in view.parts:
        for keyword in _UNIONS:
            branches = part.get(keyword)
            if not isinstance(branches, list) or not branches:
                continue
            beside = list(_beside(view.parts, part, keyword, document))
            for branch in branches:
                yield document.joined([branch, *beside])
            return


def _beside(
    parts: tuple[dict[str, Any], ...], union: dict[str, Any], keyword: str, document: _Document
) -> Iterator[dict[str, Any]]:
    """What the parts say but for one union; what references and ``allOf`` lead to is already among the parts."""
    for part in parts:
        left_out = _STRUCTURE | {keyword} if part is union else _STRUCTURE
        if not _SAYS_NOTHING.union(left_out).issuperset(part):
            yield document.without(part, left_out)


_STRUCTURE = frozenset((*_REFERENCES, "allOf"))
_SAYS_NOTHING = frozenset(
    {
        *("$schema", "$id", "$anchor", "$dynamicAnchor", "$comment", "$defs", "definitions"),
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "discriminator"),
    }
)


def _declared(parts: tuple[dict[str, Any], ...]) -> dict[str, list[Any]]:
    declared: dict[str, list[Any]] = {}
    for part in parts:
        properties = part.get("properties")
        if isinstance(properties, dict):
            for name, schema in properties.items():
                if isinstance(name, str):
                    declared.setdefault(name, []).append(schema)
    return declared


def _open_schemas(part: dict[str, Any]) -> Iterator[Any]:
    patterns = part.get("patternProperties")
    if isinstance(patterns, dict):
        yield from patterns.values()
    for keyword in ("additionalProperties", "unevaluatedProperties"):
        if isinstance(part.get(keyword), dict):
            yield part[keyword]


def _prefix(part: dict[str, Any]) -> list[Any]:
    for keyword in ("prefixItems", "items"):
        if isinstance(part.get(keyword), list):
            row: list[Any] = part[keyword]
            return row
    return []


def _rests(parts: tuple[dict[str, Any], ...]) -> list[Any]:
    return [
        next(part[keyword] for keyword in _REST if isinstance(part.get(keyword), dict))
        for part in parts
        if any(isinstance(part.get(keyword), dict) for keyword in _REST)
    ]


_REST = ("items", "additionalItems", "unevaluatedItems")


def _declared_in_unions(view: SchemaView) -> dict[str, list[Any]]:
    declared: dict[str, list[Any]] = {}
    for branch in _with_branches(view)[1:]:
        for name, within in branch.properties.items():
            declared.setdefault(name, []).append(within.schema)
    return declared


def _with_branches(view: SchemaView) -> list[SchemaView]:
    """The view, then the branches of its unions and theirs, each once, but for those that no value is of."""
    found = [view]
    seen = {id(view)}
    pending = list(_branches(view))[::-1]
    while pending and len(found) < _MOST_BRANCHES:
        branch = pending.pop()
        if id(branch) not in seen and branch.types:
            seen.add(id(branch))
            found.append(branch)
            pending.extend(list(_branches(branch))[::-1])
    return found
