"""Millions of transcripts converted, made into token ids with loss masks, or checked: on one machine or on a cluster.

    python examples/batch_transcripts.py convert --from hermes --to glm data.jsonl converted/
    python examples/batch_transcripts.py tokens --from hermes --to glm --tokenizer GLM-4.6/ data.jsonl tokens/
    python examples/batch_transcripts.py check --from hermes data.jsonl checked/
    python examples/batch_transcripts.py --ray auto check --from hermes s3://bucket/data/ s3://bucket/checked/

Without ``--ray`` the processes of this machine do it. With it Ray Data does (``pip install 'ray[data]'``): ``local`` on
this machine, anything else is the address of a cluster. Both run `do_lines`, and both write JSON lines: what was done
into the target's folder, what could not be, with the reason, into one beside it that ends in ``-rejected``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from isogloss import AssistantMessage, Conversation, ConversationError, get_dialect
from isogloss.tokenizers import Tokenizer, from_gguf, from_tokenizer_json
from isogloss.transcripts import Converter, read_transcript
from isogloss.verification import Verification

LINES_AT_ONCE = 1000


@dataclass(frozen=True)
class Job:
    """What is done with each line. Each of the kinds is a method."""

    kind: str
    source: str
    target: str = ""
    tokenizer: str = ""

    def convert(self, transcript: dict[str, Any]) -> dict[str, Any]:
        """The same transcript in another dialect."""
        done = Converter(get_dialect(self.source), get_dialect(self.target)).convert(transcript)
        if done.transcript is None:
            raise ValueError("; ".join(f"{loss.pointer}: {loss.reason}" for loss in done.losses))
        return done.transcript

    def tokens(self, transcript: dict[str, Any]) -> dict[str, Any]:
        """The prompt's ids, and for each whether the assistant said it: 1 is to be learnt."""
        conversation = read_transcript(get_dialect(self.source), transcript).conversation
        tokenizer = tokenizer_of(self.tokenizer)
        prompt = get_dialect(self.target or self.source).render(conversation, generation_prompt=False)
        mask = [int(said) for said in prompt.loss_mask(tokenizer)]
        return {**transcript, "ids": prompt.tokens(tokenizer), "mask": mask}

    def check(self, transcript: dict[str, Any]) -> dict[str, Any]:
        """The transcript, if every call is well formed, of a tool that there is, and satisfies its schema."""
        read = read_transcript(get_dialect(self.source), transcript)
        if read.losses:
            raise ValueError("; ".join(f"{loss.pointer}: {loss.reason}" for loss in read.losses))
        tools = tuple(msgspec.structs.replace(tool, strict=True) for tool in read.conversation.tools)
        verification = Verification(Conversation((), tools))
        for position, message in enumerate(read.conversation.messages):
            fault = verification.fault(message) if isinstance(message, AssistantMessage) else None
            if fault is not None:
                raise ValueError(f"/messages/{position}: {fault}")
        return transcript


def tokenizer_of(path: str) -> Tokenizer:
    """A GGUF file's, or that of a ``tokenizer.json`` or its folder. Both are read once a process."""
    return from_gguf(path) if path.endswith(".gguf") else from_tokenizer_json(path)


def do_lines(lines: Iterable[str], job: Job) -> tuple[list[str], list[str]]:
    """What became of the lines, and those that came to nothing, as JSON with the ``line`` and the ``reason``."""
    done: list[str] = []
    rejected: list[str] = []
    for line in lines:
        line = line.rstrip("\n")
        if not line.strip():
            continue
        try:
            done.append(json.dumps(getattr(job, job.kind)(json.loads(line)), ensure_ascii=False))
        except (ValueError, ConversationError) as error:
            rejected.append(json.dumps({"line": line, "reason": str(error)}, ensure_ascii=False))
    return done, rejected


