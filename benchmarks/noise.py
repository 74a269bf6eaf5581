"""How noisy a machine is: the spread of a run's blocks and requests, from a journal of `specctl bench --resume FILE`.

    specctl bench --concurrency 1,8 --repeats 5 --resume noise.jsonl --speculative-config \
        '{"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_min": 60, "prompt_lookup_max": 60}'
    python benchmarks/noise.py noise.jsonl

N-gram that wants 60 equal tokens never drafts, so baseline and candidate are the same: what differs is noise. The
figures are of one run's TPOT, so those of a pair are larger by the root of two.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any


def tpot(record: dict[str, Any]) -> float | None:
    """Seconds an output token of a journal's record."""
    count = len(record["token_ids"])
    return None if count < 2 else (record["last_token_s"] - record["first_token_s"]) / (count - 1)


def main(file: str) -> None:
    """Print a line a level."""
    rows = [json.loads(line) for line in Path(file).read_text("utf-8").splitlines()][1:]
    times = {
        (repeat, level, number, record["job"], place): seconds
        for row in rows
        for repeat, level, number, place in [row["place"]]
        for record in row["records"]
        if (seconds := tpot(record)) is not None
    }
    blocks: dict[tuple[int, int, int], list[float]] = defaultdict(list)
    for (repeat, level, number, job, place), base in times.items():
        other = times.get((repeat, level, number, job, 1))
        if place == 0 and other is not None:
            blocks[repeat, level, number].append(math.log(base / other))
    for level in sorted({level for _, level, _ in blocks}):
        found = [values for key, values in blocks.items() if key[1] == level]
        means = [statistics.fmean(values) for values in found]
        within = statistics.fmean(statistics.pstdev(values) for values in found)
        between = statistics.pstdev(means)
        half = math.sqrt(2)
        print(f"concurrency {level}: {len(found)} blocks, block {between / half:.1%}, request {within / half:.1%}")


if __name__ == "__main__":
    main(sys.argv[1])
