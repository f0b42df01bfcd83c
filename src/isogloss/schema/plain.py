"""Schemas that the grammar engine's own JSON Schema compiler takes exactly, found by one cheap scan.

Most schemas of tools and answers are made of a handful of keywords. They need not be brought into canonical form:
compiling them as they are is several times faster than compiling a grammar text. What that compiler leaves open
(digits without end, keys that come twice, listed keys spelled with escapes) is noted for the guards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from isogloss.schema.guards import Guards
from isogloss.schema.plain_form import EngineForm
from isogloss.schema.plain_scan import Scan

WHITE_SPACE = r"[ \t]{1,2}|\r?\n[ \t]{0,40}"
ENGINE_OPTIONS = {"whitespace_pattern": WHITE_SPACE, "json_allow_general_unicode_escapes": True}
"""Options of the compiler: white space as bounded as in grammars written here, every JSON escape in free strings."""


class PlainSchema(msgspec.Struct, frozen=True):
    """A schema that the compiler takes exactly, in the form in which it does, and what it leaves open of it."""

    form: dict[str, Any]
    guards: Guards


def plain_schema(schema: Any, *, formats: bool = True) -> PlainSchema | None:
    """The schema as the compiler takes it; None for one that it does not take exactly."""
    if not isinstance(schema, Mapping):
        return None
    scan = Scan(schema, formats=formats)
    if not scan.root():
        return None
    form = EngineForm(formats=formats, targets=scan.targets).document(schema) if scan.has_another_form else schema
    guards = Guards(open_keys=scan.open_keys, escaped_keys=not scan.lists_open_keys, open_numbers=scan.open_numbers)
    return PlainSchema({**form, "x-guidance": ENGINE_OPTIONS}, guards)
