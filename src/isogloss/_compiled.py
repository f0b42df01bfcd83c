"""The scanners as compiled code: what mypyc is told of a class, and whether it was at work here.

The same sources run as they are or compiled. ``pyproject.toml`` says which modules are compiled in such wheels,
``benchmarks/README.md`` what that brings.
"""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr as mypyc_attr
else:

    def mypyc_attr(**_options):
        """Nothing, where the sources run as they are."""
        return lambda kind: kind


def is_compiled() -> bool:
    """Whether this installation has the scanners as compiled code."""
    spec = find_spec("isogloss.dialects._scanner")
    return spec is not None and (spec.origin or "").endswith(tuple(EXTENSION_SUFFIXES))
