from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from isogloss.engines import Chunk, GenerationRequest, ModelInfo, Sampling, TokenLogprob, Usage, open_engine
from isogloss.engines.scripted import Script, ScriptedEngine
from isogloss.errors import EngineCapabilityError, EngineError, EngineTimeoutError, EngineUnavailableError
from isogloss.events import Piece
from isogloss.tokenizers import byte_level

pytestmark = pytest.mark.anyio

ASK = GenerationRequest(prompt="hello")
CALL = byte_level(["<|call|>"])


async def chunks_of(engine: ScriptedEngine, request: GenerationRequest = ASK) -> list[Chunk]:
    async with aclosing(engine.generate(request)) as chunks:
        return [chunk async for chunk in chunks]


async def pieces_of(engine: ScriptedEngine, request: GenerationRequest = ASK) -> list[str]:
    return [piece.text for chunk in await chunks_of(engine, request) for piece in chunk.pieces]


async def test_cut_as_told() -> None:
    assert await pieces_of(ScriptedEngine("It is 5.")) == ["It is 5."]
    assert await pieces_of(ScriptedEngine(Script("It is 5.", cut=3))) == ["It ", "is ", "5."]
    assert await pieces_of(ScriptedEngine(Script(["It", " is"]))) == ["It", " is"]
    assert await pieces_of(ScriptedEngine(Script("aé🦊", cut="tokens"), tokenizer=byte_level())) == ["a", "é", "🦊"]
    with pytest.raises(EngineCapabilityError, match="needs a tokenizer"):
        await pieces_of(ScriptedEngine(Script("a", cut="tokens")))


async def test_tokens_have_ids_and_are_counted() -> None:
    chunks = await chunks_of(ScriptedEngine(Script("é<|call|>", "tokens", ("<|call|>",)), tokenizer=CALL))
    assert chunks == [
        Chunk((Piece("é"),), (0xC3, 0xA9)),
        Chunk((Piece("<|call|>", is_control=True),), (256,)),
        Chunk(finish="stop", usage=Usage(5, 3)),
    ]


async def test_control_tokens_are_never_cut() -> None:
    by_spelling = Script("ab<|call|>cd", cut=1, control=("<|call|>",))
    as_pieces = Script(["ab", Piece("<|call|>", is_control=True), "cd"], cut=1)
    for script in (by_spelling, as_pieces):
        chunks = await chunks_of(ScriptedEngine(script))
        pieces = [piece for chunk in chunks for piece in chunk.pieces]
        assert pieces == [Piece("a"), Piece("b"), Piece("<|call|>", is_control=True), Piece("c"), Piece("d")]


async def test_a_control_token_that_the_vocabulary_does_not_have() -> None:
    engine = ScriptedEngine(Script([Piece("<|x|>", is_control=True)], cut="tokens"), tokenizer=CALL)
    with pytest.raises(EngineCapabilityError, match=r"`<\|x\|>` is no control token"):
        await chunks_of(engine)


async def test_one_script_a_request_and_the_last_one_again() -> None:
    engine = ScriptedEngine(["one", Script("two")])
    assert [await pieces_of(engine) for _ in range(3)] == [["one"], ["two"], ["two"]]
    assert engine.requests == [ASK] * 3


async def test_a_script_made_of_the_request() -> None:
    engine = ScriptedEngine(lambda request: request.prompt.upper())
    assert await pieces_of(engine) == ["HELLO"]


@pytest.mark.parametrize(("after", "heard"), [(0, []), (2, ["a", "b"]), (3, ["a", "b", "c"])])
async def test_it_dies_as_told(after: int, heard: list[str]) -> None:
    engine = ScriptedEngine(Script("abc", cut=1, dies_after=after))
    got: list[str] = []

    async def listen() -> None:
        async for chunk in engine.generate(ASK):
            got.extend(piece.text for piece in chunk.pieces)

    with pytest.raises(EngineUnavailableError, match=f"after {after} pieces"):
        await listen()
    assert got == heard
    assert engine.running == 0
    assert engine.abandoned == 0


async def test_it_dies_before_the_end_of_an_empty_script() -> None:
    with pytest.raises(EngineUnavailableError):
        await chunks_of(ScriptedEngine(Script(dies_after=0)))


async def test_a_failure_is_raised_everywhere_while_it_lasts() -> None:
    engine = ScriptedEngine("ok")
    engine.failure = EngineTimeoutError("too slow")
    for ask in (engine.start, engine.health, engine.model, lambda: chunks_of(engine)):
        with pytest.raises(EngineTimeoutError, match="too slow"):
            await ask()
    engine.failure = None
    assert await pieces_of(engine) == ["ok"]


async def test_limit_stop_strings_and_finish() -> None:
    engine = ScriptedEngine(Script("one two three", cut=1))
    cut = await chunks_of(engine, GenerationRequest(sampling=Sampling(max_tokens=4)))
    assert [chunk.finish for chunk in cut] == [None] * 4 + ["length"]
    stopped = await chunks_of(engine, GenerationRequest(sampling=Sampling(stop=("two",))))
    assert "".join(piece.text for chunk in stopped for piece in chunk.pieces) == "one "
    assert stopped[-1].finish == "stop"
    assert (await chunks_of(ScriptedEngine(Script("a", finish="length"))))[-1].finish == "length"


