"""Tools and JSON Schemas as TypeScript, the way gpt-oss was taught to read them.

The layout is that of the harmony format: a namespace of ``type NAME = (_: {...}) => any;`` with descriptions as ``//``
comments above. On schemas of objects, arrays, strings, numbers, booleans and enums of strings it is what openai-harmony
writes, to the byte. Where the package writes ``any`` or breaks the syntax this module says what the schema says: every
kind of union, references (inlined, but a type that contains itself is declared by name), ``const``, enums of any type,
maps, tuples, parentheses, quotes, and comments that end where they should.

``compat=True`` gives the text of openai-harmony 0.0.8 whatever the schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from isogloss.schema import typescript_compat
from isogloss.schema.view import ANY_TYPE, SchemaView, shared_view


class DescribedTool(Protocol):
    """What a namespace needs to know of a tool. No parameters: it takes none."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> dict[str, Any] | None: ...


def namespace(name: str, description: str | None, tools: Iterable[DescribedTool], *, compat: bool = False) -> str:
    """The section of a prompt that tells of the tools ``name.*``: from ``## name`` to ``} // namespace name``."""
    tools = tuple(tools)
    said = (_compat_lines if compat else _lines)(description or "")
    if not tools:
        return "\n".join([f"## {name}", "", *said])
    text = [f"## {name}\n\n", *_comment(said), f"namespace {name} {{\n\n"]
    declarations = _Declarations(tool.name for tool in tools)
    written = [_compat_tool(tool) if compat else _tool(tool, declarations) for tool in tools]
    text += [f"{declaration}\n\n" for declaration in declarations.texts]
    text += [f"{tool}\n\n" for tool in written]
    return "".join(text) + f"}} // namespace {name}"


def type_text(schema: object, *, compat: bool = False) -> str:
    """The type that a schema stands for; declarations that it needs stand in front of it."""
    if compat:
        return typescript_compat.type_text(schema)
    declarations = _Declarations(())
    view = SchemaView(schema)
    text = _Writer(view, declarations).top(view)
    return "".join([f"{declaration}\n\n" for declaration in declarations.texts]) + text


def _comment(lines: Iterable[str], indent: str = "") -> list[str]:
    return [f"{indent}// {line}\n" for line in lines]


def _lines(text: str) -> list[str]:
    """The lines of a text, at every character that ends a line anywhere."""
    return text.splitlines()


def _compat_lines(text: str) -> list[str]:
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [
        line.removesuffix("\r") if position + 1 < len(lines) or text.endswith("\n") else line
        for position, line in enumerate(lines)
    ]


def _compat_tool(tool: DescribedTool) -> str:
    parameters = "" if tool.parameters is None else f"_: {typescript_compat.type_text(tool.parameters)}"
    return "".join(_comment(_compat_lines(tool.description))) + f"type {tool.name} = ({parameters}) => any;"


def _tool(tool: DescribedTool, declarations: _Declarations) -> str:
    comment = "".join(_comment(_lines(tool.description)))
    return f"{comment}type {tool.name} = ({_parameters(tool, declarations)}) => any;"


def _parameters(tool: DescribedTool, declarations: _Declarations) -> str:
    if tool.parameters is None:
        return ""
    if _is_plain_object(tool.parameters, 0) and "description" not in tool.parameters:
        return f"_: {typescript_compat.type_text(tool.parameters)}"
    view = shared_view(tool.parameters)
    if view.types == _ONLY_OBJECT and not view.unions and not view.properties and view.additional is None:
        return ""
    return f"_: {_Writer(view, declarations).top(view, said=tool.description)}"


_ONLY_OBJECT = frozenset({"object"})

# Most tools have parameters that openai-harmony writes right. Its rules need no view of the schema, which makes them
# ten times faster.

_PLAIN_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array"})
_NOT_PLAIN = frozenset(
    {
        *("$ref", "$dynamicRef", "$recursiveRef", "anyOf", "oneOf", "allOf", "const", "nullable"),
        *("prefixItems", "additionalItems", "unevaluatedItems", "patternProperties", "unevaluatedProperties"),
    }
)
_PLAIN_WORDS = re.compile(r"[^\"\\\x00-\x1f\x7f-\x9f\u2028\u2029]+\Z")


def _is_plain_object(schema: object, depth: int) -> bool:
    """Whether openai-harmony writes the object and all that is in it as this module does."""
    if not isinstance(schema, dict) or schema.get("type") != "object" or not _NOT_PLAIN.isdisjoint(schema):
        return False
    properties = schema.get("properties")
    return (
        isinstance(properties, dict)
        and len(properties) > 0
        and depth < _DEEPEST // 2
        and not isinstance(schema.get("additionalProperties"), dict)
        and not ("enum" in schema or "default" in schema)
        and all(isinstance(name, str) and _IDENTIFIER.match(name) for name in properties)
        and all(_is_plain(member, depth + 1) for member in properties.values())
    )


