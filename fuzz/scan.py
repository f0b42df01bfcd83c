"""Break the scanners: damaged corpus outputs, markers of every dialect and any text, held to the laws for a while, with
markers as text and as control tokens.

`python fuzz/scan.py [--seconds N] [DIALECT ...]`, ten minutes a dialect unless told otherwise. What fails is shrunk to
its smallest form and printed; put it into the dialect's corpus file.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from pathlib import Path

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from isogloss.dialects import Dialect, dialect_names, get_dialect
from isogloss.events import Piece
from isogloss.messages import Tool
from isogloss.testing import check_bounded_work, check_conservation, check_output, read_corpus, scan

CORPUS = Path(__file__).parents[1] / "tests" / "corpus"
BATCH = 300
MARKERS = sorted({marker for name in dialect_names() for marker in get_dialect(name).markers.all})
ODD = (
    *("\r\n", "\r", "\ufeff", "\x00", "\x85", "\u2028", "\u200b", "\xa0", "\u3000", "e\u0301", "İ", "🙂"),
    *("&lt;", "&#60;", "&#x3c;", "&amp;lt;", "\\u003c", "\\ud83d", "\\x41", "\\N{DASH}", "<![CDATA[", "]]>", "/>"),
    *("1e999", "-0", "01", "1_000", "NaN", "-Infinity", "9" * 400, "None", "True", "null", '"""', "r'"),
    *("```", "````", "```json\n", "```tool_call\n", "\n```\n", "`", "    ", " " * 70, "\n" * 70),
    *("[" * 40, '{"a":' * 40, '{"name": "", "arguments": {}}', '"arguments": '),
)
"""What models write now and then, and what is easily read as something else."""
ANY = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)


def outputs(name: str) -> st.SearchStrategy[tuple[str, tuple[Tool, ...]]]:
    """Corpus outputs cut up and put together again, with markup of any dialect and any text between."""
    cases = [case for case in read_corpus(CORPUS / f"{name}.txt") if case.output]
    own = st.sampled_from(get_dialect(name).markers.all)
    piece = st.one_of(
        st.sampled_from(cases).flatmap(lambda case: _part(case.output or "")),
        own,
        st.sampled_from(MARKERS),
        ANY,
        st.sampled_from(ODD),
        st.sampled_from(list("<>{}[]()\"'\\`\n \t,:=/|")),
    )
    text = st.lists(piece, max_size=12).map("".join)
    return st.tuples(text, st.sampled_from([case.tools for case in cases]))


def _part(text: str) -> st.SearchStrategy[str]:
    ends = st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))
    return st.one_of(st.just(text), ends.map(lambda pair: text[min(pair) : max(pair)]))


def check_control_tokens(
    dialect: Dialect, output: str, tools: tuple[Tool, ...], chance: random.Random, **options: str
) -> None:
    """Laws 1 and 5 where some of the markers arrive as control tokens, each now and then as text all the same."""
    control = dialect.markers.special if chance.random() < 0.5 else tuple(chance.sample(dialect.markers.all, 2))
    if not control:
        return
    parts = re.split(f"({'|'.join(map(re.escape, sorted(control, key=len, reverse=True)))})", output)
    whole = [Piece(part, part in control and chance.random() < 0.9) for part in parts if part]
    events = scan(dialect, whole, tools, control=control, **options)
    check_conservation(output, events)
    cut = [piece for part in whole for piece in ([part] if part.is_control else map(Piece, part.text))]
    assert scan(dialect, cut, tools, control=control, **options) == events, f"cut into characters: {whole}"


def fuzz(name: str, seconds: float) -> int:
    """Batches of examples until the time is over; how many examples held."""
    dialect = get_dialect(name)
    held = 0

    @settings(max_examples=BATCH, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(
        outputs(name),
        st.sampled_from(["text", "reasoning"]),
        st.sampled_from(["stop", "length"]),
        st.randoms(use_true_random=False),
    )
    def holds(output: tuple[str, tuple[Tool, ...]], starts_in: str, finish: str, chance: random.Random) -> None:
        nonlocal held
        text, tools = output
        check_output(dialect, text, tools, starts_in=starts_in, finish=finish, most=8)
        check_control_tokens(dialect, text, tools, chance, starts_in=starts_in, finish=finish)
        check_bounded_work(dialect, text, tools, piece=3)
        held += 1

    deadline = time.monotonic() + seconds
    round_number = 0
    while time.monotonic() < deadline:
        seed(round_number + int(time.time()))(holds)()
        round_number += 1
    return held


def main() -> None:
    """Fuzz the dialects that were named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dialects", nargs="*", default=dialect_names())
    parser.add_argument("--seconds", type=float, default=600, help="for each dialect")
    arguments = parser.parse_args()
    for name in arguments.dialects:
        print(f"{name}: ", end="", flush=True)
        print(f"{fuzz(name, arguments.seconds)} outputs hold", flush=True)


if __name__ == "__main__":
    sys.exit(main())
