"""Docstrings as Markdown, with the names of public things as links to their places; values with their signatures."""

from __future__ import annotations

import inspect
import re
from typing import Any

import griffe
from markup import from_docstring

import isogloss
import isogloss.constraints
import isogloss.engines
import isogloss.schema

LINKED = {
    name: f"{package.__name__}.{name}"
    for package in (isogloss.schema, isogloss.engines, isogloss.constraints, isogloss)
    for name in package.__all__
    if not inspect.ismodule(getattr(package, name))
}
"""Names that stand alone in a docstring, and where they lead."""
VALUES = ("Struct", "NamedTuple", "_Event", "Piece")
"""What classes of values inherit from."""
NAME = re.compile(r"(?<![`\[])`(?P<name>\w+)`(?![`\]])")


class Docstrings(griffe.Extension):
    """Changes the docstrings of a package once it is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = _with_links(from_docstring(obj.docstring.value), obj.path)

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """A value (a struct, a named tuple) shows its fields in its signature; those without a docstring only there."""
        if not any(str(base).endswith(VALUES) for base in cls.bases):
            return
        is_keyword = "kw_only=True" in "".join(cls.lines[:1])
        kind = griffe.ParameterKind.keyword_only if is_keyword else griffe.ParameterKind.positional_or_keyword
        parameters = griffe.Parameters(griffe.Parameter("self"))
        for name, field in list(cls.attributes.items()):
            if field.annotation is None or "property" in field.labels or name.startswith("_"):
                continue
            parameters.add(griffe.Parameter(name, annotation=field.annotation, kind=kind, default=field.value))
            if field.docstring is None:
                cls.del_member(name)
        if len(parameters) > 1 and "__init__" not in cls.members:
            cls.set_member("__init__", griffe.Function("__init__", parameters=parameters))


def _with_links(text: str, path: str) -> str:
    def link(match: re.Match[str]) -> str:
        name = match["name"]
        target = LINKED.get(name)
        return match[0] if target is None or path.endswith(f".{name}") else f"[`{name}`][{target}]"

    # Indented blocks are code.
    return "\n".join(line if line.startswith("    ") else NAME.sub(link, line) for line in text.split("\n"))
