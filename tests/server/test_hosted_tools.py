"""Tools that the server runs for the model: calls and their results as items, turn after turn."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.responses import Response

from isogloss.engines import Usage
from isogloss.engines.scripted import Script
from isogloss.messages import Tool, ToolCall, ToolMessage

from .conftest import Serve, Served
from .test_responses import CALL, WEATHER, create, events, raw

PYTHON: Any = {"type": "code_interpreter", "container": {"type": "auto"}}
SEARCH: Any = {"type": "web_search"}
CODE_CALL = '<tool_call>\n{"name": "python", "arguments": {"input": "2 + 3"}}\n</tool_call>'
SEARCH_CALL = '<tool_call>\n{"name": "browser.search", "arguments": {"query": "tea"}}\n</tool_call>'


class Kit:
    """Tools that tell what they were asked."""

    def __init__(self, *tools: Tool) -> None:
        self.tools = tools
        self.calls: list[ToolCall] = []
        self.is_closed = False

    async def run(self, call: ToolCall) -> ToolMessage:
        self.calls.append(call)
        return ToolMessage(call.id, call.name, f"result of {call.arguments}")

    async def close(self) -> None:
        self.is_closed = True


def hosting(serve: Serve, *scripts: str | Script) -> tuple[Served, list[Kit]]:
    kits: list[Kit] = []

    def make(*tools: Tool) -> Any:
        def made() -> Kit:
            kits.append(Kit(*tools))
            return kits[-1]

        return made

    search = Tool("browser.search", "", {"type": "object", "properties": {"query": {"type": "string"}}})
    served = serve(*scripts, hosted_tools={"python": make(Tool.custom("python")), "browser": make(search)})
    return served, kits


def test_code_is_run_and_the_model_goes_on(serve: Serve) -> None:
    scripts = Script(f"Let me see.\n{CODE_CALL}", usage=Usage(10, 4)), Script("5", usage=Usage(20, 1))
    served, _ = hosting(serve, *scripts)
    response = create(served, tools=[PYTHON])
    assert [item.type for item in response.output] == ["message", "code_interpreter_call", "message"]
    call = response.output[1]
    assert call.type == "code_interpreter_call"
    assert call.code == "2 + 3"
    assert call.outputs is not None
    assert call.outputs[0].type == "logs"
    assert call.outputs[0].logs == "result of {'input': '2 + 3'}"
    assert call.status == "completed"
    assert response.output_text.endswith("5")
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (30, 5)
    prompt = served.engine.requests[1].prompt
    assert prompt.index("Let me see.") < prompt.index("2 + 3") < prompt.index("result of")
    assert response.tools[0].type == "code_interpreter"
    Response.model_validate(raw(served, tools=[PYTHON]).json())


def test_the_events_of_a_call(serve: Serve) -> None:
    served, kits = hosting(serve, Script(CODE_CALL, cut=7), Script(SEARCH_CALL, cut=7), "done")
    found = events(served, tools=[PYTHON, SEARCH])
    kinds = [event["type"].removeprefix("response.") for event in found]
    code = ["in_progress", "interpreting", "completed"]
    assert [kind.partition(".")[2] for kind in kinds if kind.startswith("code_interpreter_call.")] == code
    search = ["in_progress", "searching", "completed"]
    assert [kind.partition(".")[2] for kind in kinds if kind.startswith("web_search_call.")] == search
    [written] = [event["code"] for event in found if event["type"].endswith("code.done")]
    assert written == "2 + 3"
    done = [event["item"] for event in found if event["type"] == "response.output_item.done"]
    assert done == found[-1]["response"]["output"]
    assert [item["type"] for item in done] == ["code_interpreter_call", "web_search_call", "message"]
    assert done[1]["action"] == {"type": "search", "query": "tea"}
    assert [len(kit.calls) for kit in kits] == [1, 1]
    assert all(kit.is_closed for kit in kits)


def test_what_was_run_is_remembered(serve: Serve) -> None:
    served, _ = hosting(serve, f"{CODE_CALL}\n{SEARCH_CALL}", "done", "again")
    first = create(served, tools=[PYTHON, SEARCH])
    create(served, input="more", previous_response_id=first.id)
    prompt = served.engine.requests[-1].prompt
    places = [
        prompt.index(text) for text in ("2 + 3", "result of {'input'", "tea", "result of {'query'", "done", "more")
    ]
    assert places == sorted(places)


def test_calls_of_the_client_are_left_to_it(serve: Serve) -> None:
    served, _ = hosting(serve, f"{CODE_CALL}\n{CALL}")
    response = create(served, tools=[PYTHON, WEATHER])
    assert [item.type for item in response.output] == ["code_interpreter_call", "function_call"]
    assert response.output[0].status == "completed"  # type: ignore[union-attr]
    assert len(served.engine.requests) == 1
    again: Any = [{"type": "function_call_output", "call_id": response.output[1].call_id, "output": "4"}]  # type: ignore[union-attr]
    create(served, input=again, previous_response_id=response.id)
    prompt = served.engine.requests[-1].prompt
    assert prompt.index("2 + 3") < prompt.index("Oslo") < prompt.rindex("<tool_response>")


def test_no_more_calls_than_were_asked_for(serve: Serve) -> None:
    served, kits = hosting(serve, f"{CODE_CALL}\n{CODE_CALL}", "never")
    response = create(served, tools=[PYTHON], max_tool_calls=1)
    assert [item.status for item in response.output] == ["completed", "incomplete"]  # type: ignore[union-attr]
    assert len(kits[0].calls) == 1
    assert len(served.engine.requests) == 1


def test_a_call_that_must_be_made_is_made_once(serve: Serve) -> None:
    served, kits = hosting(serve, CODE_CALL, "done")
    assert create(served, tools=[PYTHON], tool_choice={"type": "code_interpreter"}).output_text == "done"
    assert len(kits[0].calls) == 1


def test_the_limit_of_tokens_is_that_of_all_turns(serve: Serve) -> None:
    served, _ = hosting(serve, Script(CODE_CALL, usage=Usage(1, 30)), Script("abc", cut=1))
    response = create(served, tools=[PYTHON], max_output_tokens=32)
    assert [request.sampling.max_tokens for request in served.engine.requests] == [32, 2]
    assert response.status == "incomplete"


@pytest.mark.parametrize("tool", [PYTHON, SEARCH, {"type": "mcp"}])
def test_tools_that_are_not_enabled(serve: Serve, tool: Any) -> None:
    answer = raw(serve("never"), tools=[tool])
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "tools[0].type"
    assert tool["type"] in json.dumps(answer.json())
