from __future__ import annotations

from isogloss.engines import Chunk, TokenLogprob
from isogloss.events import Finish, Piece, ReasoningDelta, TextDelta, ToolCallDelta
from isogloss.token_spans import TokenSpans
from isogloss.tokenizers import o200k_harmony


def entry(data: bytes) -> TokenLogprob:
    return TokenLogprob(data.decode("utf-8", "replace"), -1.0, data)


def test_a_character_split_over_tokens_keeps_them_all() -> None:
    spans = TokenSpans(None)
    entries = tuple(entry(data) for data in (b"a", "é".encode()[:1], "é".encode()[1:], b"!"))
    spans.extend(Chunk((Piece("a"),), logprobs=entries[:2]))
    assert spans.take(TextDelta("a", 0, 1)) == entries[:1]
    spans.extend(Chunk((Piece("é!"),), logprobs=entries[2:]))
    assert spans.take(TextDelta("é!", 1, 3)) == entries[1:]
    assert spans.tokens == 4


def test_markup_and_reasoning_are_no_visible_text() -> None:
    spans = TokenSpans(None)
    entries = [entry(data) for data in (b"<think>", b"hm", b"</think>", b"\n\n", b"so", b"<call>", b"{}")]
    spans.extend(Chunk((Piece("<think>hm</think>\n\nso<call>{}"),), logprobs=tuple(entries)))
    assert spans.take(ReasoningDelta("hm", 0, 9)) == ()
    assert spans.take(TextDelta("so", 9, 21)) == (entries[4],)
    assert spans.take(ToolCallDelta(0, "{}", 21, 29)) == ()
    assert spans.take(Finish("tool_calls", 29, 29)) == ()
    assert spans.reasoning_tokens == 2


def test_a_token_that_reaches_into_the_text_belongs_to_it() -> None:
    spans = TokenSpans(None)
    entries = (entry(b">so"), entry(b" far"))
    spans.extend(Chunk((Piece(">so far"),), logprobs=entries))
    assert spans.take(TextDelta("so far", 0, 7)) == entries


def test_tokens_are_counted_by_ids_else_by_pieces() -> None:
    tokenizer = o200k_harmony()
    spans = TokenSpans(tokenizer)
    ids = tuple(tokenizer.encode("reasoning is not the answer"))
    spans.extend(Chunk((Piece("reasoning is not the answer"),), ids))
    spans.take(ReasoningDelta("reasoning is", 0, 12))
    assert (spans.tokens, spans.reasoning_tokens) == (len(ids), len(tokenizer.encode("reasoning is")))
    spans.extend(Chunk((Piece("a"), Piece("b"))))
    assert spans.tokens == len(ids) + 2
