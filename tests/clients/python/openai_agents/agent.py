"""openai-agents, over the Responses API."""

import asyncio
import json

from agents import Agent, Runner, function_tool, set_tracing_disabled
from openai.types.responses import ResponseTextDeltaEvent
from pydantic import BaseModel

set_tracing_disabled(True)
called = []


class Person(BaseModel):
    name: str
    age: int


@function_tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    called.append(city)
    return "4 degrees"


async def main():
    structured = await Runner.run(Agent(name="a", model="default", output_type=Person), "Who?")
    tools = await Runner.run(Agent(name="b", model="default", tools=[get_weather]), "The weather in Oslo?")
    streamed = Runner.run_streamed(Agent(name="c", model="default"), "Hello")
    text = ""
    async for event in streamed.stream_events():
        if event.type == "raw_response_event" and isinstance(event.data, ResponseTextDeltaEvent):
            text += event.data.delta
    assert text == streamed.final_output
    told = {"structured": structured.final_output.model_dump(), "tools": tools.final_output, "called": called}
    print(json.dumps({**told, "stream": text}))


asyncio.run(main())
