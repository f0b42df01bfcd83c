"""`python -m benchmarks [NAME [ARGUMENT ...]]`: one benchmark, or all of them with their default arguments."""

from __future__ import annotations

import sys
from importlib import import_module

ALL = ("scan", "render", "server", "harmony", "schema", "conformance")

names = sys.argv[1:2] or ALL
for name in names:
    print(f"\n## {name}\n")
    import_module(f"benchmarks.{name}").main(sys.argv[2:])
