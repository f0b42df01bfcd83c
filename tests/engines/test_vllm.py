"""The vLLM engine against stand-ins for its server: what is asked of them, and what becomes of their failures."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fake_vllm import FakeVllm, Say, answer, refusal

from isogloss.constraints import Constraint
from isogloss.engines import Chunk, GenerationRequest, Sampling, Usage
from isogloss.engines._endpoint import EngineBusyError
from isogloss.engines.vllm import VllmEngine
from isogloss.errors import EngineCapabilityError, EngineError, EngineTimeoutError, EngineUnavailableError
from isogloss.events import Piece
from isogloss.grammar import Literal, Marker, Nested
from isogloss.grammar import Sequence as Terms
from isogloss.tokenizers import Tokenizer, byte_level, from_gguf, from_tokenizer_json, o200k_harmony

pytestmark = pytest.mark.anyio

TOKENIZER = byte_level(["<|im_end|>", "<tool>"])
END, CALL = (TOKENIZER.special_tokens[text] for text in ("<|im_end|>", "<tool>"))
ASK = GenerationRequest(prompt="a")


def saying(text: str, *ends: int) -> Say:
    ids = [*TOKENIZER.encode(text), *ends]
    return lambda body: ids


@asynccontextmanager
async def started(*fakes: FakeVllm, **options: Any) -> AsyncIterator[VllmEngine]:
    async with AsyncExitStack() as stack:
        for fake in fakes:
            await stack.enter_async_context(fake.serving())
        engine = VllmEngine(",".join(fake.url for fake in fakes), **{"tokenizer": TOKENIZER, **options})
        await engine.start()
        stack.push_async_callback(engine.close)
        yield engine


async def chunks_of(engine: VllmEngine, request: GenerationRequest = ASK) -> list[Chunk]:
    async with aclosing(engine.generate(request)) as chunks:
        return [chunk async for chunk in chunks]


def pieces_of(chunks: Sequence[Chunk]) -> list[Piece]:
    return [piece for chunk in chunks for piece in chunk.pieces]


def text_of(chunks: Sequence[Chunk]) -> str:
    return "".join(piece.text for piece in pieces_of(chunks))


async def test_what_is_asked() -> None:
    sampling = Sampling(
        max_tokens=5,
        temperature=0.5,
        top_p=0.9,
        seed=7,
        stop=("<tool>", "x"),
        logprobs=0,
        presence_penalty=0.1,
        frequency_penalty=0.2,
        logit_bias={65: -1.0},
    )
    options = {"priority": 3, "cache_salt": "salt", "top_k": 4}
    fake = FakeVllm(TOKENIZER, saying("b", END))
    async with started(fake) as engine:
        await chunks_of(engine, GenerationRequest(prompt_ids=(1, 2), sampling=sampling, options=options))
        await chunks_of(engine)
    asked, plain = fake.asked
    always = {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_token_ids": True,
        "return_tokens_as_token_ids": True,
        "skip_special_tokens": False,
        "spaces_between_special_tokens": False,
    }
    assert asked == {
        **always,
        **options,
        "prompt": [1, 2],
        "stop_token_ids": [CALL],
        "max_tokens": 5,
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 7,
        "logprobs": 0,
        "presence_penalty": 0.1,
        "frequency_penalty": 0.2,
        "logit_bias": {"65": -1.0},
    }
    assert plain == {**always, "prompt": [ord("a")], "stop_token_ids": [], "max_tokens": 1023}


async def test_no_more_is_asked_for_than_the_context_holds() -> None:
    fake = FakeVllm(TOKENIZER, saying("b", END), max_model_len=8)
    async with started(fake) as engine:
        await chunks_of(engine, GenerationRequest(prompt="abc", sampling=Sampling(max_tokens=100)))
        assert fake.asked[-1]["max_tokens"] == 5
        with pytest.raises(EngineCapabilityError, match="has 8 tokens, the context holds 8") as caught:
            await chunks_of(engine, GenerationRequest(prompt="12345678"))
    assert caught.value.code == "context_length_exceeded"
    assert len(fake.asked) == 1


@pytest.mark.parametrize("tokens_per_event", [1, 2, 3, 100])
async def test_ids_and_text_match_however_many_tokens_an_event_tells(tokens_per_event: int) -> None:
    text = "é日本🦊!"
    fake = FakeVllm(TOKENIZER, saying(text, END), tokens_per_event=tokens_per_event)
    async with started(fake) as engine:
        chunks = await chunks_of(engine)
    assert pieces_of(chunks) == [*map(Piece, text), Piece("<|im_end|>", is_control=True)]
    for chunk in chunks:
        assert TOKENIZER.decode(chunk.token_ids) == text_of([chunk])
    count = len(text.encode()) + 1
    assert chunks[-1] == Chunk(finish="stop", usage=Usage(1, count, 0))


async def test_a_character_that_the_limit_cuts() -> None:
    async with started(FakeVllm(TOKENIZER, saying("a🦊"))) as engine:
        chunks = await chunks_of(engine, GenerationRequest(prompt="a", sampling=Sampling(max_tokens=3)))
    assert pieces_of(chunks) == [Piece("a"), Piece("\ufffd")]
    assert chunks[-1] == Chunk(finish="length", usage=Usage(1, 3, 0))


async def test_what_was_cached_is_counted() -> None:
    async with started(FakeVllm(TOKENIZER, saying("b", END))) as engine:
        chunks = await chunks_of(engine, GenerationRequest(prompt="a" * 40))
    assert chunks[-1].usage == Usage(40, 2, 32)


async def test_a_server_that_ignores_the_grammar_later_on_is_noticed() -> None:
    fake = FakeVllm(TOKENIZER, saying("no", END))
    async with started(fake) as engine:
        fake.backend = None
        chunks = engine.generate(GenerationRequest(prompt="a", grammar='%llguidance {}\nstart: "never"'))
        async with aclosing(chunks):
            assert (await anext(chunks)).pieces == (Piece("n"),)
            with pytest.raises(EngineError, match="broke the grammar that it was given: it wrote 'o'"):
                await anext(chunks)


async def test_a_server_with_xgrammar_gets_structural_tags() -> None:
    constraint = Constraint(Terms((Marker("<tool>"), Literal("b"))))
    request = GenerationRequest(prompt="a", grammar=constraint.lark_for(TOKENIZER), term=constraint.term)
    fake = FakeVllm(TOKENIZER, lambda body: [CALL, ord("b"), END], backend="xgrammar")
    async with started(fake) as engine:
        chunks = await chunks_of(engine, request)
        beyond = GenerationRequest(prompt="a", grammar='start: "b"', term=Nested('start: "b"'))
        with pytest.raises(EngineCapabilityError, match=r'grammar in Lark: start vLLM with .*"backend":"guidance"'):
            await chunks_of(engine, beyond)
        with pytest.raises(EngineCapabilityError, match=r'only structural tags: start vLLM with .*"guidance"'):
            await chunks_of(engine, GenerationRequest(prompt="a", grammar='start: "b"'))
    assert json.loads(fake.asked[0]["structured_outputs"]["structural_tag"]) == {
        "type": "structural_tag",
        "format": {
            "type": "sequence",
            "elements": [{"type": "token", "token": CALL}, {"type": "const_string", "value": "b"}],
        },
    }
    assert pieces_of(chunks) == [Piece("<tool>", is_control=True), Piece("b")]


async def test_what_xgrammar_allows_beyond_the_grammar_passes() -> None:
    constraint = Constraint(Literal("ab"))
    request = GenerationRequest(prompt="a", grammar=constraint.lark_for(TOKENIZER), term=constraint.term)
    fake = FakeVllm(TOKENIZER, saying("a b", END), backend="xgrammar")
    async with started(fake) as engine:
        fake.backend = None  # it says something else than was asked for
        chunks = await chunks_of(engine, request)
    assert pieces_of(chunks) == [*map(Piece, "a b"), Piece("<|im_end|>", is_control=True)]


@pytest.mark.parametrize("grammar", ["auto", "guidance", "xgrammar"])
async def test_a_server_that_ignores_grammars_is_refused(grammar: str) -> None:
    with pytest.raises(EngineCapabilityError, match=r'start vLLM with .*"backend":"guidance"'):
        async with started(FakeVllm(TOKENIZER, saying("b"), backend=None), grammar=grammar):
            pass


async def test_without_grammars() -> None:
    fake = FakeVllm(TOKENIZER, saying("b", END), backend=None)
    async with started(fake, grammar="none") as engine:
        assert not engine.takes_grammar
        assert text_of(await chunks_of(engine)) == "b<|im_end|>"
        with pytest.raises(EngineCapabilityError, match="it takes no grammar"):
            await chunks_of(engine, GenerationRequest(prompt="a", grammar='start: "b"'))


async def test_the_replica_with_the_least_to_do_is_asked() -> None:
    one, two = FakeVllm(TOKENIZER, saying("one", END)), FakeVllm(TOKENIZER, saying("two", END))
    async with started(one, two) as engine, AsyncExitStack() as stack:
        one.hold = two.hold = asyncio.Event()
        streams = [await stack.enter_async_context(aclosing(engine.generate(ASK))) for _ in range(4)]
        for stream in streams:
            await anext(stream)
        assert (one.running, two.running) == (2, 2)
        one.hold.set()
        rest = []
        for stream in streams:
            rest.append(text_of([chunk async for chunk in stream]))  # noqa: PERF401 - 3.10 has no such comprehension
        assert rest == ["ne<|im_end|>", "wo<|im_end|>"] * 2


FAILURES_BEFORE = [
    refusal(500, "no room"),
    refusal(502, "gateway"),
    refusal(429, "later", "Retry-After: 7"),
    b"",
    b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n",
    answer(b"data: [DONE]\n\n"),
]


@pytest.mark.parametrize("failure", FAILURES_BEFORE[1:], ids=["502", "429", "silent", "cut", "nothing"])
async def test_a_replica_that_fails_before_the_first_token_is_replaced(failure: bytes) -> None:
    bad, good = FakeVllm(TOKENIZER, saying("bad"), answers=[failure]), FakeVllm(TOKENIZER, saying("good", END))
    async with started(bad, good) as engine:
        assert text_of(await chunks_of(engine)) == "good<|im_end|>"
        assert text_of(await chunks_of(engine)) == "good<|im_end|>"
    assert len(bad.asked) == 1  # it is down until it is greeted again


async def test_a_replica_that_fails_after_the_first_token_ends_the_generation() -> None:
    begun = b'data: {"choices":[{"index":0,"text":"b","token_ids":[98],"finish_reason":null}]}\n\n'
    bad, good = FakeVllm(TOKENIZER, saying("bad"), answers=[answer(begun)]), FakeVllm(TOKENIZER, saying("good", END))
    async with started(bad, good) as engine:
        chunks = engine.generate(ASK)
        assert (await anext(chunks)).pieces == (Piece("b"),)
        with pytest.raises(EngineUnavailableError, match="ended before it was complete; 1 tokens had come"):
            await anext(chunks)
    assert good.asked == []


async def test_when_all_fail_the_last_failure_is_told() -> None:
    fakes = [FakeVllm(TOKENIZER, saying("bad"), answers=[refusal(429, "later", "Retry-After: 7")]) for _ in range(2)]
    async with started(*fakes) as engine:
        with pytest.raises(EngineBusyError, match="answered 429: later") as caught:
            await chunks_of(engine)
    assert caught.value.retry_after == 7
    assert caught.value.status == 503


async def test_a_replica_that_was_down_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isogloss.engines._replicas.CHECK_EVERY", 0.001)
    late, good = FakeVllm(TOKENIZER, saying("late", END)), FakeVllm(TOKENIZER, saying("good", END))
    async with late.serving():
        port = int(late.url.rpartition(":")[2])
    async with good.serving():
        engine = VllmEngine(f"{late.url},{good.url}", tokenizer=TOKENIZER)
        await engine.start()
        try:
            assert text_of(await chunks_of(engine)) == "good<|im_end|>"
            async with late.serving(port):
                while text_of(await chunks_of(engine)) != "late<|im_end|>":
                    await asyncio.sleep(0)
                await engine.health()
        finally:
            await engine.close()


async def test_replicas_of_different_models_are_refused() -> None:
    with pytest.raises(EngineCapabilityError, match="does not serve `m`; it serves `other`"):
        async with started(FakeVllm(TOKENIZER, saying("")), FakeVllm(TOKENIZER, saying(""), model="other")):
            pass


async def test_replicas_must_constrain_alike() -> None:
    with pytest.raises(EngineCapabilityError, match="does not constrain output with `guidance`"):
        async with started(FakeVllm(TOKENIZER, saying("")), FakeVllm(TOKENIZER, saying(""), backend="xgrammar")):
            pass


async def test_the_model_can_be_named() -> None:
    async with started(FakeVllm(TOKENIZER, saying(""), model="x"), model_id="x") as engine:
        model = await engine.model()
    assert (model.id, model.context_length, model.chat_template) == ("x", 1024, None)
    with pytest.raises(EngineCapabilityError, match="does not serve `y`; it serves `x`"):
        async with started(FakeVllm(TOKENIZER, saying(""), model="x"), model_id="y"):
            pass


async def test_keys() -> None:
    async with started(FakeVllm(TOKENIZER, saying("b", END), api_key="k"), api_key="k") as engine:
        assert text_of(await chunks_of(engine)) == "b<|im_end|>"
    with pytest.raises(EngineUnavailableError, match="answered 401: Unauthorized"):
        async with started(FakeVllm(TOKENIZER, saying(""), api_key="k"), api_key="wrong"):
            pass


async def test_health() -> None:
    one, two = FakeVllm(TOKENIZER, saying("")), FakeVllm(TOKENIZER, saying(""))
    async with started(one, two) as engine:
        one.is_healthy = False
        await engine.health()
        two.is_healthy = False
        with pytest.raises(EngineUnavailableError, match="answered 503"):
            await engine.health()


async def test_leaving_early_frees_the_place() -> None:
    fake = FakeVllm(TOKENIZER, saying("abc" * 10))
    async with started(fake) as engine:
        fake.hold = asyncio.Event()
        async with aclosing(engine.generate(ASK)) as chunks:
            await anext(chunks)
            assert fake.running == 1
        while fake.running:
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("stream", "kind", "reason"),
    [
        (answer(b'data: {"error":{"message":"no room","code":500}}\n\n'), EngineError, "failed: no room"),
        (answer(b"data: {5}\n\n"), EngineError, "sent what is no completion event"),
        (answer(b'data: {"choices":[{"text":"b"}]}\n\n'), EngineCapabilityError, "too old: it reports no token ids"),
        (
            answer(b'data: {"choices":[{"text":"","token_ids":[],"finish_reason":"abort"}]}\n\n'),
            EngineError,
            "ended the generation: abort",
        ),
        (answer(b'data: {"choices":[{"token_ids":[9999]}]}\n\n'), EngineError, "not in its tokenizer"),
        (refusal(500, "oops"), EngineError, "answered 500: oops"),
        (refusal(400, "bad `seed`"), EngineCapabilityError, "answered 400: bad `seed`"),
        (refusal(504, "slow"), EngineTimeoutError, "answered 504: slow"),
    ],
)
async def test_a_generation_that_fails(stream: bytes, kind: type[EngineError], reason: str) -> None:
    async with started(FakeVllm(TOKENIZER, saying(""), answers=[stream])) as engine:
        with pytest.raises(EngineError, match=reason) as caught:
            await chunks_of(engine)
    assert type(caught.value) is kind


async def test_a_server_that_falls_silent() -> None:
    async with started(FakeVllm(TOKENIZER, saying(""), answers=[None]), timeout=0.05) as engine:
        with pytest.raises(EngineTimeoutError, match="did not answer in time"):
            await chunks_of(engine)


async def test_what_is_not_for_it() -> None:
    async with started(FakeVllm(TOKENIZER, saying(""))) as engine:
        with pytest.raises(EngineCapabilityError, match="takes a prompt, not messages"):
            await chunks_of(engine, GenerationRequest(messages=({"role": "user", "content": "a"},)))
        with pytest.raises(EngineCapabilityError, match="does not know these options: dry_base"):
            await chunks_of(engine, GenerationRequest(prompt="a", options={"dry_base": 1}))
    with pytest.raises(EngineUnavailableError, match="has not been started"):
        await chunks_of(engine)
    for target in ("", "model.gguf", "http://a,b"):
        with pytest.raises(EngineCapabilityError, match="Expected a URL"):
            VllmEngine(target)
    with pytest.raises(EngineCapabilityError, match="for grammar, got `regex`"):
        VllmEngine("http://a", grammar="regex")


async def test_nobody_at_the_url() -> None:
    with pytest.raises(EngineUnavailableError, match=r"vLLM's server at `http://127.0.0.1:9` broke"):
        await VllmEngine("http://me:secret@127.0.0.1:9/v1/", tokenizer=TOKENIZER).start()


async def test_what_is_no_vllm_server() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer(b"<html>"))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(EngineUnavailableError, match="There is no vLLM's server at"):
            await VllmEngine(url, tokenizer=TOKENIZER).start()


async def test_another_models_tokenizer_is_noticed() -> None:
    with pytest.raises(EngineUnavailableError, match="is not that of the model `m`: the server reads its ids as"):
        async with started(FakeVllm(o200k_harmony(), saying("")), tokenizer=TOKENIZER):
            pass


async def test_the_tokenizer_is_a_file_that_is_named(demo_model_path: Path, demo_tokenizer: Tokenizer) -> None:
    async with started(FakeVllm(demo_tokenizer, lambda body: [2]), tokenizer=str(demo_model_path)) as engine:
        assert engine.tokenizer is demo_tokenizer
    missing = str(demo_model_path.parent / "missing.json")
    with pytest.raises(EngineUnavailableError, match="tokenizer cannot be used: Cannot read"):
        async with started(FakeVllm(demo_tokenizer, lambda body: [2]), tokenizer=missing):
            pass


@pytest.fixture
def demo_tokenizer(demo_model_path: Path) -> Tokenizer:
    return from_gguf(demo_model_path)


async def test_the_tokenizer_is_in_the_servers_own_folder(tmp_path: Path) -> None:
    letters = {chr(code): number for number, code in enumerate(range(0x21, 0x7F))}
    definition: Mapping[str, Any] = {
        "model": {"type": "BPE", "vocab": {**letters, **BYTES}, "merges": []},
        "pre_tokenizer": {"type": "ByteLevel", **LEVEL, "use_regex": True},
        "decoder": {"type": "ByteLevel", **LEVEL, "use_regex": True},
        "added_tokens": [{"id": 300, "content": "<over>", "special": True, **FLAGS}],
    }
    folder = tmp_path / "snapshot"
    folder.mkdir()
    (tmp_path / "blob").write_text(json.dumps(definition))
    (folder / "tokenizer.json").symlink_to(tmp_path / "blob")  # as in the hub's cache
    config = {"chat_template": "{{ messages }}", "bos_token": {"content": "<s>"}, "eos_token": "<over>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    own = from_tokenizer_json(folder)
    async with started(FakeVllm(own, lambda body: [300], root=str(folder)), tokenizer=None) as engine:
        assert engine.tokenizer is own
        assert own.end_tokens == {300}
        model = await engine.model()
        assert (model.chat_template, model.template_tokens) == (
            "{{ messages }}",
            {"bos_token": "<s>", "eos_token": "<over>"},
        )
        assert pieces_of(await chunks_of(engine)) == [Piece("<over>", is_control=True)]


LEVEL = {"add_prefix_space": False, "trim_offsets": True}
FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
BYTES = {chr(256 + index): 100 + index for index in range(68)} | {
    chr(code): 200 + index for index, code in enumerate([*range(0xA1, 0xAD), *range(0xAE, 0x100)])
}
"""The other bytes, as byte-level vocabularies write them."""


async def test_without_a_tokenizer() -> None:
    with pytest.raises(EngineUnavailableError, match=r"vocabulary of `models/m` is not on this machine.*tokenizer"):
        async with started(FakeVllm(TOKENIZER, saying("")), tokenizer=None):
            pass
