"""Grammars in other people's loops: rows of ids and scores as numpy's arrays, or as tensors where torch is at hand."""

from __future__ import annotations

from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from isogloss.constraints import Constraint
from isogloss.errors import GrammarError
from isogloss.integrations import llama_cpp, transformers
from isogloss.integrations._masked_output import MaskedOutput
from isogloss.tokenizers import byte_level

TOKENIZER = byte_level(["<|im_end|>"])
END = TOKENIZER.special_tokens["<|im_end|>"]
WIDTH = TOKENIZER.vocabulary_size
CONSTRAINT = Constraint.from_regex("(ab|ac|bd)x?")
PROMPT = [1, 2, 3]


def allowed(scores: Any) -> list[set[int]]:
    return [set(numpy.flatnonzero(numpy.isfinite(numpy.asarray(row))).tolist()) for row in scores]


def codes(*texts: str) -> list[set[int]]:
    """The ids of letters; ``$`` stands for all tokens that end the turn."""
    ends = set(TOKENIZER.end_tokens)
    return [{ord(letter) for letter in text if letter != "$"} | (ends if "$" in text else set()) for text in texts]


def rows(*texts: str) -> numpy.ndarray[Any, Any]:
    return numpy.array([PROMPT + [END if letter == "$" else ord(letter) for letter in text] for text in texts])


def processor() -> transformers.GrammarLogitsProcessor:
    return transformers.GrammarLogitsProcessor(CONSTRAINT, TOKENIZER)


def zeros(count: int, width: int = WIDTH) -> numpy.ndarray[Any, Any]:
    return numpy.zeros((count, width), dtype=numpy.float32)


def test_every_row_goes_its_own_way() -> None:
    process = processor()
    assert allowed(process(rows("", ""), zeros(2))) == codes("ab", "ab")
    assert allowed(process(rows("a", "b"), zeros(2))) == codes("bc", "d")
    assert allowed(process(rows("ab", "bd"), zeros(2))) == codes("x$", "x$")
    scores = process(rows("abx", "bd$"), zeros(2))
    assert allowed(scores[:1]) == codes("$")
    assert allowed(scores[1:]) == [{END}]  # over: the loop pads, or repeats the end
    assert allowed(process(rows("abx$", "bd$\0"), zeros(2))) == [{END}] * 2


def test_beams_change_places_and_are_repeated() -> None:
    process = processor()
    process(rows("", ""), zeros(2))
    process(rows("a", "b"), zeros(2))
    assert allowed(process(rows("bd", "ac"), zeros(2))) == codes("x$", "x$")
    assert allowed(process(rows("acx", "ac$"), zeros(2)))[0] == codes("$")[0]
    twice = processor()
    twice(rows("", ""), zeros(2))
    twice(rows("a", "b"), zeros(2))
    assert allowed(twice(rows("ab", "ac"), zeros(2))) == codes("x$", "x$")
    assert allowed(twice(rows("abx", "ac$"), zeros(2)))[0] == codes("$")[0]


def test_scores_may_be_wider_than_the_vocabulary() -> None:
    assert allowed(processor()(rows(""), zeros(1, WIDTH + 50))) == codes("ab")


def test_scores_keep_their_values() -> None:
    scores = numpy.arange(WIDTH, dtype=numpy.float32)[None]
    masked = processor()(rows(""), scores)
    assert masked[0, ord("a")] == ord("a")
    assert masked.dtype == numpy.float32
    assert numpy.isfinite(scores).all()


@pytest.mark.parametrize("ids", [rows("ab"), rows("x")], ids=["longer", "refused"])
def test_rows_that_do_not_go_on(ids: Any) -> None:
    process = processor()
    process(rows(""), zeros(1))
    with pytest.raises((ValueError, GrammarError)):
        process(ids, zeros(1))


def test_rows_of_another_generation() -> None:
    process = processor()
    process(rows("", ""), zeros(2))
    process(rows("a", "a"), zeros(2))
    with pytest.raises(ValueError, match="Row 0 goes on from no row of the step before"):
        process(rows("bd", "ab"), zeros(2))
    with pytest.raises(ValueError, match="Expected rows of 5 ids, got 3"):
        process(rows(""), zeros(1))


def test_a_grammar_that_leads_nowhere() -> None:
    class Stuck:
        def mask(self) -> Any:
            return numpy.zeros(9, dtype=numpy.int32)

    matcher: Any = Stuck()
    with pytest.raises(GrammarError, match="no token is allowed"):
        MaskedOutput(matcher).forbidden(WIDTH)


class Tensor:
    """As much of a tensor on another device as is used."""

    def __init__(self, data: Any) -> None:
        self.data = data
        self.shape = data.shape
        self.device = "other"

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> Any:
        return self.data

    def masked_fill(self, mask: Any, value: float) -> Tensor:
        assert mask.device == self.device
        return Tensor(numpy.where(mask.data, value, self.data))


def test_tensors_stay_on_their_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def moved(array: Any) -> Any:
        return SimpleNamespace(to=lambda device: SimpleNamespace(data=array, device=device))

    monkeypatch.setattr(transformers, "import_module", lambda name: SimpleNamespace(from_numpy=moved))
    masked = processor()(Tensor(rows("")), Tensor(zeros(1)))
    assert isinstance(masked, Tensor)
    assert allowed(masked.data) == codes("ab")


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_real_tensors() -> None:
    import torch

    masked = processor()(torch.tensor(rows("")), torch.tensor(zeros(1)))
    assert allowed(masked.numpy()) == codes("ab")


def test_llama_cpp() -> None:
    process = llama_cpp.GrammarLogitsProcessor(CONSTRAINT, TOKENIZER)

    def step(text: str) -> set[int]:
        scores = numpy.zeros(WIDTH, dtype=numpy.single)
        masked = process(rows(text)[0].astype(numpy.intc), scores)
        assert masked.dtype == numpy.single
        return allowed([masked])[0]

    assert [step("")] == codes("ab")
    assert [step("a")] == codes("bc")
    assert [step("abx")] == codes("$")
    with pytest.raises(ValueError, match="a processor is for one completion"):
        step("a")
    with pytest.raises(GrammarError, match="number 3 of the output, is not allowed there"):
        step("abxx")
