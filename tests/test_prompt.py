"""Prompts as token ids: each token is told of the segment in which it begins, however the text around it is joined."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.prompt import Prompt, Segment
from isogloss.tokenizers import Tokenizer, byte_level, o200k_harmony

TOKENIZERS = st.sampled_from([byte_level(special_tokens=["<|end|>"]), o200k_harmony()])
SEGMENTS = st.lists(
    st.one_of(
        st.builds(Segment, st.text("ab <|endé🙂\n", max_size=4), st.just(False), st.integers(-1, 1), st.booleans()),
        st.builds(Segment, st.sampled_from(["<|end|>", "<tag>"]), st.just(True), st.integers(-1, 1), st.booleans()),
    ),
    max_size=12,
)


@settings(max_examples=300, deadline=None)
@given(SEGMENTS, TOKENIZERS)
def test_each_token_is_told_of_the_segment_in_which_it_begins(segments: list[Segment], tokenizer: Tokenizer) -> None:
    prompt = Prompt(tuple(segments))
    ids = prompt.tokens(tokenizer)
    text = prompt.text.encode()
    assert b"".join(map(tokenizer.token_bytes, ids)) == text
    of_bytes = [segment for segment in segments for _ in segment.text.encode()]
    starts = [0]
    for token in ids:
        starts.append(starts[-1] + len(tokenizer.token_bytes(token)))
    told = [of_bytes[start] for start in starts[:-1]]
    assert prompt.loss_mask(tokenizer) == [segment.is_assistant for segment in told]
    assert prompt.message_indices(tokenizer) == [segment.message for segment in told]
    controls = [token for token in ids if token in tokenizer.special_tokens.values()]
    assert len(controls) == sum(segment.is_marker and segment.text == "<|end|>" for segment in segments)
