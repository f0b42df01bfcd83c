"""Rewrite the prompts and events that the corpus files expect by what the dialects do now: `make corpus`."""

from __future__ import annotations

import sys
from pathlib import Path

from isogloss.dialects import dialect_names, get_dialect
from isogloss.testing import write_corpus

CORPUS = Path(__file__).parent / "corpus"

for name in sys.argv[1:] or dialect_names():
    write_corpus(CORPUS / f"{name}.txt", get_dialect(name))
