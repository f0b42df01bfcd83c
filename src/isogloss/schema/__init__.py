"""What JSON Schemas say, asked in one place.

`SchemaView` is the one resolved view of a schema; `coerce` types raw text by it.
"""

from __future__ import annotations

from isogloss.schema.coercion import coerce, streams_as_string
from isogloss.schema.view import SchemaView

__all__ = [
    "SchemaView",
    "coerce",
    "streams_as_string",
]
