"""instructor: answers by a tool and by the API's own format, a tool as an answer, a stream of partial answers."""

import json

import instructor
from openai import OpenAI
from pydantic import BaseModel

client = OpenAI()
by_tool = instructor.from_openai(client)
by_format = instructor.from_openai(client, mode=instructor.Mode.JSON_SCHEMA)


class Person(BaseModel):
    name: str
    age: int


class get_weather(BaseModel):  # noqa: N801 - the name of the tool
    """The weather in a city."""

    city: str


def ask(asked, model, question, **options):
    messages = [{"role": "user", "content": question}]
    return asked.chat.completions.create(model="default", messages=messages, response_model=model, **options)


people = [ask(one, Person, "Who?") for one in (by_tool, by_format)]
assert people[0].model_dump() == people[1].model_dump()
*_, last = by_format.chat.completions.create_partial(
    model="default", messages=[{"role": "user", "content": "Who?"}], response_model=Person
)
assert last.model_dump() == people[0].model_dump()

wish = ask(by_tool, get_weather, "The weather in Oslo?")
call = {"name": "get_weather", "arguments": wish.model_dump_json()}
history = [
    {"role": "user", "content": "The weather in Oslo?"},
    {"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function", "function": call}]},
    {"role": "tool", "tool_call_id": "call_1", "content": "4 degrees"},
]
final = client.chat.completions.create(model="default", messages=history).choices[0].message.content
chunks = client.chat.completions.create(model="default", messages=[{"role": "user", "content": "Hello"}], stream=True)
text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
print(json.dumps({"structured": people[0].model_dump(), "tools": final, "called": [wish.city], "stream": text}))