def on_this_machine(file: Path, folder: Path, job: Job) -> tuple[int, int]:
    """How many lines were done, and how many were rejected."""
    rejects = folder.with_name(folder.name + "-rejected")
    for each in (folder, rejects):
        each.mkdir(parents=True, exist_ok=True)
    counts = [0, 0]
    with (
        file.open(encoding="utf-8") as lines,
        (folder / file.name).open("w", encoding="utf-8") as done,
        (rejects / file.name).open("w", encoding="utf-8") as rejected,
        ProcessPoolExecutor() as pool,
    ):
        batches = iter(lambda: list(islice(lines, LINES_AT_ONCE)), [])
        for written in _in_order(pool, batches, job):
            for index, (result, output) in enumerate(zip(written, (done, rejected), strict=True)):
                output.writelines(line + "\n" for line in result)
                counts[index] += len(result)
    return counts[0], counts[1]


def _in_order(
    pool: ProcessPoolExecutor, batches: Iterator[list[str]], job: Job
) -> Iterator[tuple[list[str], list[str]]]:
    """The results in the order of the batches; no more of these are in memory than there is work for."""
    waiting = [pool.submit(do_lines, batch, job) for batch in islice(batches, 32)]
    while waiting:
        yield waiting.pop(0).result()
        waiting += [pool.submit(do_lines, batch, job) for batch in islice(batches, 1)]


def with_ray(address: str, files: str, folder: str, job: Job) -> tuple[int, int]:
    """The same by Ray Data."""
    import ray
    from ray.data.block import BlockAccessor
    from ray.data.datasource import BlockBasedFileDatasink

    class Lines(BlockBasedFileDatasink):  # type: ignore[misc]
        """Files of lines as they are: `write_json` would give every transcript the members of all others."""

        def write_block_to_file(self, block: BlockAccessor, file: Any) -> None:
            for row in block.iter_rows(public_row_format=True):
                file.write(row["text"].encode() + b"\n")

    ray.init(None if address == "local" else address)

    def do(batch: dict[str, Any]) -> dict[str, list[Any]]:
        done = do_lines(batch["text"], job)
        return {
            "text": [line for lines in done for line in lines],
            "is_done": [is_done for lines, is_done in zip(done, (True, False), strict=True) for _ in lines],
        }

    lines = ray.data.read_text(files).map_batches(do, batch_size=LINES_AT_ONCE).materialize()
    counts = []
    for is_done, place in ((True, folder), (False, folder.rstrip("/") + "-rejected")):
        chosen = lines.filter(lambda row, wanted=is_done: row["is_done"] == wanted).drop_columns(["is_done"])
        counts.append(chosen.count())
        if counts[-1]:
            chosen.write_datasink(Lines(place, file_format="jsonl"))
    return counts[0], counts[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ray", metavar="ADDRESS", help="run on Ray: `local`, `auto` or the address of a cluster")
    parser.add_argument("kind", choices=("convert", "tokens", "check"))
    parser.add_argument("--from", dest="source", required=True, help="dialect of the transcripts")
    parser.add_argument("--to", dest="target", default="", help="dialect to write")
    parser.add_argument("--tokenizer", default="", help="of the model to be trained: a folder, tokenizer.json or GGUF")
    parser.add_argument("files", help="JSON lines: a file; with Ray, also a folder or a bucket")
    parser.add_argument("folder", help="where to write")
    given = parser.parse_args()
    if given.kind == "convert" and not given.target:
        parser.error("--to says which dialect to convert to")
    if given.kind == "tokens" and not given.tokenizer:
        parser.error("--tokenizer says whose ids to write")
    job = Job(given.kind, given.source, given.target, given.tokenizer)
    if given.ray is None:
        counts = on_this_machine(Path(given.files), Path(given.folder), job)
    else:
        counts = with_ray(given.ray, given.files, given.folder, job)
    print(f"{counts[0]} transcripts done, {counts[1]} rejected")


if __name__ == "__main__":
    main()
