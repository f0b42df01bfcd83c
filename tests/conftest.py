"""What tests of every kind share: the event loop's kind, the demo model, one embedded engine for the whole run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from isogloss.demo_model import find_demo_model
from isogloss.engines.llamacpp import LlamaCppEngine


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def demo_model_path() -> Path:
    """The demo model, where it has been fetched: no test fetches anything."""
    path = find_demo_model()
    if path is None:
        pytest.skip("the demo model has not been fetched: python -m isogloss.demo_model")
    return path


@pytest.fixture(scope="session")
async def llamacpp_engine(anyio_backend: str, demo_model_path: Path) -> AsyncIterator[LlamaCppEngine]:
    """The embedded engine with the demo model, started: four requests at once, 1024 tokens each, one thread."""
    if find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed")
    engine = LlamaCppEngine(demo_model_path, context_length=1024, parallel=4, threads=1)
    await engine.start()
    yield engine
    await engine.close()
