"""Content that the client keeps for the server, compaction, counting tokens, leaving out the oldest turns."""

from __future__ import annotations

from typing import Any

import httpx
import openai
import pytest
from openai.types.responses import CompactedResponse

from isogloss.engines import ModelInfo, Usage
from isogloss.engines.scripted import Script
from isogloss.server import ApiKey
from isogloss.tokenizers import byte_level

from .conftest import Serve, Served

CALL = '<think>\nThe secret is 5.\n</think>\n\n<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
TOOL: Any = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": False}
FIELDS: dict[str, Any] = {
    "model": "default",
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "tools": [TOOL],
}


@pytest.mark.parametrize("stream", [False, True])
def test_encrypted_reasoning_comes_back(serve: Serve, stream: bool) -> None:
    served = serve(CALL, "Done.")
    client = served.client()
    if stream:
        with client.responses.stream(input="x", **FIELDS) as events:
            first: Any = events.get_final_response()
    else:
        first = client.responses.create(input="x", **FIELDS)
    reasoning, call = first.output
    assert reasoning.encrypted_content
    assert "secret" not in reasoning.encrypted_content
    again: Any = [
        {"role": "user", "content": "x"},
        {"type": "reasoning", "summary": [], "encrypted_content": reasoning.encrypted_content},
        {"type": "function_call", "call_id": call.call_id, "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": call.call_id, "output": "r"},
    ]
    client.responses.create(input=again, **FIELDS)
    assert "The secret is 5." in served.engine.requests[-1].prompt
    again[1]["encrypted_content"] = reasoning.encrypted_content[:-8] + "AAAAAAA="
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(input=again, **FIELDS)
    assert (caught.value.code, caught.value.param) == ("invalid_encrypted_content", "input[1].encrypted_content")


def test_reasoning_is_not_encrypted_unasked(serve: Serve) -> None:
    response: Any = serve(CALL).client().responses.create(**{**FIELDS, "include": []}, input="x")
    assert response.output[0].encrypted_content is None


def test_what_was_sealed_for_one_key_no_other_key_opens(serve: Serve) -> None:
    keys = (ApiKey("ada", "secret-a"), ApiKey("bob", "secret-b"))
    served = serve(CALL, keys=keys)
    response: Any = served.client(api_key="secret-a").responses.create(input="x", **FIELDS)
    sealed = {"type": "reasoning", "summary": [], "encrypted_content": response.output[0].encrypted_content}
    again: Any = [sealed, {"role": "user", "content": "y"}]
    served.client(api_key="secret-a").responses.create(input=again, **FIELDS)
    with pytest.raises(openai.BadRequestError, match="could not be verified"):
        served.client(api_key="secret-b").responses.create(input=again, **FIELDS)


# --- compaction -------------------------------------------------------------------------------------------------------


def test_a_conversation_is_compacted(serve: Serve) -> None:
    served = serve("Hello Ada.", Script("Ada likes tea.", usage=Usage(9, 3)), "Tea.")
    client = served.client()
    first = client.responses.create(model="default", input="I am Ada.")
    compacted = client.responses.compact(
        model="default", input=[{"role": "user", "content": "I like tea."}], previous_response_id=first.id
    )
    assert isinstance(compacted, CompactedResponse)
    assert (compacted.object, compacted.usage.total_tokens) == ("response.compaction", 12)
    *said, sealed = compacted.output
    assert [item.content[0].text for item in said] == ["I am Ada.", "I like tea."]  # type: ignore[union-attr]
    assert sealed.type == "compaction"
    assert "tea" not in sealed.encrypted_content
    prompt = served.engine.requests[1].prompt
    assert prompt.index("Hello Ada.") < prompt.index("I like tea.") < prompt.index("Write a summary")
    again: Any = [item.to_dict(warnings=False) for item in compacted.output]
    client.responses.create(model="default", input=[*again, {"role": "user", "content": "What do I like?"}])
    prompt = served.engine.requests[-1].prompt
    assert "Hello Ada." not in prompt
    assert prompt.index("I am Ada.") < prompt.index("Ada likes tea.") < prompt.index("What do I like?")


def test_a_summary_that_is_none(serve: Serve) -> None:
    with pytest.raises(openai.InternalServerError, match="wrote no summary"):
        serve("").client().responses.compact(model="default", input="x")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": "x"}, "model"),
        ({"model": "default"}, None),
        ({"model": "default", "input": "x", "tools": []}, "tools"),
    ],
)
def test_compactions_that_are_wrong(serve: Serve, body: Any, param: str | None) -> None:
    answer = httpx.post(f"{serve('never').url}/v1/responses/compact", json=body, trust_env=False)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param


# --- tokens -----------------------------------------------------------------------------------------------------------


def counting(serve: Serve, context_length: int | None) -> Served:
    """A server whose engine counts bytes."""
    return serve(
        "Hi", engine={"tokenizer": byte_level(("<|im_start|>", "<|im_end|>")), "model": ModelInfo("m", context_length)}
    )


def test_input_tokens_are_counted(serve: Serve) -> None:
    served = counting(serve, 1000)
    client = served.client()
    count = client.responses.input_tokens.count(model="default", input="x").input_tokens
    assert client.responses.input_tokens.count(model="default", input="x" * 11).input_tokens == count + 10
    client.responses.create(model="default", input="x")
    assert count == len(served.engine.requests[0].prompt_ids or ())


def test_input_tokens_of_an_engine_that_cannot_count(serve: Serve) -> None:
    with pytest.raises(openai.BadRequestError, match="cannot count"):
        serve("Hi").client().responses.input_tokens.count(model="default", input="x")


def test_the_oldest_turns_are_left_out(serve: Serve) -> None:
    served = counting(serve, 400)
    turns: list[Any] = [{"role": "developer", "content": "RULES"}]
    for number in range(10):
        turns.append({"role": "user", "content": f"question {number} " + "." * 40})
        turns.append({"role": "assistant", "content": f"answer {number}"})
    turns.append({"role": "user", "content": "the last"})
    with pytest.raises(openai.BadRequestError) as caught:
        served.client().responses.create(model="default", input=turns)
    assert caught.value.code == "context_length_exceeded"
    response = served.client().responses.create(model="default", input=turns, truncation="auto")
    assert response.truncation == "auto"
    prompt = served.engine.requests[-1].prompt
    assert "RULES" in prompt
    assert "the last" in prompt
    assert "question 9" in prompt
    assert "question 0" not in prompt
    assert "answer 0" not in prompt
    assert len(served.engine.requests[-1].prompt_ids or ()) <= 400
    turns[-1] = {"role": "user", "content": "." * 1000}
    with pytest.raises(openai.BadRequestError, match="maximum context length"):
        served.client().responses.create(model="default", input=turns, truncation="auto")


def test_nothing_is_left_out_where_nothing_is_known(serve: Serve) -> None:
    served = counting(serve, None)
    served.client().responses.create(model="default", input="x" * 5000, truncation="auto")
    assert "x" * 5000 in served.engine.requests[0].prompt
