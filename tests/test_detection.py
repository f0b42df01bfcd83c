"""Which dialect a model id is of: one, and never another family's."""

from __future__ import annotations

import pytest

from isogloss.dialects import dialect_names, get_dialect

MODELS = {
    "deepseek": [
        *("deepseek-r1", "deepseek-ai/DeepSeek-V3-0324", "deepseek-ai/DeepSeek-V3.1", "deepseek-ai/DeepSeek-V3.2-Exp"),
        *("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B"),
    ],
    "dsml": ["deepseek-ai/DeepSeek-V3.2", "deepseek-v4-pro"],
    "functiongemma": ["google/functiongemma-270m-it"],
    "gemini": ["gemini-3-pro", "google/gemma-3-27b-it", "gemma2:9b", "google/gemma-3n-E4B-it"],
    "gemma": ["google/gemma-4-31B-it", "gemma4:26b"],
    "granite": ["ibm-granite/granite-3.3-8b-instruct"],
    "kimi": ["kimi-k2", "moonshotai/Kimi-K2-Thinking", "moonshotai/Kimi-K2.5"],
    "kimi_k3": ["moonshotai/kimi-k3"],
    "lfm": ["LiquidAI/LFM2-8B-A1B", "LiquidAI/LFM2.5-1.2B-Instruct"],
    "llama3": ["llama-3.3-70b", "meta-llama/Llama-3.1-8B-Instruct", "Meta-Llama-3-8B-Instruct"],
    "mistral": [
        *("mistral-large", "mistralai/Mistral-Small-3.2-24B-Instruct-2506", "mistralai/Devstral-Small-2507"),
        *("mistralai/Magistral-Small-2509", "mistralai/Ministral-3-14B-Instruct-2512"),
    ],
    "olmo3": ["allenai/Olmo-3-7B-Instruct", "allenai/OLMo-3-32B-Think"],
    "phi4": ["microsoft/Phi-4-mini-instruct", "phi-4"],
    "pythonic": [
        *("meta-llama/Llama-4-Scout-17B-16E-Instruct", "meta-llama/Llama-3.2-3B-Instruct", "Team-ACE/ToolACE-8B"),
    ],
}
NOBODYS = ["grok-4", "gpt-4o-transcribe", "nvidia/Llama-3_3-Nemotron-Super-49B-v1", "llama-2-7b", "falcon-40b"]
OWN = set(MODELS)


@pytest.mark.parametrize(("name", "model_id"), [(name, m) for name, models in MODELS.items() for m in models])
def test_a_model_is_of_one_dialect(name: str, model_id: str) -> None:
    assert [other for other in dialect_names() if get_dialect(other).detects(model_id)] == [name]


@pytest.mark.parametrize("model_id", NOBODYS)
def test_a_model_of_another_family_is_not_claimed(model_id: str) -> None:
    assert not [name for name in OWN if get_dialect(name).detects(model_id)]


@pytest.mark.parametrize("model_id", ["NousResearch/Hermes-3-Llama-3.1-8B", "NousResearch/Hermes-2-Pro-Mistral-7B"])
def test_a_model_goes_by_what_it_was_trained_to_write_not_by_its_base(model_id: str) -> None:
    assert [name for name in dialect_names() if get_dialect(name).detects(model_id)] == ["hermes"]


@pytest.mark.parametrize(
    ("name", "tail", "where"),
    [
        ("gemma", "<|turn>model\n<|channel>thought\n", "reasoning"),
        ("gemma", "<|turn>model\n<|channel>thought\n<channel|>", "text"),
        ("gemma", "<|turn>model\nA thought\n", "text"),
        ("gemini", "<start_of_turn>model\n```thinking\n", "reasoning"),
        ("gemini", "<start_of_turn>model\n", "text"),
        ("kimi", "<|im_assistant|>assistant<|im_middle|><think>", "reasoning"),
        ("kimi", "<|im_assistant|>assistant<|im_middle|><think></think>", "text"),
        ("deepseek", "<｜Assistant｜><think>\n", "reasoning"),
        ("deepseek", "<｜Assistant｜></think>", "text"),
        ("mistral", "[/INST][THINK]", "reasoning"),
        ("mistral", "[/INST]", "text"),
    ],
)
def test_a_prompt_says_where_the_output_starts(name: str, tail: str, where: str) -> None:
    assert get_dialect(name).starts_in(tail) == where
