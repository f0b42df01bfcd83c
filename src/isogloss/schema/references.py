"""What the references of a JSON Schema point at, inside one document.

JSON pointers (``#/$defs/a``, through arrays too), the document itself (``#``), anchors (``#name``) and the text of an
``$id`` are found. A reference to anything else is a missing one: nothing is ever fetched.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from isogloss.errors import SchemaTooComplexError

MISSING = object()
"""What a reference to nothing points at (a schema may be ``False``, a value ``None``)."""


class References:
    """Resolves the references in the document ``root``. Total: whatever the text, an answer or `MISSING`."""

    __slots__ = ("_names", "root")

    def __init__(self, root: object) -> None:
        self.root = root
        self._names: dict[str, Any] | None = None

    def resolve(self, reference: str) -> Any:
        """What ``reference`` points at, or `MISSING`."""
        if reference in ("", "#"):
            return self.root
        if reference.startswith("#/"):
            return _follow(self.root, reference[2:])
        if self._names is None:
            self._names = dict(_named(self.root))
        base, _, fragment = reference.partition("#")
        if fragment and not fragment.startswith("/"):
            return self._names.get("#" + unquote(fragment), MISSING)
        resource = self._names.get(base, MISSING)
        return _follow(resource, fragment[1:]) if fragment else resource


def standalone(schema: Any, root: Any) -> Any:
    """A schema of the document ``root`` as a document of its own: its references point into its ``$defs``.

    Raises `SchemaTooComplexError` for what is nested too deeply to be copied.
    """
    try:
        if schema is root or not _refers(schema):
            return schema
        return {**_redirected(schema), "$defs": {_DOCUMENT: _redirected(root)}}
    except RecursionError:
        raise SchemaTooComplexError("The schema is nested too deeply") from None


_DOCUMENT = "document"


def _refers(schema: Any) -> bool:
    if isinstance(schema, dict):
        return any(key in ("$ref", "$dynamicRef", "$recursiveRef") or _refers(value) for key, value in schema.items())
    return isinstance(schema, list) and any(map(_refers, schema))


def _redirected(node: Any) -> Any:
    if isinstance(node, list):
        return [_redirected(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: f"#/$defs/{_DOCUMENT}{value[1:]}"
        if key == "$ref" and isinstance(value, str) and (value == "#" or value.startswith("#/"))
        else _redirected(value)
        for key, value in node.items()
    }


def _follow(node: Any, pointer: str) -> Any:
    tokens = unquote(pointer).split("/")
    for position, token in enumerate(tokens):
        token = token.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and token in node:
            node = node[token]
        elif isinstance(node, list) and token.isdecimal() and len(token) < 10 and int(token) < len(node):
            node = node[int(token)]
        elif isinstance(node, dict):
            # A definition whose name has a slash in it, written without its escape.
            return node.get("/".join(tokens[position:]), MISSING)
        else:
            return MISSING
    return node


def _named(root: Any) -> Iterator[tuple[str, Any]]:
    """Every schema that has a name of its own: ``#anchor`` or the text of its ``$id``. The first one counts."""
    pending = [root]
    seen: set[int] = set()
    found: set[str] = set()
    while pending:
        node = pending.pop()
        if not isinstance(node, (dict, list)) or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, list):
            pending.extend(reversed(node))
            continue
        for keyword, mark in (("$anchor", "#"), ("$dynamicAnchor", "#"), ("$id", ""), ("id", "")):
            name = node.get(keyword)
            if isinstance(name, str) and mark + name not in found:
                found.add(mark + name)
                yield mark + name, node
        pending.extend(reversed(list(node.values())))
