"""What JSON Schemas say, asked in one place.

`SchemaView` is the one resolved view of a schema, and `coerce` types raw text by it. `check_strict` says what keeps a
schema out of the strict subset of Structured Outputs, `to_strict` brings it there. `from_type` and `from_function` make
schemas of Python types, `parse_as` and `parse_partial` read answers back. `namespace` and `type_text` write TypeScript.
"""

from __future__ import annotations

from isogloss.schema.coercion import coerce, streams_as_string
from isogloss.schema.parsing import parse_as, parse_partial, without_placeholders
from isogloss.schema.strict import Violation, api_message, check_name, check_strict, ensure_strict
from isogloss.schema.strict_form import Loss, to_strict
from isogloss.schema.types import from_function, from_type
from isogloss.schema.typescript import namespace, type_text
from isogloss.schema.view import SchemaView

__all__ = [
    "Loss",
    "SchemaView",
    "Violation",
    "api_message",
    "check_name",
    "check_strict",
    "coerce",
    "ensure_strict",
    "from_function",
    "from_type",
    "namespace",
    "parse_as",
    "parse_partial",
    "streams_as_string",
    "to_strict",
    "type_text",
    "without_placeholders",
]
