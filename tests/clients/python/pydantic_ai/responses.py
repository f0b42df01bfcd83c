"""pydantic-ai, over the Responses API; structured answers by the API's own format."""

import asyncio
import json

from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIResponsesModel

model = OpenAIResponsesModel("default")
called = []


class Person(BaseModel):
    name: str
    age: int


def get_weather(city: str) -> str:
    """The weather in a city."""
    called.append(city)
    return "4 degrees"


async def main():
    structured = await Agent(model, output_type=NativeOutput(Person)).run("Who?")
    tools = await Agent(model, tools=[get_weather]).run("The weather in Oslo?")
    async with Agent(model).run_stream("Hello") as result:
        text = "".join([delta async for delta in result.stream_text(delta=True, debounce_by=None)])
    told = {"structured": structured.output.model_dump(), "tools": tools.output, "called": called}
    print(json.dumps({**told, "stream": text}))


asyncio.run(main())
