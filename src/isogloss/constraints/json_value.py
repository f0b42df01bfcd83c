"""The grammar of JSON values that satisfy a schema."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from isogloss.errors import SchemaTooComplexError

if TYPE_CHECKING:
    from isogloss.schema.lowering import Lowered


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
