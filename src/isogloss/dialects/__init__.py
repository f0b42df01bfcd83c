"""The dialects. This folder is the registry: each module without a leading underscore is one, under its own name.

Third parties add theirs through the entry-point group ``isogloss.dialects``: the entry's value is a `Dialect` class.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, get_origin

from isogloss.dialects._base import Dialect
from isogloss.errors import UnknownDialectError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["Dialect", "detect_dialect", "dialect_names", "get_dialect"]

ENTRY_POINTS = "isogloss.dialects"


def dialect_names() -> list[str]:
    """The names of all dialects, sorted."""
    return sorted({*_shipped(), *_plugged_in()})


@cache
def get_dialect(name: str) -> Dialect:
    """The dialect of that name. Raises `UnknownDialectError`, which lists the names there are."""
    if not isinstance(name, str):
        raise TypeError(f"Expected a dialect's name as `str`, got `{type(name).__name__}`")
    if name in _shipped():
        module = import_module(f"{__name__}.{name}")
        return next(dialect() for dialect in _classes(module) if dialect.name == name)
    if name in _plugged_in():
        dialect: Dialect = _plugged_in()[name].load()()
        return dialect
    names = dialect_names()
    meant = " or ".join(map(repr, _meant(name, names)))
    hint = f"; did you mean {meant}?" if meant else ""
    raise UnknownDialectError(f"Expected a dialect's name ({', '.join(names)}), got {name!r}{hint}", names)


def detect_dialect(model_id_or_template: str) -> Dialect:
    """The dialect of a model, by its id or the text of its chat template.

    Raises `UnknownDialectError` when none or more than one claims it; it lists the candidates.
    """
    if not isinstance(model_id_or_template, str):
        raise TypeError(f"Expected a model's id or a template as `str`, got `{type(model_id_or_template).__name__}`")
    names = dialect_names()
    claims = [name for name in names if get_dialect(name).detects(model_id_or_template)]
    if len(claims) == 1:
        return get_dialect(claims[0])
    shown = model_id_or_template if len(model_id_or_template) <= 80 else model_id_or_template[:77] + "..."
    if claims:
        message = f"{shown!r} may be of several dialects ({', '.join(claims)}); name one of them"
        raise UnknownDialectError(message, claims)
    message = f"No dialect is known for {shown!r}; name one of {', '.join(names)}"
    raise UnknownDialectError(message, names)


def _meant(name: str, names: list[str]) -> list[str]:
    """The dialects that may be meant: those of a model by that name, else the nearest names."""
    from difflib import get_close_matches

    claims = [known for known in names if get_dialect(known).detects(name)] if "{" not in name else []
    return claims or get_close_matches(name.lower(), names, n=2, cutoff=0.7)


@cache
def _shipped() -> frozenset[str]:
    return frozenset(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))


@cache
def _plugged_in() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # slow to import, and seldom needed

    return {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}


def _classes(module: object) -> list[type[Dialect]]:
    # On Python 3.10 an alias such as `Callable[[str], None]` is an instance of `type` too.
    values = [value for value in vars(module).values() if isinstance(value, type) and get_origin(value) is None]
    return [v for v in values if issubclass(v, Dialect) and "name" in vars(v)]
