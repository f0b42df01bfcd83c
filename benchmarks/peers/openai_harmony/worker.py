"""The package that the stand-in stands in for."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from harmony_works import harmony_works
from worker import serve

serve(harmony_works("openai_harmony"))