async def test_usage() -> None:
    assert (await chunks_of(ScriptedEngine(Script("abc", cut=1))))[-1].usage == Usage(0, 3)
    by_ids = GenerationRequest(prompt_ids=(1, 2))
    assert (await chunks_of(ScriptedEngine("abc"), by_ids))[-1].usage == Usage(2, 1)
    told = Usage(9, 8, 7)
    assert (await chunks_of(ScriptedEngine(Script("abc", usage=told))))[-1].usage == told


async def test_log_probabilities_only_when_asked_for() -> None:
    told = TokenLogprob("a", -1.5, b"a", (("a", -1.5, b"a"), ("b", -2.0, b"b")))
    engine = ScriptedEngine(Script("aé", cut=1, logprobs=(told,)))
    asked = GenerationRequest(sampling=Sampling(logprobs=1))
    certain = TokenLogprob("é", 0.0, "é".encode(), (("é", 0.0, "é".encode()),))
    assert [chunk.logprobs for chunk in await chunks_of(engine, asked)] == [(told,), (certain,), ()]
    assert all(not chunk.logprobs for chunk in await chunks_of(engine))


GRAMMAR = '%llguidance {}\nstart: "yes" <|call|> | "no"'


async def test_a_script_that_keeps_to_the_grammar() -> None:
    engine = ScriptedEngine([Script("yes<|call|>", 2, ("<|call|>",)), "no"], tokenizer=CALL)
    asked = GenerationRequest(grammar=GRAMMAR)
    assert await pieces_of(engine, asked) == ["ye", "s", "<|call|>"]
    assert await pieces_of(engine, asked) == ["no"]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (Script("maybe"), "wrote 'm'"),
        (Script("yes<|call|>"), "wrote '<'"),
        (Script("yes"), "where the grammar does not allow an end"),
        (Script("nono"), "wrote 'n'"),
    ],
)
async def test_a_script_that_breaks_the_grammar(script: Script, reason: str) -> None:
    engine = ScriptedEngine(script, tokenizer=CALL)
    with pytest.raises(EngineError, match=reason):
        await chunks_of(engine, GenerationRequest(grammar=GRAMMAR))


async def test_a_script_that_is_cut_short_need_not_complete_the_grammar() -> None:
    engine = ScriptedEngine(Script("yes", cut=1), tokenizer=CALL)
    chunks = await chunks_of(engine, GenerationRequest(grammar=GRAMMAR, sampling=Sampling(max_tokens=2)))
    assert chunks[-1].finish == "length"


async def test_pieces_without_text_say_nothing() -> None:
    engine = ScriptedEngine(Script(["", Piece(""), "no"]), tokenizer=CALL)
    assert await pieces_of(engine, GenerationRequest(grammar=GRAMMAR)) == ["no"]


async def test_a_control_token_that_the_grammar_takes_for_text_only() -> None:
    engine = ScriptedEngine(Script([Piece("<|call|>", is_control=True)]), tokenizer=CALL)
    with pytest.raises(EngineError, match=r"wrote '<\|call\|>', not allowed there"):
        await chunks_of(engine, GenerationRequest(grammar='%llguidance {}\nstart: "<|call|>"'))


async def test_an_engine_that_takes_no_grammar() -> None:
    engine = ScriptedEngine("yes", takes_grammar=False)
    with pytest.raises(EngineCapabilityError, match="no grammar"):
        await chunks_of(engine, GenerationRequest(grammar=GRAMMAR))


async def test_many_streams_take_turns() -> None:
    order: list[str] = []
    engine = ScriptedEngine(lambda request: Script(request.prompt * 3, cut=1))

    async def listen(name: str) -> None:
        async for chunk in engine.generate(GenerationRequest(prompt=name)):
            order.extend(piece.text for piece in chunk.pieces)

    await asyncio.gather(listen("a"), listen("b"))
    assert order == ["a", "b"] * 3


async def test_leaving_early_is_seen() -> None:
    engine = ScriptedEngine(Script("abc", cut=1))
    async with aclosing(engine.generate(ASK)) as chunks:
        await anext(chunks)
        assert engine.running == 1
    assert engine.running == 0
    assert engine.abandoned == 1


async def test_a_generation_can_be_held_and_cancelled() -> None:
    reached = asyncio.Event()

    async def hold(position: int) -> None:
        if position == 1:
            reached.set()
            await asyncio.Event().wait()

    engine = ScriptedEngine(Script("abc", cut=1), before_piece=hold)
    task = asyncio.create_task(chunks_of(engine))
    await reached.wait()
    assert engine.running == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (engine.running, engine.abandoned) == (0, 1)


async def test_opened_over_a_file(tmp_path: Path) -> None:
    path = tmp_path / "turn.txt"
    path.write_text("It is 5 o'clock.", encoding="utf-8")
    engine = open_engine(str(path), engine="scripted", model=ModelInfo("replay"))
    await engine.start()
    assert (await engine.model()).id == "replay"
    async with aclosing(engine.generate(ASK)) as chunks:
        assert (await anext(chunks)).pieces == (Piece("It i"),)
    await engine.close()
    with pytest.raises(EngineUnavailableError, match="Cannot read the script"):
        open_engine(str(tmp_path / "none"), engine="scripted")
