"""Grammars in Hugging Face's ``generate``: a logits processor, for batches and beams.

tokenizer = tokenizer_of(hf_tokenizer, model.config.vocab_size)
processor = GrammarLogitsProcessor(constraint, tokenizer)
model.generate(**inputs, logits_processor=[processor])
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy

from isogloss.integrations._masked_output import MaskedOutput
from isogloss.tokenizers import Tokenizer, from_tokenizer_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isogloss.constraints import Constraint


class GrammarLogitsProcessor:
    """Lets only what a constraint allows be sampled, in every row of the batch by itself. It is for one ``generate``.

    Rows may be put in another order, or be repeated, from one step to the next, as beam search does.
    """

    def __init__(self, constraint: Constraint, tokenizer: Tokenizer) -> None:
        """Raises `GrammarError` when the grammar does not compile."""
        self._start = MaskedOutput(constraint.matcher(tokenizer))
        self._outputs: list[MaskedOutput] = []
        self._ids: NDArray[numpy.int64] | None = None

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Scores with minus infinity for what is not allowed. ``input_ids``: rows of ids, the prompt included;
        ``scores``: rows of logits, as a tensor or an array of numpy's.

        Raises `GrammarError` for rows that broke the grammar, and `ValueError` for rows of another generation.
        """
        ids = _array(input_ids)
        self._outputs = self._followed(ids)
        self._ids = ids
        width = scores.shape[-1]
        return _masked(scores, numpy.stack([output.forbidden(width) for output in self._outputs]))

    def _followed(self, ids: NDArray[numpy.int64]) -> list[MaskedOutput]:
        """The output of each row, one token further than it was."""
        before = self._ids
        if before is None:
            return [self._start.copy() for _ in ids]
        if ids.shape[1] != before.shape[1] + 1:
            raise ValueError(
                f"Expected rows of {before.shape[1] + 1} ids, got {ids.shape[1]}: a processor is for one generation"
            )
        outputs = []
        used: set[int] = set()
        for position, row in enumerate(ids):
            parent = _parent(row[:-1], before, position)
            output = self._outputs[parent]
            outputs.append(output.copy() if parent in used else output)
            used.add(parent)
        # Only then, so that a copy is never made of an output that has gone on.
        for output, row in zip(outputs, ids, strict=True):
            output.take(int(row[-1]))
        return outputs


def tokenizer_of(hf_tokenizer: Any, vocabulary_size: int | None = None) -> Tokenizer:
    """The vocabulary of a fast tokenizer. ``vocabulary_size``: the width of the model's logits.

    Raises `TokenizerError`.
    """
    ends = [token for token in (hf_tokenizer.eos_token_id,) if token is not None]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        hf_tokenizer.backend_tokenizer.save(str(path))
        return from_tokenizer_json(path, end_tokens=ends, vocabulary_size=vocabulary_size)


def _parent(prefix: NDArray[numpy.int64], before: NDArray[numpy.int64], position: int) -> int:
    """Which row of the step before this one goes on from."""
    if position < len(before) and numpy.array_equal(before[position], prefix):
        return position
    found = numpy.flatnonzero((before == prefix).all(axis=1))
    if not len(found):
        raise ValueError(f"Row {position} goes on from no row of the step before: a processor is for one generation")
    return int(found[0])


def _array(ids: Any) -> NDArray[numpy.int64]:
    return numpy.array(ids.cpu().numpy() if hasattr(ids, "cpu") else ids, dtype=numpy.int64)


def _masked(scores: Any, forbidden: NDArray[numpy.bool_]) -> Any:
    if isinstance(scores, numpy.ndarray):
        return numpy.where(forbidden, -numpy.inf, scores)
    mask = import_module("torch").from_numpy(forbidden).to(scores.device)
    return scores.masked_fill(mask, -float("inf"))
