"""The grammar of JSON values that satisfy a schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from isogloss.errors import UnsatisfiableSchemaError

WHITE_SPACE = r"[ ]|\n[ ]{0,32}"
"""What may stand between two tokens of JSON, besides nothing: a blank, or a new line and its indentation. A model that
is free to write more can write nothing else for ever."""


def json_expression(schema: Mapping[str, Any] | bool) -> str:
    """A Lark expression for the values of ``schema``. Raises `UnsatisfiableSchemaError` for the schema ``false``."""
    if schema is False:
        raise UnsatisfiableSchemaError("Expected a schema that some value satisfies, got `false`")
    members = {} if schema is True else dict(schema)
    members["x-guidance"] = {"whitespace_pattern": WHITE_SPACE}
    return f"%json {msgspec.json.encode(members).decode()}"
