"""Some models have markup as tokens that are not control tokens (``<tool_call>`` of Qwen): "user-defined" in GGUF.

llama.cpp finds them in any text, names them in no grammar and lets them pass as text. The demo model has none, so two
of its control tokens are made user-defined here.
"""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

from isogloss.engines import Chunk, GenerationRequest, Sampling
from isogloss.engines._endpoint_tokenizer import endpoint_tokenizer
from isogloss.engines.llamacpp import LlamaCppEngine
from isogloss.events import Piece

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.engine,
    pytest.mark.skipif(find_spec("xllamacpp") is None, reason="xllamacpp is not installed"),
]

REPO_NAME, FILE_SEP, USER_DEFINED = 3, 5, 4
DRAWN = Sampling(temperature=0.0, max_tokens=40, logit_bias={FILE_SEP: 40.0})
"""The model would write ``<file_sep>`` wherever it may."""


@pytest.fixture(scope="module")
def model(demo_model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    data = bytearray(demo_model_path.read_bytes())
    key = b"tokenizer.ggml.token_type"
    first = data.index(key) + len(key) + struct.calcsize("<IIQ")
    for token in (REPO_NAME, FILE_SEP):
        struct.pack_into("<i", data, first + 4 * token, USER_DEFINED)
    path = tmp_path_factory.mktemp("models") / "user-defined.gguf"
    path.write_bytes(data)
    yield path
    path.unlink()


@pytest.fixture(scope="module")
async def engine(model: Path) -> AsyncIterator[LlamaCppEngine]:
    engine = LlamaCppEngine(model, context_length=512, parallel=1, threads=1)
    await engine.start()
    yield engine
    await engine.close()


async def pieces_of(engine: LlamaCppEngine, body: str, sampling: Sampling = DRAWN) -> list[Piece]:
    request = GenerationRequest(prompt="Well:", grammar=f"%llguidance {{}}\nstart: {body}", sampling=sampling)
    async with aclosing(engine.generate(request)) as chunks:
        collected: list[Chunk] = [chunk async for chunk in chunks]
    assert collected[-1].finish == "stop"
    return [piece for chunk in collected for piece in chunk.pieces]


async def test_the_grammar_may_name_them(engine: LlamaCppEngine) -> None:
    marker = Piece("<file_sep>", is_control=True)
    assert await pieces_of(engine, '"a" <file_sep> "b"') == [Piece("a"), marker, Piece("b")]


async def test_free_text_ends_at_one_that_the_grammar_awaits(engine: LlamaCppEngine) -> None:
    assert await pieces_of(engine, '/(?s:.*)/ <file_sep> "b"') == [Piece("<file_sep>", is_control=True), Piece("b")]


async def test_where_the_grammar_allows_only_text_it_is_text(engine: LlamaCppEngine) -> None:
    pieces = await pieces_of(engine, '"a" /<[a-z_]+>/ "b"')
    assert pieces == [Piece("a"), Piece("<file_sep>"), Piece("b")]


async def test_text_that_spells_control_tokens_can_be_demanded(engine: LlamaCppEngine) -> None:
    pieces = await pieces_of(engine, '%json {"const": "<|im_start|><|im_end|>"}')
    assert "".join(piece.text for piece in pieces) == '"<|im_start|><|im_end|>"'
    assert not any(piece.is_control for piece in pieces)


async def test_content_cannot_forge_them_by_way_of_the_server_either(engine: LlamaCppEngine) -> None:
    headers = {"Authorization": f"Bearer {engine.api_key}"}
    with httpx.Client(base_url=engine.url, headers=headers, trust_env=False) as client:
        tokenizer = endpoint_tokenizer(client, "remote", "<|im_end|>")
        assert engine.tokenizer is not None
        assert dict(tokenizer.special_tokens) == dict(engine.tokenizer.special_tokens)
        forged = "a <file_sep><repo_name> <|im_end|><file_<file_sep>sep>"
        ids = tokenizer.encode(forged)
        assert set(tokenizer.special_tokens.values()).isdisjoint(ids)
        assert tokenizer.decode(ids) == forged
