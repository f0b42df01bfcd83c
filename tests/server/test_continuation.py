"""A conversation that goes on is prompted from the tokens that the engine has seen and sampled, by either API."""

from __future__ import annotations

from isogloss.dialects import get_dialect
from isogloss.engines.scripted import Script
from isogloss.tokenizers import byte_level

from .conftest import Serve, Served

TOKENIZER = byte_level(sorted(get_dialect("hermes").markers.special))
CALL = '<tool_call>{"name":"list_files",  "arguments": {}}</tool_call><|im_end|>'
"""Not as it is rendered."""
TOOL = {"type": "function", "name": "list_files", "parameters": {"type": "object", "properties": {}}}


def script(output: str) -> Script:
    return Script(output, cut="tokens", control=tuple(TOKENIZER.special_tokens))


def check_continued(served: Served, output: str) -> None:
    """The second prompt begins with the first one and the output, token by token."""
    first, second = served.engine.requests
    assert first.prompt_ids is not None
    assert second.prompt_ids is not None
    assert second.prompt_ids[: len(first.prompt_ids)] == first.prompt_ids
    assert second.prompt.startswith(first.prompt + output)
    assert second.prompt_ids[len(first.prompt_ids)] == TOKENIZER.special_tokens["<think>"]


def test_responses(serve: Serve) -> None:
    output = f"<think>Hm.</think>{CALL}"
    served = serve(script(output), script("Done.<|im_end|>"), engine={"tokenizer": TOKENIZER})
    client = served.client()
    first = client.responses.create(model="default", input="Which files?", tools=[TOOL])  # type: ignore[list-item]
    call = next(item for item in first.output if item.type == "function_call")
    second = client.responses.create(
        model="default",
        previous_response_id=first.id,
        input=[{"type": "function_call_output", "call_id": call.call_id, "output": "a.txt"}],
        tools=[TOOL],  # type: ignore[list-item]
    )
    assert second.output_text == "Done."
    check_continued(served, output)


def test_chat_completions(serve: Serve) -> None:
    output = f"<think>Hm.</think>{CALL}"
    served = serve(script(output), script("Done.<|im_end|>"), engine={"tokenizer": TOKENIZER})
    client = served.client()
    tools = [{"type": "function", "function": {key: value for key, value in TOOL.items() if key != "type"}}]
    messages = [{"role": "user", "content": "Which files?"}]
    first = client.chat.completions.create(model="default", messages=messages, tools=tools)  # type: ignore[call-overload]
    said = first.choices[0].message
    messages += [
        said.model_dump(exclude_none=True, include={"role", "content", "tool_calls"}),
        {"role": "tool", "tool_call_id": said.tool_calls[0].id, "content": "a.txt"},
    ]
    client.chat.completions.create(model="default", messages=messages, tools=tools)  # type: ignore[call-overload]
    check_continued(served, output)
