"""Grammars in llama-cpp-python's generation: a logits processor.

tokenizer = isogloss.tokenizers.from_gguf(llama.model_path)
processor = GrammarLogitsProcessor(constraint, tokenizer)
llama.create_completion(prompt, logits_processor=LogitsProcessorList([processor]))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from isogloss.integrations._masked_output import MaskedOutput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isogloss.constraints import Constraint
    from isogloss.tokenizers import Tokenizer


class GrammarLogitsProcessor:
    """Lets only what a constraint allows be sampled. It is for one completion."""

    def __init__(self, constraint: Constraint, tokenizer: Tokenizer) -> None:
        """Raises `GrammarError` when the grammar does not compile."""
        self._output = MaskedOutput(constraint.matcher(tokenizer))
        self._seen: int | None = None

    def __call__(self, input_ids: NDArray[numpy.intc], scores: NDArray[numpy.single]) -> NDArray[numpy.single]:
        """Scores with minus infinity for what is not allowed. ``input_ids``: all ids so far, the prompt included;
        ``scores``: the logits of the next.

        Raises `GrammarError` for an output that broke the grammar, and `ValueError` for ids of another completion.
        """
        length = len(input_ids)
        seen = length if self._seen is None else self._seen
        if length < seen:
            raise ValueError(f"Expected {seen} ids or more, got {length}: a processor is for one completion")
        for token in input_ids[seen:]:
            self._output.take(int(token))
        self._seen = length
        masked: NDArray[Any] = numpy.where(self._output.forbidden(scores.shape[-1]), -numpy.inf, scores)
        return masked.astype(scores.dtype, copy=False)
