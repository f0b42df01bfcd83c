"""Grammars in the real ``generate`` of transformers, over a tiny model with random weights: it says nothing by itself
that a grammar asks for.

Both are in vLLM's environment: ``python scripts/with_vllm.py --inside -- -m pytest tests/integrations``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from isogloss.constraints import Constraint
from isogloss.dialects import get_dialect
from isogloss.integrations.transformers import GrammarLogitsProcessor, tokenizer_of
from isogloss.messages import Tool
from isogloss.tokenizers import byte_level

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")

TOKENIZER = byte_level(["<|im_end|>", "<tool_call>", "</tool_call>"])
END = TOKENIZER.special_tokens["<|im_end|>"]
PAD = TOKENIZER.special_tokens["<|endoftext|>"]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 8}, "size": {"enum": ["small", "big"]}},
    "required": ["city", "size"],
    "additionalProperties": False,
}
PROMPTS = ["a", "what is it", "hello there"]


@pytest.fixture(scope="module")
def model() -> Any:
    """A llama whose logits are wider than the vocabulary, as they often are."""
    torch.manual_seed(7)
    torch.set_num_threads(1)
    width = TOKENIZER.vocabulary_size + 61
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = transformers.LlamaConfig(vocab_size=width, eos_token_id=END, pad_token_id=PAD, bos_token_id=None, **sizes)
    return transformers.LlamaForCausalLM(config).eval()


def text_of(row: list[int]) -> str:
    return TOKENIZER.decode([token for token in row if token not in (END, PAD)])


def generated(model: Any, constraint: Constraint, **options: Any) -> list[str]:
    """What the model says to a batch of prompts of different lengths, without the end of the turn."""
    ids = [TOKENIZER.encode(prompt) for prompt in PROMPTS]
    longest = max(map(len, ids))
    rows = torch.tensor([[PAD] * (longest - len(row)) + row for row in ids])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in ids])
    processor = GrammarLogitsProcessor(constraint, TOKENIZER)
    settings = {"max_new_tokens": 1000, "logits_processor": [processor], "eos_token_id": END, **options}
    with torch.no_grad():
        output = model.generate(input_ids=rows, attention_mask=mask, **settings)
    said = [row[longest:].tolist() for row in output]
    return list(map(text_of, said))


@pytest.mark.parametrize(
    "options",
    [
        {"do_sample": False},
        {"do_sample": True, "temperature": 1.5},
        {"do_sample": False, "num_beams": 3},
        {"do_sample": True, "num_return_sequences": 2},
    ],
    ids=["greedy", "sampled", "beams", "several each"],
)
def test_every_answer_of_a_batch_satisfies_the_schema(model: Any, options: dict[str, Any]) -> None:
    torch.manual_seed(3)
    answers = generated(model, Constraint.from_json_schema(SCHEMA), **options)
    assert len(answers) == len(PROMPTS) * options.get("num_return_sequences", 1)
    for answer in map(json.loads, answers):
        assert list(answer) == ["city", "size"]
        assert answer["size"] in ("small", "big")


def test_without_a_grammar_it_says_nothing_of_the_kind(model: Any) -> None:
    with torch.no_grad():
        output = model.generate(input_ids=torch.tensor([TOKENIZER.encode("a")]), max_new_tokens=20, do_sample=False)
    with pytest.raises(ValueError):  # noqa: PT011 - no text, or none that is JSON
        json.loads(bytes(token for token in output[0].tolist()[1:] if token < 256))


def test_calls_in_a_dialect(model: Any) -> None:
    torch.manual_seed(5)
    dialect, tool = get_dialect("hermes"), Tool("get_weather", "The weather", SCHEMA)
    constraint = dialect.constraint([tool], "required", parallel=False, reasoning=False)
    for text in generated(model, constraint, do_sample=True):
        [call] = dialect.parse(text, [tool]).tool_calls
        assert call.name == "get_weather"
        assert call.arguments["size"] in ("small", "big")


def test_the_vocabulary_of_a_real_fast_tokenizer(tmp_path: Path) -> None:
    from tokenizers import Tokenizer as Fast
    from tokenizers import decoders, models, pre_tokenizers

    alphabet = {text: number for number, text in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    fast = Fast(models.BPE(vocab={**alphabet, "he": 256}, merges=[("h", "e")]))
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast.decoder = decoders.ByteLevel()
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=fast, eos_token="<|im_end|>")
    ours = tokenizer_of(theirs, 300)
    assert ours.vocabulary_size == 300
    assert ours.end_tokens == {theirs.eos_token_id}
    for text in ("hello", "é 日本\n", " 12 the"):
        assert ours.encode(text) == theirs.encode(text, add_special_tokens=False)
    assert theirs.eos_token_id not in ours.encode("<|im_end|>")
