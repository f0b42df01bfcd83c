"""What JSON Schemas say, asked in one place.

`SchemaView` is the one resolved view of a schema, and `coerce` types raw text by it. `check_strict` says what keeps a
schema out of the strict subset of Structured Outputs.
"""

from __future__ import annotations

from isogloss.schema.coercion import coerce, streams_as_string
from isogloss.schema.strict import Violation, api_message, check_name, check_strict, ensure_strict
from isogloss.schema.view import SchemaView

__all__ = [
    "SchemaView",
    "Violation",
    "api_message",
    "check_name",
    "check_strict",
    "coerce",
    "ensure_strict",
    "streams_as_string",
]
