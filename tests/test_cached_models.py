"""What is listed of the models on this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from isogloss.cached_models import cached_models, hub_cache
from isogloss.demo_model import DIALECT, FILE_NAME
from test_tokenizers import gguf_string, gguf_value, write_gguf


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("ISOGLOSS_CACHE", str(tmp_path / "own"))
    return tmp_path / "hub"


def put(path: Path, **metadata: object) -> Path:
    """A GGUF file with exactly this metadata, a dot in a key written as two underscores."""
    path.parent.mkdir(parents=True, exist_ok=True)
    head = write_gguf(path).read_bytes()[:16]
    entries = {key.replace("__", "."): value for key, value in metadata.items()}
    data = b"".join(gguf_string(key) + gguf_value(value) for key, value in entries.items())
    path.write_bytes(head + len(entries).to_bytes(8, "little") + data)
    return path


def test_nothing_is_there(hub: Path) -> None:
    assert cached_models() == []


def test_files_of_the_hub(hub: Path) -> None:
    snapshots = hub / "models--Qwen--Qwen3-8B-GGUF" / "snapshots"
    facts = {"general__architecture": "qwen3", "qwen3__context_length": 40960}
    old = put(snapshots / "a1" / "Qwen3-8B-Q4.gguf", **facts)
    new = put(snapshots / "b2" / "Qwen3-8B-Q4.gguf", **facts)
    os.utime(old, (1, 1))
    put(snapshots / "b2" / "mmproj.gguf", general__architecture="clip")
    (snapshots / "b2" / "broken.gguf").write_bytes(b"GGUF")
    tags = "{% for m in messages %}<tool_call>{% endfor %}"
    split = hub / "models--own--a--b" / "snapshots" / "c3" / "q4"
    part = put(split / "m[1]-00001-of-00002.gguf", general__architecture="x", tokenizer__chat_template=tags)
    put(split / "m[1]-00002-of-00002.gguf")
    models = cached_models()
    assert [(model.target, model.path, model.dialect, model.context_length) for model in models] == [
        ("hf:Qwen/Qwen3-8B-GGUF/Qwen3-8B-Q4.gguf", new, "qwen3", 40960),
        ("hf:own/a--b/q4/m[1]-00001-of-00002.gguf", part, "hermes", None),
    ]
    assert models[0].size == new.stat().st_size
    assert models[1].size == sum(path.stat().st_size for path in split.iterdir())


def test_the_demo_model(hub: Path, tmp_path: Path) -> None:
    path = put(tmp_path / "own" / FILE_NAME, general__architecture="llama", llama__context_length=8192)
    [model] = cached_models()
    assert (model.target, model.dialect, model.context_length) == (str(path), DIALECT, 8192)


def test_where_the_hubs_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert hub_cache() == Path.home() / ".cache" / "huggingface" / "hub"
    monkeypatch.setenv("XDG_CACHE_HOME", "/c")
    assert hub_cache() == Path("/c/huggingface/hub")
    monkeypatch.setenv("HF_HOME", "/h")
    assert hub_cache() == Path("/h/hub")
    monkeypatch.setenv("HF_HUB_CACHE", "/x")
    assert hub_cache() == Path("/x")
