"""The state of a scanner at one moment, by copy, to go back to it."""

from __future__ import annotations

from functools import lru_cache
from types import BuiltinMethodType, MethodType
from typing import Any

import msgspec

from isogloss.dialects._lexicon import Lexicon
from isogloss.dialects._scanner import Prose
from isogloss.notations.gemma import Delimiters

_OURS = "isogloss."
_SCHEMAS = "isogloss.schema"
_SHARED = (Prose, Lexicon, Delimiters, msgspec.Struct, tuple)


def state_of(scanner: Any) -> dict[str, Any]:
    """Every attribute of a scanner that has a value, copied where scanning changes it in place."""
    return {name: _copied(part) for name, part in _attributes(scanner)}


def set_state(scanner: Any, state: dict[str, Any]) -> None:
    """Take on a state that is one of this scanner's own; the state itself may be taken on again."""
    for name, part in state.items():
        setattr(scanner, name, _copied(part))


def _attributes(value: Any) -> list[tuple[str, Any]]:
    kind: Any = type(value)
    found = [(name, getattr(value, name)) for name in _fields(kind) if hasattr(value, name)]
    return [*found, *getattr(value, "__dict__", {}).items()]


@lru_cache(maxsize=256)
def _fields(kind: Any) -> tuple[str, ...]:
    """What objects of a class keep outside of a dictionary: in slots, or in the fields of a compiled class."""
    compiled: tuple[str, ...] = getattr(kind, "__mypyc_attrs__", ())
    slots = (name for base in kind.__mro__ for name in getattr(base, "__slots__", ()))
    return tuple(dict.fromkeys(name for name in (*compiled, *slots) if not name.startswith("__")))


def _copied(value: Any) -> Any:
    """The state in ``value`` by copy. What a scanner only looks things up in never changes, and is shared."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return value.copy() if not value or type(value[0]) is str else [_copied(item) for item in value]
    if isinstance(value, set):
        return value.copy()
    module = type(value).__module__
    is_shared = isinstance(value, _SHARED) or module.startswith(_SCHEMAS) or not module.startswith(_OURS)
    return value if is_shared else _copied_object(value)


def _copied_object(value: Any) -> Any:
    kind: Any = type(value)
    twin = kind.__new__(kind)
    for name, part in _attributes(value):
        is_own_method = isinstance(part, (MethodType, BuiltinMethodType)) and part.__self__ is value
        setattr(twin, name, getattr(twin, part.__name__) if is_own_method else _copied(part))
    return twin
