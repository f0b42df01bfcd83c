"""Any schema brought into the strict subset, with a list of what that cost.

The result always passes `check_strict`:

* objects are closed and require all their properties; a property that was optional may be null instead of absent;
* references stay references, to definitions at the top; those with keywords beside them are inlined, and what is
  nested too deeply becomes a definition of its own;
* ``allOf`` is merged, ``oneOf`` becomes ``anyOf``, unions inside unions become one;
* a root that is not one object is put under the property ``value``.

What the subset cannot say is left out, so that the result permits more or fewer values than the schema: each such case
is a `Loss`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

import msgspec

from isogloss.errors import SchemaTooComplexError, UnsatisfiableSchemaError
from isogloss.schema.membership import permits
from isogloss.schema.strict import (
    DEEPEST_NESTING,
    DEFINITIONS,
    FORMATS,
    LARGE_ENUM,
    MOST_ENUM_VALUES,
    MOST_LARGE_ENUM_CHARACTERS,
    check_strict,
)
from isogloss.schema.values import same_value, type_of
from isogloss.schema.view import ANY_TYPE, SchemaView

ROOT_PROPERTY = "value"
"""Where the root goes when it is not one object."""

_SCALARS = ("string", "number", "boolean", "null")

_ONLY_OBJECT = frozenset({"object"})
_ONLY_ARRAY = frozenset({"array"})
_ONLY_STRING = frozenset({"string"})

# What is not in the subset, and the types that it speaks of.
_UNSUPPORTED: dict[str, frozenset[str]] = {
    **dict.fromkeys(("not", "if"), ANY_TYPE),
    **dict.fromkeys(("minLength", "maxLength"), _ONLY_STRING),
    **dict.fromkeys(("uniqueItems", "contains"), _ONLY_ARRAY),
    **dict.fromkeys(("minProperties", "maxProperties", "propertyNames"), _ONLY_OBJECT),
    **dict.fromkeys(("dependencies", "dependentRequired", "dependentSchemas"), _ONLY_OBJECT),
}

_ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment"}
)

# Types that a schema without `type` means, by the keywords it has.
_MEANT: tuple[tuple[str, frozenset[str]], ...] = (
    ("object", frozenset({"properties", "required", "additionalProperties", "patternProperties", "propertyNames"})),
    ("array", frozenset({"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"})),
    ("string", frozenset({"pattern", "format", "minLength", "maxLength"})),
    ("number", frozenset({"multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})),
)

_DEEPEST_UNION = 8
_DEEPEST_VALUE = 32
_MOST_STEPS = 100_000


class Loss(msgspec.Struct, frozen=True):
    """Something that the schema said and its strict form does not. ``pointer`` is the schema that said it."""

    pointer: str
    keyword: str
    message: str


def to_strict(schema: object) -> tuple[dict[str, Any], list[Loss]]:
    """The schema in the strict subset, and what got lost on the way. The schema given is not changed.

    Raises `UnsatisfiableSchemaError` when nothing satisfies the schema, `SchemaTooComplexError` when it is over the
    limits of the subset whatever is left out.
    """
    return _Conversion(SchemaView(schema)).run()


def is_wrapped(root: SchemaView) -> bool:
    """Whether the strict form of the schema puts its values under `ROOT_PROPERTY`."""
    values = root.const_values
    return _meant_types(root) != _ONLY_OBJECT or (values is not None and len(values) > 1)


class _Conversion:
    """Turns views into strict schemas, by descent; what is referred to waits in ``pending`` for its own turn."""

    def __init__(self, root: SchemaView) -> None:
        self.root = root
        self.pointers = _pointers(root.schema)
        self.where = ""
        self.losses: dict[tuple[str, str], Loss] = {}
        self.names: dict[int, str] = {}
        self.referred: list[SchemaView] = []  # holds on to the schemas whose identities `names` has
        self.pending: list[tuple[str, SchemaView]] = []
        self.defining = ""
        self.inlined: list[int] = []
        self.enum_values = 0
        self.steps = 0
        self.root_is_wrapped = is_wrapped(root)

    def run(self) -> tuple[dict[str, Any], list[Loss]]:
        strict = self.wrapped_root() if self.root_is_wrapped else self.root_object(self.root)
        definitions: dict[str, Any] = {}
        while self.pending:
            self.defining, view = self.pending.pop()
            definition = self.value(view, 0, 0)
            definitions[self.defining] = _IMPOSSIBLE if definition is None else definition
        if strict is None:
            raise UnsatisfiableSchemaError("No value satisfies the schema", pointer="")
        if definitions:
            strict["$defs"] = {name: definitions[name] for name in self.names.values()}
        violations = check_strict(strict)
        if violations:
            raise SchemaTooComplexError(f"The strict form is over the limits: {violations[0].message}", pointer="")
        return strict, list(self.losses.values())

    def wrapped_root(self) -> dict[str, Any] | None:
        self.lose(self.root.schema, "type", f"The root is not one object: the value is under `{ROOT_PROPERTY}`")
        value = self.value(self.root, 1, 0)
        return None if value is None else _closed({ROOT_PROPERTY: value})

    def lose(self, part: object, keyword: str, message: str) -> None:
        pointer = self.pointers.get(id(part), self.where)
        self.losses.setdefault((pointer, keyword), Loss(pointer, keyword, message))

    # One value

    def value(self, view: SchemaView, depth: int, unions: int) -> dict[str, Any] | None:
        """The strict schema of a value that is ``depth`` steps inside; ``None`` when there can be no such value."""
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise SchemaTooComplexError("The strict form is too large: references are inlined too often", pointer="")
        if not view.types:
            return None
        reference = self.reference(view)
        if reference is not None:
            return reference
        where, inlined = self.where, [id(part) for part in view.parts]
        self.where = self.pointers.get(id(view.schema), where)
        self.inlined.extend(inlined)
        try:
            return self.inline(view, depth, unions)
        finally:
            self.where = where
            del self.inlined[len(self.inlined) - len(inlined) :]

    def reference(self, view: SchemaView) -> dict[str, Any] | None:
        """The schema as a reference: when it is nothing else, or when what it refers to is being inlined already."""
        text = view.reference
        target = None if text is None else view.resolve(text)
        if text is None or target is None or not isinstance(target.schema, dict):
            return None
        beside = _beside(view)
        if not beside:
            end = _end_of_chain(view)
            return None if end is None else self.refer(end, text)
        if id(target.schema) not in self.inlined:
            return None
        if not _ANNOTATIONS.issuperset(beside):
            return self.refer(view, text)
        for keyword in beside:
            self.lose(view.schema, keyword, "Nothing stands beside a reference")
        return self.refer(target, text)

    def refer(self, target: SchemaView, text: str) -> dict[str, Any]:
        if target is self.root and not self.root_is_wrapped:
            return {"$ref": "#"}
        name = self.names.get(id(target.schema))
        if name is None:
            name = self.names[id(target.schema)] = _fresh(text, self.names.values())
            self.referred.append(target)
            self.pending.append((name, target))
        return {"$ref": f"#/$defs/{name}"}

    def inline(self, view: SchemaView, depth: int, unions: int) -> dict[str, Any] | None:
        types = _meant_types(view)
        self.unsupported(view, types)
        if view.unions and unions < _DEEPEST_UNION:
            return self.union(view, depth, unions)
        if view.unions:
            self.lose(view.schema, "anyOf", f"Unions in unions are followed {_DEEPEST_UNION} deep")
        if view.const_values is not None:
            return self.enumeration(view, depth)
        return self.typed(view, types, depth)

    def unsupported(self, view: SchemaView, types: frozenset[str]) -> None:
        for part in view.parts:
            for keyword, value in part.items():
                kind = _UNSUPPORTED.get(keyword)
                if kind is not None:
                    if types & kind and not _is_idle(keyword, value, part):
                        self.lose(part, keyword, f"`{keyword}` is not in the strict subset")
                elif keyword == "default" and value is not None:
                    self.lose(part, keyword, "A default is not filled in: null stands where it would be used")

    # Unions

    def union(self, view: SchemaView, depth: int, unions: int) -> dict[str, Any] | None:
        branches: list[dict[str, Any]] = []
        for alternative in view.alternatives:
            if alternative.reference is not None and alternative.resolve(alternative.reference) is view:
                continue  # a union with itself
            branch = self.value(alternative, depth, unions + 1)
            if branch is not None and not (depth == 0 and branch == {"$ref": f"#/$defs/{self.defining}"}):
                branches.extend(_branches(branch))
        branches = _distinct(branches)
        self.check_exclusive(view)
        if view.schema.get("nullable") is True and not any(map(_allows_null, branches)):
            branches.append({"type": "null"})
        if not branches:
            return None
        notes = _notes(view)
        if len(branches) == 1:
            only = branches[0]
            return {**notes, **only} if "$ref" not in only or not notes else {**notes, "anyOf": branches}
        return {**notes, "anyOf": branches}

    def check_exclusive(self, view: SchemaView) -> None:
        for part in view.parts:
            branches = part.get("oneOf")
            if isinstance(branches, list) and not _are_disjoint([view.view_of(branch) for branch in branches]):
                self.lose(part, "oneOf", "Written as `anyOf`: more than one branch may hold")

    # Values that are listed

    def enumeration(self, view: SchemaView, depth: int) -> dict[str, Any] | None:
        values = [value for value in view.const_values or () if permits(view, value)]
        scalars = [value for value in values if not isinstance(value, (dict, list, tuple))]
        branches = [self.listed(view, scalars)] if scalars else []
        for value in values:
            if isinstance(value, (dict, list, tuple)):
                branch = self.value(SchemaView(_schema_of(value)), depth, 0)
                if branch is not None:
                    branches.append(branch)
        if not branches:
            return None
        notes = _notes(view)
        return {**notes, **branches[0]} if len(branches) == 1 else {**notes, "anyOf": branches}

    def listed(self, view: SchemaView, values: list[Any]) -> dict[str, Any]:
        types = _names(frozenset(map(type_of, values)))
        kind: dict[str, Any] = {"type": types[0] if len(types) == 1 else types}
        if any(isinstance(value, str) for value in values):
            kind.update(self.string_form(view))
        if values == [None]:
            return kind
        if len(values) == 1 and "const" in view.parts[0]:
            return {**kind, "const": values[0]}
        characters = sum(len(value) for value in values if isinstance(value, str))
        size = len(values) + 1  # null may have to join them
        if self.enum_values + size > MOST_ENUM_VALUES:
            self.lose(view.schema, "enum", f"More than {MOST_ENUM_VALUES} enum values in the whole schema")
            return kind
        if size > LARGE_ENUM and characters > MOST_LARGE_ENUM_CHARACTERS:
            self.lose(view.schema, "enum", f"More than {MOST_LARGE_ENUM_CHARACTERS} characters in one enum")
            return kind
        self.enum_values += size
        return {**kind, "enum": values}

    # Values that are typed

    def typed(self, view: SchemaView, types: frozenset[str], depth: int) -> dict[str, Any] | None:
        if types == ANY_TYPE:
            self.lose(view.schema, "type", "Any value: objects and arrays of any kind are not in the strict subset")
            return {**_notes(view), "type": list(_SCALARS)}
        if types & {"object", "array"} and depth >= DEEPEST_NESTING:
            return self.refer(view, "nested")
        strict: dict[str, Any] = {}
        if "string" in types:
            strict.update(self.string_form(view))
        if types & {"integer", "number"}:
            strict.update(self.number_form(view))
        kept = set(types)
        if "array" in types:
            strict.update(self.array_form(view, depth))
        if "object" in types:
            members = self.object_form(view, depth)
            if members is None:
                kept.discard("object")
            else:
                strict.update(members)
        names = _names(frozenset(kept))
        if not names:
            return None
        return {**_notes(view), "type": names[0] if len(names) == 1 else names, **strict}

    def string_form(self, view: SchemaView) -> Iterator[tuple[str, Any]]:
        pattern = format_ = None
        for part in view.parts:
            found = part.get("pattern")
            if isinstance(found, str):
                if pattern not in (None, found):
                    self.lose(part, "pattern", "A second pattern of the same string")
                pattern = pattern or found
            found = part.get("format")
            if isinstance(found, str):
                if found not in FORMATS:
                    self.lose(part, "format", f"The format {found!r} is not in the strict subset")
                elif format_ not in (None, found):
                    self.lose(part, "format", "A second format of the same string")
                else:
                    format_ = found
        if pattern is not None:
            yield "pattern", pattern
        if format_ is not None:
            yield "format", format_

    def number_form(self, view: SchemaView) -> Iterator[tuple[str, Any]]:
        bounds: dict[str, Any] = {}
        for part in view.parts:
            for keyword, value in _number_bounds(part):
                if keyword == "multipleOf":
                    if bounds.setdefault(keyword, value) != value:
                        self.lose(part, keyword, "A second `multipleOf` of the same number")
                else:
                    narrower = max if keyword in ("minimum", "exclusiveMinimum") else min
                    bounds[keyword] = narrower(bounds.get(keyword, value), value)
        yield from bounds.items()

    def array_form(self, view: SchemaView, depth: int) -> Iterator[tuple[str, Any]]:
        lowest = max([count for part in view.parts if (count := _count(part.get("minItems"))) is not None], default=0)
        limits = [count for part in view.parts if (count := _count(part.get("maxItems"))) is not None]
        members = list(view.prefix_items)
        if any(map(_closes_items, view.parts)):
            limits.append(len(members))
        elif view.items is not None:
            members.append(view.items)
        elif not members and 0 not in limits:
            self.lose(view.schema, "items", "Elements of any kind: objects and arrays are not among them")
        written = [self.value(member, depth + 1, 0) for member in members]
        branches = _distinct([branch for member in written if member is not None for branch in _branches(member)])
        if members and not branches:
            limits.append(0)
        if view.prefix_items and len(branches) > 1:
            self.lose(view.schema, "prefixItems", "Which element comes where: each may be any of them")
        yield (
            "items",
            {"type": list(_SCALARS)} if not branches else branches[0] if len(branches) == 1 else {"anyOf": branches},
        )
        if lowest:
            yield "minItems", lowest
        if limits:
            yield "maxItems", min(limits)

    # Objects

    def object_form(self, view: SchemaView, depth: int) -> dict[str, Any] | None:
        names = [*view.properties, *sorted(view.required - view.properties.keys())]
        return self.members(view, names, view.required, depth)

    def root_object(self, view: SchemaView) -> dict[str, Any] | None:
        """The root cannot be a union: the properties of all branches are put together."""
        if view.const_values:
            return self.value(SchemaView(_schema_of(view.const_values[0])), 0, 0)
        self.unsupported(view, _ONLY_OBJECT)
        self.inlined = [id(part) for part in view.parts]
        names = view.member_names
        required = set(view.required)
        for branches in view.unions:
            required |= frozenset.intersection(*(branch.required for branch in branches))
            self.lose(view.schema, "anyOf", "The root of a strict schema is no union: any of the properties may stand")
        names = [*names, *sorted(required.difference(names))]
        members = self.members(view, names, frozenset(required), 0)
        return None if members is None else {**_notes(view), "type": "object", **members}

    def members(
        self, view: SchemaView, names: list[str], required: frozenset[str], depth: int
    ) -> dict[str, Any] | None:
        self.check_open(view, bool(names))
        properties: dict[str, Any] = {}
        for name in names:
            member = view.member(name) or SchemaView(True)
            value = self.value(member, depth + 1, 0)
            if value is None and name in required:
                return None
            if value is not None:
                properties[name] = value if name in required else _nullable(value, member)
        return {"properties": properties, "required": list(properties), "additionalProperties": False}

    def check_open(self, view: SchemaView, has_properties: bool) -> None:
        """Report what closing an object takes away: that it may have more properties, where that was asked for."""
        if view.is_closed and view.additional is None:
            return
        for part in view.parts:
            for keyword in ("additionalProperties", "unevaluatedProperties", "patternProperties"):
                said = part.get(keyword)
                if said or (isinstance(said, dict) and keyword != "patternProperties"):
                    self.lose(part, keyword, "Properties that are not listed by name")
                    return
        if not has_properties:
            self.lose(view.schema, "properties", "Properties that are not listed by name")


# A reference to what turns out to be satisfied by nothing: no array has at least one and at most no element.
_IMPOSSIBLE: dict[str, Any] = {"type": "array", "items": {"type": "null"}, "minItems": 1, "maxItems": 0}


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _meant_types(view: SchemaView) -> frozenset[str]:
    """The types of a value; a schema without ``type`` means that of its keywords."""
    if view.types != ANY_TYPE:
        return view.types
    for name, keywords in _MEANT:
        if any(not keywords.isdisjoint(part) for part in view.parts):
            return frozenset({"integer", "number"} if name == "number" else {name})
    if view.unions and all(_meant_types_of_parts(branch) == _ONLY_OBJECT for branch in view.unions[0]):
        return _ONLY_OBJECT
    return ANY_TYPE


def _meant_types_of_parts(view: SchemaView) -> frozenset[str]:
    if view.types == ANY_TYPE and any(not _MEANT[0][1].isdisjoint(part) for part in view.parts):
        return _ONLY_OBJECT
    return view.types


def _names(types: frozenset[str]) -> list[str]:
    """Types as a schema spells them: ``number`` includes ``integer``."""
    if "number" in types:
        types -= {"integer"}
    return [name for name in ("string", "number", "integer", "boolean", "array", "object", "null") if name in types]


def _notes(view: SchemaView) -> dict[str, Any]:
    notes = ((keyword, view.annotation(keyword)) for keyword in ("title", "description"))
    return {keyword: text for keyword, text in notes if isinstance(text, str)}


def _beside(view: SchemaView) -> list[str]:
    """The keywords beside a reference that say something about the value or to the reader."""
    return [key for key in view.schema if key != "$ref" and key not in DEFINITIONS and not key.startswith("$")]


def _end_of_chain(view: SchemaView) -> SchemaView | None:
    """What a reference to a reference ... points at in the end, ``None`` when that is itself."""
    seen: set[int] = set()
    while view.reference is not None and not _beside(view):
        target = view.resolve(view.reference)
        if target is None or not isinstance(target.schema, dict):
            return view
        if id(target) in seen:
            return None
        seen.add(id(target))
        view = target
    return view


def _fresh(text: str, taken: Iterable[str]) -> str:
    """A name for a definition, after the reference to it."""
    base = re.sub(r"[^\w.-]+", "_", unquote(text).rsplit("/", 1)[-1].lstrip("#"), flags=re.ASCII) or "definition"
    known = set(taken)
    name, number = base, 2
    while name in known:
        name, number = f"{base}{number}", number + 1
    return name


def _is_idle(keyword: str, value: object, part: dict[str, Any]) -> bool:
    """Whether the keyword, with this value, permits everything."""
    if keyword == "if":
        return "then" not in part and "else" not in part
    return (value in _IDLE.get(keyword, ()) and type(value) is not bool) or value is _IDLE_FLAG.get(keyword)


_IDLE: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("minLength", "minProperties"), (0,)),
    **dict.fromkeys(("propertyNames", "dependencies", "dependentRequired", "dependentSchemas"), ({},)),
}
_IDLE_FLAG = {"not": False, "uniqueItems": False, "propertyNames": True}


def _branches(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return schema["anyOf"] if set(schema) == {"anyOf"} else [schema]


def _distinct(branches: list[dict[str, Any]]) -> list[dict[str, Any]]:
    seen: set[str] = set()
    kept = []
    for branch in branches:
        key = json.dumps(branch, default=repr)
        if key not in seen:
            seen.add(key)
            kept.append(branch)
    return kept


def _allows_null(schema: dict[str, Any]) -> bool:
    named = schema.get("type")
    return named == "null" or (isinstance(named, list) and "null" in named)


def _nullable(schema: dict[str, Any], view: SchemaView) -> dict[str, Any]:
    """The schema of a value that may be null instead of absent."""
    if view.allows_null or _allows_null(schema) or any(map(_allows_null, schema.get("anyOf", ()))):
        return schema
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    named = schema["type"]
    nullable = {**schema, "type": [*(named if isinstance(named, list) else [named]), "null"]}
    if "const" in nullable:
        nullable["enum"] = [nullable.pop("const"), None]
    elif "enum" in nullable:
        nullable["enum"] = [*nullable["enum"], None]
    return nullable


def _are_disjoint(branches: list[SchemaView]) -> bool:
    """Whether no value satisfies two of the branches, as far as types, enum, const and such properties tell."""
    if len(branches) > 64:
        return False
    return all(
        _pair_is_disjoint(left, right) for position, left in enumerate(branches) for right in branches[position + 1 :]
    )


def _pair_is_disjoint(left: SchemaView, right: SchemaView) -> bool:
    if not (left.types & right.types):
        return True
    if left.const_values is not None and right.const_values is not None:
        return not any(same_value(a, b) for a in left.const_values for b in right.const_values)
    if left.types == right.types == _ONLY_OBJECT:
        return any(
            _pair_is_disjoint(left.properties[name], right.properties[name])
            for name in left.required & right.required
            if name in left.properties and name in right.properties
            if left.properties[name].const_values is not None and right.properties[name].const_values is not None
        )
    return False


def _schema_of(value: Any, depth: int = 0) -> dict[str, Any]:
    """A schema that one value satisfies."""
    if depth > _DEEPEST_VALUE:
        raise SchemaTooComplexError(f"A value in enum or const is nested deeper than {_DEEPEST_VALUE}")
    if isinstance(value, dict):
        return _closed({str(name): _schema_of(member, depth + 1) for name, member in value.items()})
    if isinstance(value, (list, tuple)):
        members = [_schema_of(member, depth + 1) for member in value]
        return {"type": "array", "prefixItems": members, "minItems": len(value), "maxItems": len(value)}
    return {"const": value}


def _number_bounds(part: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for keyword in ("multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        value = part.get(keyword)
        if value is True and keyword.startswith("exclusive"):  # as drafts before 6 have it
            value = part.get("minimum" if keyword == "exclusiveMinimum" else "maximum")
        if isinstance(value, (int, float)) and not isinstance(value, bool) and (value > 0 or keyword != "multipleOf"):
            yield keyword, value


def _count(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _closes_items(part: dict[str, Any]) -> bool:
    if isinstance(part.get("items"), list):
        return part.get("additionalItems") is False
    return part.get("items") is False


def _pointers(root: object) -> dict[int, str]:
    """Where each schema stands in the document; of one that stands in several places, the first."""
    pointers = {id(root): ""}
    pending: list[tuple[object, str]] = [(root, "")]
    while pending and len(pointers) < _MOST_STEPS:
        node, pointer = pending.pop()
        inside: Iterable[tuple[Any, Any]] = ()
        if isinstance(node, dict):
            inside = node.items()
        elif isinstance(node, list):
            inside = enumerate(node)
        for key, value in inside:
            if isinstance(value, (dict, list)) and id(value) not in pointers and len(pointer) < 4096:
                pointers[id(value)] = f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}"
                pending.append((value, pointers[id(value)]))
    return pointers
