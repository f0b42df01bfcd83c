"""What is kept: on SQLite in memory and in a file, and on a real PostgreSQL, by the official client."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import openai
import pytest
import sqlalchemy as sa

from isogloss.chat import Chat
from isogloss.dialects import get_dialect
from isogloss.engines.scripted import Script, ScriptedEngine
from isogloss.errors import RequestError
from isogloss.server import ApiKey, lease
from isogloss.server import state as state_module
from isogloss.server.database import Database, StateUnavailableError, default_url
from isogloss.server.lease import SILENCE
from isogloss.server.response_store import StoredResponse
from isogloss.server.state import State
from isogloss.server.tables import CONVERSATIONS, SERVERS

from .conftest import SHARED_STORES, STORES, Served, serving

every_store = pytest.mark.parametrize("store", STORES, indirect=True)
shared_store = pytest.mark.parametrize("store", SHARED_STORES, indirect=True)

KEYS = (ApiKey("ada", "secret-a"), ApiKey("bob", "secret-b"))


@contextmanager
def running(store: str, *scripts: str | Script, **options: Any) -> Iterator[Served]:
    with serving(Chat(ScriptedEngine(scripts or "Hi"), get_dialect("hermes")), store=store, **options) as served:
        yield served


# --- responses and conversations --------------------------------------------------------------------------------------


@every_store
def test_responses_chain_page_and_go(store: str) -> None:
    with running(store, "one", "two", "three") as served:
        client = served.client()
        first = client.responses.create(model="default", input=[{"role": "user", "content": text} for text in "abc"])
        second = client.responses.create(model="default", input="d", previous_response_id=first.id)
        third = client.responses.create(model="default", input="e", previous_response_id=second.id)
        prompt = served.engine.requests[-1].prompt
        places = [prompt.index(f"\n{text}<") for text in ("a", "b", "c", "one", "d", "two", "e")]
        assert places == sorted(places)
        assert client.responses.retrieve(third.id) == third
        paged = client.responses.input_items.list(first.id, order="asc", limit=2)
        assert [item.content[0].text for item in paged] == ["a", "b", "c"]  # type: ignore[union-attr]
        client.responses.delete(first.id)
        with pytest.raises(openai.BadRequestError, match=first.id) as caught:
            client.responses.create(model="default", input="f", previous_response_id=third.id)
        assert caught.value.code == "previous_response_not_found"


@every_store
def test_a_conversation(store: str) -> None:
    with running(store, "one", "two") as served:
        client = served.client()
        conversation = client.conversations.create(
            metadata={"topic": "x"}, items=[{"type": "message", "role": "user", "content": "before"}]
        )
        client.responses.create(model="default", input="hello", conversation=conversation.id)
        with client.responses.stream(model="default", input="again", conversation=conversation.id) as stream:
            answer = stream.get_final_response()
        assert answer.conversation is not None
        assert answer.conversation.id == conversation.id
        prompt = served.engine.requests[-1].prompt
        places = [prompt.index(text) for text in ("before", "hello", "one", "again")]
        assert places == sorted(places)

        items = client.conversations.items
        listed = list(items.list(conversation.id, order="asc", limit=2))
        assert [item.content[0].text for item in listed] == ["before", "hello", "one", "again", "two"]  # type: ignore[union-attr]
        assert [item.id for item in items.list(conversation.id)] == [item.id for item in reversed(listed)]
        added = items.create(conversation.id, items=[{"role": "user", "content": "more"}])
        assert items.retrieve(added.data[0].id or "", conversation_id=conversation.id).type == "message"
        items.delete(added.data[0].id or "", conversation_id=conversation.id)
        with pytest.raises(openai.NotFoundError):
            items.retrieve(added.data[0].id or "", conversation_id=conversation.id)

        unkept = client.responses.create(model="default", input="aside", conversation=conversation.id, store=False)
        assert "again" in served.engine.requests[-1].prompt
        assert [item.id for item in items.list(conversation.id, order="asc")] == [item.id for item in listed]
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(unkept.id)

        assert client.conversations.update(conversation.id, metadata={"topic": "y"}).metadata == {"topic": "y"}
        assert client.conversations.retrieve(conversation.id).metadata == {"topic": "y"}
        assert client.conversations.delete(conversation.id).deleted
        with pytest.raises(openai.NotFoundError):
            client.conversations.retrieve(conversation.id)
        with pytest.raises(openai.NotFoundError) as caught:
            client.responses.create(model="default", input="x", conversation=conversation.id)
        assert caught.value.param == "conversation"


@every_store
def test_items_are_referred_to(store: str) -> None:
    call = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    tool: Any = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": False}
    with running(store, f"<think>Hm.</think>{call}", "done") as served:
        client = served.client()
        first = client.responses.create(model="default", input="go", tools=[tool])
        again: list[Any] = [{"role": "user", "content": "go"}]
        again += [{"type": "item_reference", "id": item.id} for item in first.output]
        again.append({"type": "function_call_output", "call_id": first.output[-1].call_id, "output": "5"})  # type: ignore[union-attr]
        assert client.responses.create(model="default", input=again, tools=[tool]).output_text == "done"
        assert "Hm." in served.engine.requests[-1].prompt or "<tool_call>" in served.engine.requests[-1].prompt
        with pytest.raises(openai.NotFoundError) as caught:
            client.responses.create(model="default", input=[{"type": "item_reference", "id": "rs_none"}])
        assert caught.value.param == "input[0].id"


# --- chat completions -------------------------------------------------------------------------------------------------


@every_store
def test_stored_completions(store: str) -> None:
    key = 'a "b".c'
    with running(store, "one", "two", "three") as served:
        client = served.client()
        stored = client.chat.completions
        messages: list[Any] = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Hello"}]},
        ]
        first = stored.create(model="default", messages=messages, store=True, metadata={key: "1", "x": "y"})
        stream = stored.create(model="default", messages=messages, store=True, metadata={key: "2"}, stream=True)
        [second_id] = {chunk.id for chunk in stream}
        stored.create(model="default", messages=messages)
        ours = [one.id for one in stored.list(limit=1) if one.id in (first.id, second_id)]
        assert ours == [first.id, second_id]
        assert [one.id for one in stored.list(order="desc", metadata={key: "2"})] == [second_id]
        assert list(stored.list(model="other")) == []
        assert stored.retrieve(second_id).choices[0].message.content == "two"
        held = list(stored.messages.list(first.id, limit=1))
        assert [message.content for message in held] == ["Be brief.", "Hello"]
        assert held[1].content_parts is not None
        assert len({message.id for message in held}) == 2
        assert stored.update(first.id, metadata={key: "3"}).metadata == {key: "3"}  # type: ignore[attr-defined]
        assert [one.id for one in stored.list(metadata={key: "3"})] == [first.id]
        assert list(stored.list(metadata={"x": "y"})) == []
        for completion_id in (first.id, second_id):
            assert stored.delete(completion_id).deleted
            with pytest.raises(openai.NotFoundError):
                stored.retrieve(completion_id)


@every_store
def test_what_one_key_stored_no_other_key_sees(store: str) -> None:
    with running(store, keys=KEYS) as served:
        ada, bob = (served.client(api_key=key.value) for key in KEYS)
        response = ada.responses.create(model="default", input="x")
        conversation = ada.conversations.create()
        completion = ada.chat.completions.create(
            model="default", messages=[{"role": "user", "content": "x"}], store=True
        )
        for work in (
            lambda: bob.responses.retrieve(response.id),
            lambda: bob.responses.delete(response.id),
            lambda: bob.responses.create(
                model="default", input=[{"type": "item_reference", "id": response.output[0].id or ""}]
            ),
            lambda: bob.conversations.retrieve(conversation.id),
            lambda: bob.conversations.items.list(conversation.id),
            lambda: bob.conversations.delete(conversation.id),
            lambda: bob.chat.completions.retrieve(completion.id),
            lambda: bob.chat.completions.delete(completion.id),
        ):
            with pytest.raises(openai.NotFoundError):
                work()
        with pytest.raises(openai.BadRequestError, match="not found"):
            bob.responses.create(model="default", input="x", previous_response_id=response.id)
        assert list(bob.chat.completions.list()) == []
        assert ada.responses.retrieve(response.id).id == response.id


@pytest.mark.parametrize(
    "metadata", [{"k" * 65: "v"}, {"k": "v" * 513}, {str(n): "" for n in range(17)}, {"k": 5}, {"k": "\0"}, []]
)
@pytest.mark.parametrize("path", ["chat/completions", "responses", "conversations"])
def test_metadata_that_is_none(shared_server: Served, path: str, metadata: Any) -> None:
    body: dict[str, Any] = {"metadata": metadata}
    if path != "conversations":
        body |= {"model": "default", "input": "x"} if path == "responses" else {"model": "default"}
    if path == "chat/completions":
        body["messages"] = [{"role": "user", "content": "x"}]
    answer = httpx.post(f"{shared_server.url}/v1/{path}", json=body, trust_env=False)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"].startswith("metadata")


@pytest.mark.parametrize(
    ("items", "param"),
    [
        ([], "items"),
        ([{"role": "user", "content": "x"}] * 21, "items"),
        ([{"role": "robot", "content": "x"}], "items[0].role"),
        ([{"type": "function_call_output", "call_id": "none", "output": "x"}], "items[0].call_id"),
        (["x"], "items[0]"),
    ],
)
def test_items_that_are_none(shared_server: Served, items: Any, param: str) -> None:
    answer = httpx.post(f"{shared_server.url}/v1/conversations", json={"items": items}, trust_env=False)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param


# --- the database and who shares it -----------------------------------------------------------------------------------


@shared_store
def test_what_is_kept_outlives_the_server(store: str) -> None:
    with running(store) as served:
        response = served.client().responses.create(model="default", input="x")
    with running(store) as served:
        assert served.client().responses.retrieve(response.id) == response


async def nothing() -> None: ...


def response_of(name: str, *, is_background: bool = False) -> StoredResponse:
    body = {"id": name, "previous_response_id": None, "status": "in_progress", "output": []}
    return StoredResponse(body, (), is_background)


@shared_store
def test_a_server_that_fell_silent_loses_its_responses(store: str) -> None:
    async def work() -> None:
        silent, other = State(store, 1000), State(store, 1000)
        await silent.start(nothing)
        await other.start(nothing)
        name = f"resp_{silent.lease.server_id}"
        await silent.responses.begin("me", response_of(name, is_background=True))
        assert await silent.responses.advance(name, None, [(0, b'{"type":"response.created"}')])
        assert await other.responses.fail_orphans() == 0

        past = SERVERS.update().where(SERVERS.c.id == silent.lease.server_id)
        await other.database.run(lambda c: c.execute(past.values(seen_at=SERVERS.c.seen_at - SILENCE - 1)))
        assert await other.responses.fail_orphans() == 1
        kept = await other.responses.get("me", name)
        assert kept is not None
        assert kept.body["status"] == "failed"
        assert kept.body["error"]["code"] == "server_error"
        assert [number for number, _ in await other.responses.events(name, -1)] == [0, 1]

        assert not await silent.responses.advance(name, None, [(1, b"{}")])
        ended = StoredResponse({**kept.body, "status": "completed"}, ())
        assert not await silent.responses.end("me", ended)
        assert await silent.responses.still_mine([name]) == set()
        assert await other.responses.get("me", name) == kept
        await silent.close()
        await other.close()

    asyncio.run(work())


@shared_store
def test_the_old_is_forgotten(store: str) -> None:
    with running(store) as served:
        client = served.client()
        response = client.responses.create(model="default", input="x")
        conversation = client.conversations.create(items=[{"role": "user", "content": "x"}])
        completion = client.chat.completions.create(
            model="default", messages=[{"role": "user", "content": "x"}], store=True, metadata={"a": "b"}
        )
        asyncio.run(_open_and_close(State(store, -1000)))  # for which everything is too old
        for work in (
            lambda: client.responses.retrieve(response.id),
            lambda: client.conversations.retrieve(conversation.id),
            lambda: client.chat.completions.retrieve(completion.id),
        ):
            with pytest.raises(openai.NotFoundError):
                work()


def test_a_database_in_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "KEPT_IN_MEMORY", 2)
    monkeypatch.setattr(lease, "PERIOD", 0.01)
    with running("memory") as served:
        client = served.client()
        ids = [client.responses.create(model="default", input="x").id for _ in range(4)]
        while served_of(client, ids[1]):
            pass  # the next look forgets it
        assert [served_of(client, one) for one in ids] == [False, False, True, True]


def served_of(client: openai.OpenAI, response_id: str) -> bool:
    try:
        return client.responses.retrieve(response_id).id == response_id
    except openai.NotFoundError:
        return False


async def _open_and_close(state: State) -> None:
    await state.start(nothing)
    await state.close()


def test_a_cancelled_caller_does_not_break_a_transaction_off() -> None:
    async def work() -> None:
        state = State("memory", 1000)
        await state.start(nothing)
        begun = asyncio.ensure_future(state.conversations.create("me", {"a": "b"}, []))
        await asyncio.sleep(0)
        begun.cancel()
        with pytest.raises(asyncio.CancelledError):
            await begun
        count = sa.select(sa.func.count()).select_from(CONVERSATIONS)
        assert (await state.database.run(lambda c: c.execute(count))).scalar() == 1
        await state.close()

    asyncio.run(work())


@every_store
@pytest.mark.parametrize("path", ["responses/a%00b", "conversations/%00", "chat/completions?model=%00", "models/%00"])
def test_ids_with_nul(store: str, path: str) -> None:
    with running(store) as served:
        answer = httpx.get(f"{served.url}/v1/{path}", trust_env=False)
        assert answer.status_code in (400, 404)


@every_store
def test_nul_in_what_is_said(store: str) -> None:
    with running(store, "a\0b") as served:
        response = served.client().responses.create(model="default", input="c\0d")
        assert served.client().responses.retrieve(response.id).output_text == "a\0b"


@pytest.mark.parametrize("url", ["mysql://x/y", "nonsense", "http://x"])
def test_a_store_that_is_none(url: str) -> None:
    with pytest.raises(RequestError, match="Expected `memory`"):
        Database(url)


@pytest.mark.parametrize("url", ["sqlite:////proc/none/x.sqlite", "postgresql://127.0.0.1:1/none"])
def test_a_store_that_cannot_be_opened(url: str) -> None:
    async def work() -> None:
        database = Database(url)
        with pytest.raises(StateUnavailableError):
            await database.start()
        await database.close()

    asyncio.run(work())


def test_where_the_default_store_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOGLOSS_STATE_DIR", "/somewhere")
    assert default_url() == "sqlite:////somewhere/server.sqlite"
    monkeypatch.delenv("ISOGLOSS_STATE_DIR")
    assert default_url().endswith("server.sqlite")
