"""Convert millions of transcripts from one dialect to another, on one machine or on a cluster.

    python examples/batch_convert.py --from hermes --to glm data.jsonl converted/
    python examples/batch_convert.py --from hermes --to glm --ray auto s3://bucket/data/ s3://bucket/converted/

Without ``--ray`` the processes of this machine do it. With it Ray Data does (``pip install 'ray[data]'``): ``local`` on
this machine, anything else is the address of a cluster. Both run `convert_lines`, and both write JSON lines: what could
be converted into the target's folder, what could not, with the reason, into one beside it that ends in ``-rejected``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

from isogloss import ConversationError, get_dialect
from isogloss.transcripts import Converter

LINES_AT_ONCE = 1000


def convert_lines(lines: Iterable[str], source: str, target: str) -> tuple[list[str], list[str]]:
    """The lines that could be converted, and those that could not, as JSON with the ``line`` and the ``reason``."""
    converter = Converter(get_dialect(source), get_dialect(target))
    converted: list[str] = []
    rejected: list[str] = []
    for line in lines:
        if not line.strip():
            continue
        try:
            done = converter.convert(json.loads(line))
            reason = "; ".join(f"{loss.pointer}: {loss.reason}" for loss in done.losses)
        except (ValueError, ConversationError) as error:
            done, reason = None, str(error)
        if done is not None and done.transcript is not None:
            converted.append(json.dumps(done.transcript, ensure_ascii=False))
        else:
            rejected.append(json.dumps({"line": line, "reason": reason}, ensure_ascii=False))
    return converted, rejected


def on_this_machine(file: Path, folder: Path, source: str, target: str) -> tuple[int, int]:
    """How many lines were converted, and how many were not."""
    rejects = folder.with_name(folder.name + "-rejected")
    for each in (folder, rejects):
        each.mkdir(parents=True, exist_ok=True)
    counts = [0, 0]
    with (
        file.open(encoding="utf-8") as lines,
        (folder / file.name).open("w", encoding="utf-8") as converted,
        (rejects / file.name).open("w", encoding="utf-8") as rejected,
        ProcessPoolExecutor() as pool,
    ):
        batches = iter(lambda: list(islice(lines, LINES_AT_ONCE)), [])
        for done in _in_order(pool, batches, source, target):
            for index, (written, output) in enumerate(zip(done, (converted, rejected), strict=True)):
                output.writelines(line + "\n" for line in written)
                counts[index] += len(written)
    return counts[0], counts[1]


def _in_order(
    pool: ProcessPoolExecutor, batches: Iterator[list[str]], source: str, target: str
) -> Iterator[tuple[list[str], list[str]]]:
    """The results in the order of the batches; no more of these are in memory than there is work for."""
    waiting = [pool.submit(convert_lines, batch, source, target) for batch in islice(batches, 32)]
    while waiting:
        yield waiting.pop(0).result()
        waiting += [pool.submit(convert_lines, batch, source, target) for batch in islice(batches, 1)]


def with_ray(address: str, files: str, folder: str, source: str, target: str) -> tuple[int, int]:
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

    def convert(batch: dict[str, Any]) -> dict[str, list[Any]]:
        done = convert_lines(batch["text"], source, target)
        return {
            "text": [line for lines in done for line in lines],
            "is_converted": [
                is_converted for lines, is_converted in zip(done, (True, False), strict=True) for _ in lines
            ],
        }

    lines = ray.data.read_text(files).map_batches(convert, batch_size=LINES_AT_ONCE).materialize()
    counts = []
    for is_converted, place in ((True, folder), (False, folder.rstrip("/") + "-rejected")):
        chosen = lines.filter(lambda row, wanted=is_converted: row["is_converted"] == wanted).drop_columns(
            ["is_converted"]
        )
        counts.append(chosen.count())
        if counts[-1]:
            chosen.write_datasink(Lines(place, file_format="jsonl"))
    return counts[0], counts[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="source", required=True, help="dialect of the transcripts")
    parser.add_argument("--to", dest="target", required=True, help="dialect to write")
    parser.add_argument("--ray", metavar="ADDRESS", help="run on Ray: `local`, `auto` or the address of a cluster")
    parser.add_argument("files", help="JSON lines: a file; with Ray, also a folder or a bucket")
    parser.add_argument("folder", help="where to write")
    given = parser.parse_args()
    if given.ray is None:
        counts = on_this_machine(Path(given.files), Path(given.folder), given.source, given.target)
    else:
        counts = with_ray(given.ray, given.files, given.folder, given.source, given.target)
    print(f"{counts[0]} transcripts converted, {counts[1]} rejected")


if __name__ == "__main__":
    main()