def _is_plain(schema: object, depth: int) -> bool:
    if not isinstance(schema, dict) or not _NOT_PLAIN.isdisjoint(schema):
        return False
    kind = schema.get("type")
    if not isinstance(kind, str) or kind not in _PLAIN_TYPES or not _are_plain_notes(schema):
        return False
    if kind == "object":
        return "description" not in schema and _is_plain_object(schema, depth)
    if "enum" in schema:
        return kind == "string" and _are_plain_words(schema["enum"])
    if kind == "array" and "items" in schema:
        items = schema["items"]
        return (
            isinstance(items, dict) and "enum" not in items and "default" not in items and _is_plain(items, depth + 1)
        )
    return True


def _are_plain_notes(schema: dict[str, Any]) -> bool:
    title, description, default = schema.get("title"), schema.get("description"), schema.get("default")
    return (
        (title is None or (isinstance(title, str) and _PLAIN_WORDS.match(title) is not None and title != description))
        and (description is None or (isinstance(description, str) and _LINE.match(description) is not None))
        and (default is None or isinstance(default, (bool, float)) or _is_plain_default(default))
        and ("examples" not in schema or _are_plain_words(schema["examples"]))
    )


_LINE = re.compile(r"[^\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+\Z")


def _is_plain_default(value: object) -> bool:
    if isinstance(value, str):
        return _PLAIN_WORDS.match(value) is not None
    return isinstance(value, int) and abs(value) < 2**63


def _are_plain_words(values: object) -> bool:
    if not isinstance(values, list) or not values or not all(isinstance(value, str) for value in values):
        return False
    return len(set(values)) == len(values) and all(_PLAIN_WORDS.match(value) is not None for value in values)


_DEEPEST = 48
_MOST_INLINED = 2_000
"""Schemas written out before the rest of the references become names."""

_MOST_WRITTEN = 20_000

