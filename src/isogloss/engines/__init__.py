"""Engines by name. A module in this folder whose name has no underscore in front is an engine; others come in by the
entry-point group ``isogloss.engines``.

Every engine's module names its class ``ENGINE`` (an entry point names the class itself):

    class ENGINE:
        name: str
        def accepts(target: str) -> bool        # static: whether such a target can be for this engine
        def open(target: str, **options)        # class method: an `Engine` over that target, not yet started
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from typing import Any

from isogloss.engines._protocol import (
    Chunk,
    Engine,
    EngineType,
    GenerationRequest,
    ModelInfo,
    NativePiece,
    Sampling,
    TokenLogprob,
    Usage,
)
from isogloss.errors import EngineCapabilityError, EngineUnavailableError

__all__ = [
    "Chunk",
    "Engine",
    "EngineType",
    "GenerationRequest",
    "ModelInfo",
    "NativePiece",
    "Sampling",
    "TokenLogprob",
    "Usage",
    "engine_names",
    "get_engine",
    "open_engine",
]

ENTRY_POINT_GROUP = "isogloss.engines"

_NOBODY_TAKES = "no engine takes it; expected a .gguf file, `hf:OWNER/REPOSITORY/FILE` or an http or https URL"


def engine_names() -> list[str]:
    """The names of all engines, sorted."""
    return sorted({*_own_names(), *_third_parties()})


def get_engine(name: str) -> EngineType:
    """The class of that engine. Raises `EngineCapabilityError` for a name that nobody has, and
    `EngineUnavailableError` when what it needs is not installed."""
    if name not in engine_names():
        raise EngineCapabilityError(f"Unknown engine `{name}`, expected one of: {', '.join(engine_names())}")
    try:
        if name in _own_names():
            engine: EngineType = import_module(f"{__name__}.{name}").ENGINE
        else:
            engine = _third_parties()[name].load()
    except ImportError as error:
        raise EngineUnavailableError(
            f"The engine `{name}` needs `{error.name}`, which is not installed: pip install 'isogloss[{name}]'"
        ) from error
    return engine


def open_engine(target: str, *, engine: str | None = None, **options: Any) -> Engine:
    """An engine over ``target``, not yet started: a model's file, ``hf:OWNER/REPOSITORY/FILE`` or a URL.

    ``engine`` names it where several engines take such a target; ``options`` are those of the engine's class. Raises
    `EngineCapabilityError` when none or several take it.
    """
    if engine is not None:
        return get_engine(engine).open(target, **options)
    takers = [name for name in engine_names() if get_engine(name).accepts(target)]
    if len(takers) != 1:
        shown = re.sub(r"//[^/@]*@", "//", target)
        reason = f"several engines take it ({', '.join(takers)}): name one" if takers else _NOBODY_TAKES
        raise EngineCapabilityError(f"Cannot choose an engine for `{shown}`: {reason}")
    return get_engine(takers[0]).open(target, **options)


@lru_cache(maxsize=1)
def _own_names() -> frozenset[str]:
    return frozenset(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))


def _third_parties() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
