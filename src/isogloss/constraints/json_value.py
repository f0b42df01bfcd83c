"""The grammar of JSON values that satisfy a schema."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from isogloss.errors import SchemaTooComplexError

if TYPE_CHECKING:
    from isogloss.schema.json_grammar import JsonGrammar
    from isogloss.schema.lowering import Lowered


def json_grammar(schema: Mapping[str, Any] | bool, prefix: str) -> JsonGrammar:
    """The values of ``schema`` as rules whose names start with ``prefix``. Raises `SchemaError`."""
    return lowered(schema).grammar(prefix)


def lowered(schema: Mapping[str, Any] | bool) -> Lowered:
    """The schema ready for the engine, kept for the next one who asks. Raises `SchemaError`."""
    try:
        encoded = msgspec.json.encode(schema)
    except RecursionError:
        raise SchemaTooComplexError("Expected a schema of bounded depth, got one nested too deep") from None
    return _lowered(encoded)


@lru_cache(maxsize=128)
def _lowered(schema: bytes) -> Lowered:
    from isogloss.schema.lowering import lower

    return lower(msgspec.json.decode(schema))
