"""JSON Schema as TypeScript, byte for byte as openai-harmony 0.0.8 writes it, faults included.

It looks at ``oneOf`` and ``type`` and at nothing else: no references, no other unions, no ``const``. It escapes
nothing, and prints the description of a nested object twice. `isogloss.schema.typescript` is what is right.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import isfinite
from typing import Any

DEEPEST = 128
"""Schemas nested deeper than this are written as ``any``; the package refuses them."""

_SIMPLE = {"number": "number", "integer": "number", "boolean": "boolean"}


def type_text(schema: object, indent: str = "", depth: int = 0) -> str:
    """The type that a schema stands for, its first line not indented."""
    if not isinstance(schema, dict) or depth > DEEPEST:
        return "any"
    variants = schema.get("oneOf")
    if isinstance(variants, list):
        return "".join([f"\n{indent} | {_variant(variant, indent, depth, bare=False)}" for variant in variants])
    named = schema.get("type")
    if isinstance(named, list):
        words = [("number" if word == "integer" else word) for word in named if isinstance(word, str)]
        return " | ".join(words) or "any"
    if named == "object":
        return _object(schema, indent, depth)
    if named == "array":
        items = schema.get("items")
        return "Array<any>" if items is None and "items" not in schema else f"{type_text(items, indent, depth + 1)}[]"
    if named == "string":
        return _string(schema)
    return _SIMPLE.get(named, "any") if isinstance(named, str) else "any"


def _string(schema: dict[str, Any]) -> str:
    values = schema.get("enum")
    words = [f'"{value}"' for value in values if isinstance(value, str)] if isinstance(values, list) else []
    return " | ".join(words) or "string"


def _object(schema: dict[str, Any], indent: str, depth: int) -> str:
    lines: list[str] = []
    description = schema.get("description")
    if isinstance(description, str):
        lines.append(f"{indent}// {description}\n")
    lines.append("{\n")
    properties = schema.get("properties")
    required = schema.get("required")
    names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    known = set(names)
    for name, member in (properties if isinstance(properties, dict) else {}).items():
        lines.extend(_property(name, member, name in known, indent, depth))
    lines.append(f"{indent}}}")
    return "".join(lines)


def _property(name: str, schema: object, is_required: bool, indent: str, depth: int) -> Iterator[str]:
    mark = "" if is_required else "?"
    member = schema if isinstance(schema, dict) else {}
    title, description = member.get("title"), member.get("description")
    variants = member.get("oneOf")
    if isinstance(title, str):
        yield f"{indent}// {title}\n{indent}//\n"
    if isinstance(description, str) and not isinstance(variants, list):
        yield f"{indent}// {description}\n"
    examples = member.get("examples")
    if isinstance(examples, list) and examples:
        yield f"{indent}// Examples:\n"
        yield from (f'{indent}// - "{example}"\n' for example in examples if isinstance(example, str))
    if isinstance(variants, list):
        yield from _union_property(f"{name}{mark}", member, variants, indent, depth)
        return
    text = _nullable(type_text(schema, indent + "    ", depth + 1), member)
    default = f" // default: {_default(member)}" if "default" in member else ""
    yield f"{indent}{name}{mark}: {text},{default}\n"


def _union_property(head: str, schema: dict[str, Any], variants: list[Any], indent: str, depth: int) -> Iterator[str]:
    description = schema.get("description")
    first = variants[0].get("description") if variants and isinstance(variants[0], dict) else None
    if isinstance(description, str) and description != first:
        yield f"{indent}// {description}\n"
    if "default" in schema:
        yield f"{indent}// default: {_default(schema)}\n"
    yield f"{indent}{head}:\n"
    for position, variant in enumerate(variants):
        hidden = isinstance(description, str) and (position == 0 or _description(variant) == description)
        yield f"{indent} | {_variant(variant, indent, depth, hides_description=hidden)}\n"
    yield f"{indent},\n"


def _variant(variant: object, indent: str, depth: int, *, bare: bool = True, hides_description: bool = False) -> str:
    text = type_text(variant, indent + "   ", depth + 1)
    if not isinstance(variant, dict):
        return text
    text = _nullable(text, variant)
    notes = []
    description = _description(variant)
    if description is not None and not hides_description:
        notes.append(description)
    if "default" in variant:
        notes.append(f"default: {_default(variant, bare=bare)}")
    return f"{text} // {' '.join(notes)}" if notes else text


def _nullable(text: str, schema: dict[str, Any]) -> str:
    return f"{text} | null" if schema.get("nullable") is True and "null" not in text else text


def _description(schema: object) -> str | None:
    description = schema.get("description") if isinstance(schema, dict) else None
    return description if isinstance(description, str) else None


def _default(schema: dict[str, Any], *, bare: bool = True) -> str:
    """The default of an enum stands without quotes, but not in a union outside of properties."""
    value = schema["default"]
    if not isinstance(value, str):
        return json_text(value)
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return value if bare else json_text(value)
    return f'"{value}"'


def json_text(value: object, *, exact: bool = False) -> str:
    """JSON text as serde_json has it: exponents bare, and, unless ``exact``, whole numbers beyond 64 bits as floats."""
    if isinstance(value, dict):
        members = [f"{json_text(str(name))}:{json_text(member, exact=exact)}" for name, member in value.items()]
        return "{" + ",".join(members) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([json_text(member, exact=exact) for member in value]) + "]"
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int) and (exact or -(2**63) <= value < 2**64):
        return str(value)
    return _float(float(value)) if isinstance(value, (int, float)) else "null"


def _float(value: float) -> str:
    text = repr(value)
    mantissa, mark, exponent = text.partition("e")
    if not mark:
        return text if isfinite(value) else "null"
    if exponent == "-05":
        digits = mantissa.lstrip("-").replace(".", "")
        return f"{'-' if value < 0 else ''}0.0000{digits}"
    return f"{mantissa}e{int(exponent)}"
