"""Grammars in the real llama-cpp-python, over the demo model.

It has no wheels: ``pip install llama-cpp-python`` compiles it, in minutes. Where it is not installed nothing is tested.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from isogloss.constraints import Constraint
from isogloss.dialects import get_dialect
from isogloss.integrations.llama_cpp import GrammarLogitsProcessor
from isogloss.messages import Conversation, Tool, UserMessage
from isogloss.tokenizers import Tokenizer, from_gguf

llama_cpp: Any = pytest.importorskip("llama_cpp")

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}, "size": {"enum": ["small", "big"]}},
    "required": ["city", "size"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def tokenizer(demo_model_path: Path) -> Tokenizer:
    return from_gguf(demo_model_path)


@pytest.fixture(scope="module")
def llama(demo_model_path: Path) -> Iterator[Any]:
    model = llama_cpp.Llama(str(demo_model_path), n_ctx=512, n_threads=1, verbose=False)
    yield model
    model.close()


def said(llama: Any, tokenizer: Tokenizer, prompt: list[int], constraint: Constraint | None, **options: Any) -> str:
    """The answer to a prompt of ids. ``prompt`` of text would be read with its control tokens."""
    processor = None if constraint is None else GrammarLogitsProcessor(constraint, tokenizer)
    processors = None if processor is None else llama_cpp.LogitsProcessorList([processor])
    settings = {"max_tokens": 100, "temperature": 0.0, "logits_processor": processors, **options}
    text: str = llama.create_completion(prompt, **settings)["choices"][0]["text"]
    return text


def prompt_of(tokenizer: Tokenizer, question: str, *tools: Tool) -> list[int]:
    return get_dialect("hermes").render(Conversation([UserMessage(question)], tools)).tokens(tokenizer)


def test_both_vocabularies_agree(llama: Any, tokenizer: Tokenizer) -> None:
    assert llama.n_vocab() == tokenizer.vocabulary_size
    assert llama.token_eos() in tokenizer.end_tokens
    for text in ("Hello there", " 日本 é\n\t", "<|im_end|> don't"):
        assert llama.tokenize(text.encode(), add_bos=False, special=False) == tokenizer.encode(text)


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_an_answer_satisfies_its_schema(llama: Any, tokenizer: Tokenizer, temperature: float) -> None:
    prompt = prompt_of(tokenizer, "Paris is a big city. Say so.")
    constraint = Constraint.from_json_schema(SCHEMA)
    answer = json.loads(said(llama, tokenizer, prompt, constraint, temperature=temperature, seed=4))
    assert list(answer) == ["city", "size"]
    assert answer["size"] in ("small", "big")
    with pytest.raises(ValueError):  # noqa: PT011 - by itself it says something else
        json.loads(said(llama, tokenizer, prompt, None))


def test_a_call_in_a_dialect(llama: Any, tokenizer: Tokenizer) -> None:
    dialect, tool = get_dialect("hermes"), Tool("get_weather", "The weather", SCHEMA)
    prompt = prompt_of(tokenizer, "How is the weather in Paris?", tool)
    constraint = dialect.constraint([tool], "required", parallel=False, reasoning=False)
    [call] = dialect.parse(said(llama, tokenizer, prompt, constraint), [tool]).tool_calls
    assert call.name == "get_weather"
    assert call.arguments["size"] in ("small", "big")
