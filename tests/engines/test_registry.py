from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints

import pytest

import isogloss.engines
from isogloss.engines import engine_names, get_engine, open_engine
from isogloss.engines.llamacpp import LlamaCppEngine
from isogloss.engines.scripted import ScriptedEngine
from isogloss.errors import EngineCapabilityError, EngineUnavailableError


def test_the_folder_is_the_registry() -> None:
    names = engine_names()
    assert names == sorted(names)
    assert {"llamacpp", "scripted"} <= set(names)
    for name in names:
        assert get_engine(name).name == name


def test_third_parties_come_in_by_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    here = "isogloss.engines.scripted:ScriptedEngine"
    theirs = EntryPoints([EntryPoint("theirs", here, isogloss.engines.ENTRY_POINT_GROUP)])
    monkeypatch.setattr(isogloss.engines, "entry_points", lambda *, group: theirs.select(group=group))
    assert "theirs" in engine_names()
    assert get_engine("theirs") is ScriptedEngine


def test_an_unknown_engine() -> None:
    with pytest.raises(EngineCapabilityError, match=r"Unknown engine `nonsense`, expected one of: .*llamacpp"):
        get_engine("nonsense")


def test_an_engine_whose_library_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise ModuleNotFoundError("No module named 'httpx'", name="httpx")

    monkeypatch.setattr(isogloss.engines, "import_module", fail)
    with pytest.raises(EngineUnavailableError, match=r"needs `httpx`.*pip install 'isogloss\[llamacpp\]'"):
        get_engine("llamacpp")


def test_the_target_tells_the_engine() -> None:
    for target in ("models/some.gguf", "hf:owner/repository/some.gguf"):
        assert isinstance(open_engine(target), LlamaCppEngine)


def test_a_named_engine_takes_the_target_and_its_options() -> None:
    engine = open_engine("https://user:secret@example.org:8080/", engine="llamacpp", api_key="k")
    assert isinstance(engine, LlamaCppEngine)
    assert engine.api_key == "k"


def test_a_target_that_no_engine_takes() -> None:
    with pytest.raises(EngineCapabilityError, match=r"`ftp://example.org`: no engine takes it"):
        open_engine("ftp://me:secret@example.org")


def test_a_target_that_several_engines_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScriptedEngine, "accepts", staticmethod(lambda target: True))
    with pytest.raises(EngineCapabilityError, match=r"several engines take it \(llamacpp, scripted\): name one"):
        open_engine("some.gguf")
