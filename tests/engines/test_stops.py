from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from isogloss.engines import Chunk
from isogloss.engines._stops import Stops
from isogloss.events import Piece


def said(stops: Stops, chunks: list[Chunk]) -> list[Chunk]:
    out: list[Chunk] = []
    for chunk in chunks:
        out += stops.feed(chunk)
        if stops.found:
            return out
    return out + stops.finish()


def text_of(chunks: list[Chunk]) -> str:
    return "".join(piece.text for chunk in chunks for piece in chunk.pieces)


def cut(text: str, sizes: list[int]) -> list[Chunk]:
    chunks, start = [], 0
    while start < len(text):
        size = sizes[len(chunks) % len(sizes)]
        chunks.append(Chunk((Piece(text[start : start + size]),), (len(chunks),)))
        start += size
    return chunks


def first_end(text: str, strings: list[str]) -> str | None:
    """What a scan character by character would keep."""
    for end in range(len(text) + 1):
        ended = [string for string in strings if text[:end].endswith(string)]
        if ended:
            return text[: end - max(map(len, ended))]
    return None


@given(
    text=st.text("ab<", max_size=40),
    strings=st.lists(st.text("ab<", min_size=1, max_size=5), max_size=3),
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4),
)
def test_found_wherever_it_is_cut(text: str, strings: list[str], sizes: list[int]) -> None:
    stops = Stops(strings)
    chunks = cut(text, sizes)
    out = said(stops, chunks)
    expected = first_end(text, strings) if strings else None
    assert text_of(out) == (text if expected is None else expected)
    assert stops.found is (expected is not None)
    assert [chunk.token_ids for chunk in out] == [chunk.token_ids for chunk in chunks[: len(out)]]


def test_nothing_of_a_stop_string_is_ever_sent() -> None:
    stops = Stops(["END"])
    assert stops.feed(Chunk((Piece("a"),), (1,))) == [Chunk((Piece("a"),), (1,))]
    assert stops.feed(Chunk((Piece("bEN"),), (2,))) == []
    assert stops.feed(Chunk((Piece("Dc"),), (3,))) == [Chunk((Piece("b"),), (2,))]
    assert stops.found


def test_what_was_held_back_comes_when_it_was_no_stop_string() -> None:
    stops = Stops(["END"])
    assert stops.feed(Chunk((Piece("EN"),))) == []
    assert text_of(stops.feed(Chunk((Piece("T"),)))) == "ENT"
    assert stops.feed(Chunk((Piece("E"),))) == []
    assert text_of(stops.finish()) == "E"


def test_a_control_token_is_matched_as_a_token_only() -> None:
    spelled = Chunk((Piece("<|end|>"),))
    token = Chunk((Piece("x"), Piece("<|end|>", is_control=True)))
    stops = Stops(["<|end|>"], control={"<|end|>": 5})
    assert stops.feed(spelled) == [spelled]
    assert stops.feed(token) == [Chunk((Piece("x"),))]
    assert stops.found


def test_text_does_not_continue_across_a_control_token() -> None:
    stops = Stops(["ab"])
    chunk = Chunk((Piece("a"), Piece("<|x|>", is_control=True), Piece("b")))
    assert stops.feed(chunk) == [chunk]
    assert not stops.found


def test_a_long_stop_string_that_almost_matches_again_and_again() -> None:
    stops = Stops(["a" * 20_000 + "b"])
    out = said(stops, cut("a" * 200_000, [4]))
    assert len(text_of(out)) == 200_000
