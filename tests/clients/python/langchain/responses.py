"""langchain-openai, over the Responses API."""

import json

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

called = []
model = ChatOpenAI(model="default", use_responses_api=True)


class Person(BaseModel):
    name: str
    age: int


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    called.append(city)
    return "4 degrees"


structured = model.with_structured_output(Person).invoke("Who?")
bound = model.bind_tools([get_weather], strict=True)
messages = [HumanMessage("The weather in Oslo?")]
messages.append(bound.invoke(messages))
messages += [get_weather.invoke(call) for call in messages[-1].tool_calls]
told = {"structured": structured.model_dump(), "tools": bound.invoke(messages).text, "called": called}
print(json.dumps({**told, "stream": "".join(chunk.text for chunk in model.stream("Hello"))}))
