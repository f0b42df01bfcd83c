"""The official asynchronous client: create, parse and stream, in both APIs."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from isogloss.engines.scripted import Script

from .conftest import Serve

pytestmark = pytest.mark.anyio
HELLO: list[Any] = [{"role": "user", "content": "Hello"}]


class Person(BaseModel):
    name: str


ADA = Script('{"name": "Ada"}', cut=3)


async def test_chat_completions(serve: Serve) -> None:
    async with serve(ADA).async_client() as client:
        created = await client.chat.completions.create(model="default", messages=HELLO)
        assert created.choices[0].message.content == '{"name": "Ada"}'
        parsed = await client.chat.completions.parse(model="default", messages=HELLO, response_format=Person)
        assert parsed.choices[0].message.parsed == Person(name="Ada")
        async with client.chat.completions.stream(model="default", messages=HELLO, response_format=Person) as stream:
            kinds = [event.type async for event in stream]
            final = await stream.get_final_completion()
        assert kinds.count("content.done") == 1
        assert final.choices[0].message.parsed == Person(name="Ada")


async def test_responses(serve: Serve) -> None:
    async with serve(ADA).async_client() as client:
        created = await client.responses.create(model="default", input="Who?")
        assert created.output_text == '{"name": "Ada"}'
        parsed = await client.responses.parse(model="default", input="Who?", text_format=Person)
        assert parsed.output_parsed == Person(name="Ada")
        async with client.responses.stream(model="default", input="Who?", text_format=Person) as stream:
            kinds = [event.type async for event in stream]
            final = await stream.get_final_response()
        assert kinds[-1] == "response.completed"
        assert final.output_parsed == Person(name="Ada")