_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*\Z")
_LINE_ENDS = re.compile(r"[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_SCALARS = {"string": "string", "number": "number", "boolean": "boolean", "null": "null"}
_ORDER = ("string", "number", "integer", "boolean", "array", "object", "null")
_ANNOTATIONS = frozenset({"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"})
_BESIDE_REFERENCE = _ANNOTATIONS | {"$ref", "$comment", "$defs", "definitions"}


class _Declarations:
    """The types of a namespace that have a name of their own."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.texts: list[str] = []
        self.taken = set(taken)
        self.known: dict[tuple[str, str], str] = {}

    def fresh(self, reference: str) -> str:
        """A name after the last step of a reference, which nothing else has."""
        words = re.sub(r"\W+", "_", reference.rstrip("/").rsplit("/", 1)[-1], flags=re.ASCII).strip("_")
        base = words if _IDENTIFIER.match(words) else f"Type{words}"
        name, number = base, 2
        while name in self.taken:
            name, number = f"{base}{number}", number + 1
        self.taken.add(name)
        return name


class _Text:
    """A type's text. ``is_union``: it needs parentheses before ``[]``."""

    __slots__ = ("is_union", "text")

    def __init__(self, text: str, is_union: bool = False) -> None:
        self.text = text
        self.is_union = is_union


_ANY = _Text("any")
_NEVER = _Text("never")


class _Writer:
    """Writes the types of one document."""

    def __init__(self, root: SchemaView, declarations: _Declarations) -> None:
        self.declarations = declarations
        self.recursive = _recursive(root)
        self.document = _definitions_text(root) if self.recursive else ""
        self.names: dict[int, str] = {}
        self.within: list[SchemaView] = []
        self.written = 0

    def top(self, view: SchemaView, *, said: str = "") -> str:
        """The type with its description in front, unless that was said already."""
        description = self.description(view)
        comment = "" if description == said else "".join(_comment(_lines(description or "")))
        return comment + self.type(view, "", 0).text

    def type(self, view: SchemaView, indent: str, depth: int) -> _Text:
        target = _target(view)
        if target is not None and (id(target) in self.recursive or self.written > _MOST_INLINED):
            return _Text(self.declared(target, view))
        too_much = depth > _DEEPEST or self.written > _MOST_WRITTEN
        if too_much or any(view is other for other in self.within):
            return _ANY
        self.written += 1
        self.within.append(view)
        text = self.inline(view, indent, depth)
        self.within.pop()
        return text

    def declared(self, target: SchemaView, reference: SchemaView) -> str:
        """The name of a type that is declared for the whole namespace; one document's types are declared once."""
        name = self.names.get(id(target))
        if name is not None:
            return name
        key = (_reference(reference) or "", self.document)
        name = self.names[id(target)] = self.declarations.known.get(key) or self.declarations.fresh(key[0])
        if key not in self.declarations.known:
            self.declarations.known[key] = name
            place = len(self.declarations.texts)
            self.declarations.texts.append("")
            within, self.within = self.within, []
            comment = "".join(_comment(_lines(_description(target) or "")))
            self.declarations.texts[place] = f"{comment}type {name} = {self.inline(target, '', 0).text};"
            self.within = within
        return name

    def inline(self, view: SchemaView, indent: str, depth: int) -> _Text:
        if not view.types:
            return _NEVER
        if view.const_values is not None:
            return _union([_literal(value) for value in view.const_values])
        if view.unions:
            variants = [self.type(variant, indent, depth + 1) for variant in view.alternatives]
            return _union([*variants, _Text("null")] if _adds_null(view) else variants)
        return _union([self.kind(view, name, indent, depth) for name in _kinds(view)])

    def kind(self, view: SchemaView, name: str, indent: str, depth: int) -> _Text:
        if name == "object":
            return self.object_type(view, indent, depth)
        if name == "array":
            return self.array_type(view, indent, depth)
        return _Text(_SCALARS.get(name, "any"))

    def array_type(self, view: SchemaView, indent: str, depth: int) -> _Text:
        rest = None if view.items is None else self.items_type(view.items, indent, depth)
        if view.prefix_items:
            members = [self.type(member, indent, depth + 1).text for member in view.prefix_items]
            return _Text(f"[{', '.join(members if rest is None else [*members, f'...{rest}'])}]")
        return _Text(rest or "Array<any>")

    def items_type(self, view: SchemaView, indent: str, depth: int) -> str:
        text = self.type(view, indent, depth + 1)
        if text.is_union:
            return f"({text.text})[]"
        is_object = text.text.startswith("{\n") and text.text.endswith("}")
        return (self.object_comment(view, indent) if is_object else "") + f"{text.text}[]"

    def object_comment(self, view: SchemaView, indent: str) -> str:
        return "".join(_comment(_lines(_description(view) or ""), indent))

    def object_type(self, view: SchemaView, indent: str, depth: int) -> _Text:
        if not view.properties and view.additional is None and len(_kinds(view)) > 1:
            return _Text("object")
        lines = ["{\n"]
        for name, member in view.properties.items():
            lines += self.property_lines(name, member, name in view.required, indent, depth)
        if view.additional is not None:
            lines += _comment(_lines(_description(view.additional) or ""), indent)
            lines.append(f"{indent}[key: string]: {self.type(view.additional, indent + '    ', depth + 1).text},\n")
        lines.append(f"{indent}}}")
        return _Text("".join(lines))

    # Properties

    def property_lines(self, name: str, view: SchemaView, is_required: bool, indent: str, depth: int) -> Iterator[str]:
        head = _property_name(name) + ("" if is_required else "?")
        title, description = _own(view).get("title"), self.description(view)
        variants = _listed_variants(view)
        said = _comment(_lines(description or ""), indent)
        if isinstance(title, str) and title != description:
            yield from _comment(_lines(title), indent)
            yield f"{indent}//\n"
        if variants is None:
            yield from said
        yield from _examples(view.annotation("examples"), indent)
        default = _default_note(view)
        if variants is None:
            text = self.type(view, indent + "    ", depth + 1).text
            yield f"{indent}{head}: {text},{f' // {default}' if default else ''}\n"
            return
        yield from said
        if default:
            yield f"{indent}// {default}\n"
        yield f"{indent}{head}:\n"
        for variant in variants:
            yield from self.variant_lines(variant, description, indent, depth)
        if _adds_null(view):
            yield f"{indent} | null\n"
        yield f"{indent},\n"

    def description(self, view: SchemaView) -> str | None:
        """What is said of a schema where it stands; that of a declared type stands with its declaration."""
        target = _target(view)
        if target is None or id(target) not in self.recursive:
            return _description(view)
        description = _own(view).get("description")
        return description if isinstance(description, str) else None

    def variant_lines(self, variant: SchemaView, said: str | None, indent: str, depth: int) -> Iterator[str]:
        text = self.type(variant, indent + "   ", depth + 1).text
        description = _description(variant)
        notes = [note for note in (description if description != said else None, _default_note(variant)) if note]
        lines = _lines(" ".join(notes))
        yield f"{indent} | {text}{f' // {lines[0]}' if lines else ''}\n"
        yield from _comment(lines[1:], indent + "   ")


def _own(view: SchemaView) -> dict[str, Any]:
    return view.schema if isinstance(view.schema, dict) else {}


def _adds_null(view: SchemaView) -> bool:
    return _own(view).get("nullable") is True


def _reference(view: SchemaView) -> str | None:
    """The reference that a schema is, if it says nothing else about the value; ``allOf`` with one is one, too."""
    own = _own(view)
    members = own.get("allOf")
    if isinstance(members, list) and len(members) == 1 and (_BESIDE_REFERENCE | {"allOf"}).issuperset(own):
        own = members[0] if isinstance(members[0], dict) else {}
    reference = own.get("$ref")
    return reference if isinstance(reference, str) and _BESIDE_REFERENCE.issuperset(own) else None


def _target(view: SchemaView) -> SchemaView | None:
    reference = _reference(view)
    return None if reference is None else view.resolve(reference)


def _description(view: SchemaView) -> str | None:
    description = view.annotation("description")
    return description if isinstance(description, str) else None


def _listed_variants(view: SchemaView) -> tuple[SchemaView, ...] | None:
    """The variants of a union that is written one a line: ``oneOf``, and those with something said of a variant."""
    if not view.unions:
        return None
    is_said = any(not _SAID.isdisjoint(_own(variant)) for variant in view.alternatives)
    return view.alternatives if is_said or isinstance(_own(view).get("oneOf"), list) else None


_SAID = frozenset({"description", "default"})


def _kinds(view: SchemaView) -> list[str]:
    """The types as TypeScript has them, in the order of the schema."""
    if view.types == ANY_TYPE:
        return _implied(view)
    listed: list[object] = next((part["type"] for part in view.parts if isinstance(part.get("type"), list)), [])
    names = [name for name in (*listed, *_ORDER) if isinstance(name, str) and name in view.types]
    return list(dict.fromkeys(["number" if name == "integer" else name for name in names]))


def _implied(view: SchemaView) -> list[str]:
    """The type that a schema without one means by its properties or items."""
    if view.properties:
        return ["object"]
    return ["array"] if view.items is not None or view.prefix_items else ["any"]


def _union(members: list[_Text]) -> _Text:
    texts = list(dict.fromkeys([member.text for member in members]))
    if "any" in texts:
        return _ANY
    if len(texts) > 1 and "never" in texts:
        texts.remove("never")
    if not texts:
        return _NEVER
    return _Text(" | ".join(texts), len(texts) > 1 or any(member.is_union for member in members))


def _quoted(value: object) -> str:
    """JSON text on one line, whatever a reader takes for the end of a line."""
    text = typescript_compat.json_text(value, exact=True)
    return _LINE_ENDS.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def _literal(value: Any) -> _Text:
    if isinstance(value, dict):
        inner = ", ".join([f"{_property_name(str(name))}: {_literal(member).text}" for name, member in value.items()])
        return _Text(f"{{ {inner} }}" if inner else "{}")
    if isinstance(value, (list, tuple)):
        return _Text("[" + ", ".join([_literal(member).text for member in value]) + "]")
    return _Text(_quoted(value))


def _property_name(name: str) -> str:
    return name if _IDENTIFIER.match(name) else _quoted(name)


def _default_note(view: SchemaView) -> str | None:
    own = _own(view)
    if "default" not in own:
        return None
    value = own["default"]
    is_bare = isinstance(value, str) and view.const_values is not None and len(_lines(value)) == 1
    return f"default: {value if is_bare else _quoted(value)}"


def _examples(examples: object, indent: str) -> Iterator[str]:
    if isinstance(examples, list) and examples:
        yield f"{indent}// Examples:\n"
        yield from (f"{indent}// - {_quoted(example)}\n" for example in examples)


def _recursive(root: SchemaView) -> set[int]:
    """The schemas that a reference inside of them points at: declared, they leave no circle in the rest."""
    found: set[int] = set()
    open_views: set[int] = {id(root)}
    seen: set[int] = {id(root)}
    stack = [(root, _inside(root))]
    while stack:
        view, inside = stack[-1]
        for inner in inside:
            if id(inner) in open_views:
                found.add(id(inner))
            elif id(inner) not in seen:
                seen.add(id(inner))
                open_views.add(id(inner))
                stack.append((inner, _inside(inner)))
                break
        else:
            stack.pop()
            open_views.discard(id(view))
    return found


def _inside(view: SchemaView) -> Iterator[SchemaView]:
    target = _target(view)
    if target is not None:
        yield target
        return
    for part in view.parts:
        for keyword in ("properties", "patternProperties"):
            if isinstance(part.get(keyword), dict):
                yield from map(view.view_of, part[keyword].values())
        for keyword in ("anyOf", "oneOf", "prefixItems", "items"):
            if isinstance(part.get(keyword), list):
                yield from map(view.view_of, part[keyword])
        for keyword in ("items", "additionalProperties"):
            if isinstance(part.get(keyword), dict):
                yield view.view_of(part[keyword])


def _definitions_text(root: SchemaView) -> str:
    """What tells one document's definitions from another's."""
    own = _own(root)
    try:
        return json.dumps([own.get(keyword) for keyword in ("$defs", "definitions")], default=repr)
    except (RecursionError, ValueError):
        return f"document {id(root)}"
