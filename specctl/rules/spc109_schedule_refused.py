# ruff: noqa: E501 (examples stand on one line)
"""The schedule passes the configuration, and the scheduler refuses it when it starts.

The first range must begin at batch size 1, ranges must be positive and in order, and they may not overlap.

Bad:

    vllm: {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_min": 2, "prompt_lookup_max": 4, "num_speculative_tokens_per_batch_size": [[2, 4, 5]]}

Good:

    vllm: {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_min": 2, "prompt_lookup_max": 4, "num_speculative_tokens_per_batch_size": [[1, 4, 5], [5, 64, 0]]}
"""

from collections.abc import Iterator
from itertools import pairwise

from specctl.dialects.reading import FAILS, Finding, Reading

ENGINES = ("vllm",)
KEY = "num_speculative_tokens_per_batch_size"


def check(reading: Reading) -> Iterator[Finding]:
    """The order of checks is the engine's."""
    entries = reading.effective.get(KEY)
    if not entries:
        return
    fault = _fault(sorted(entries))
    if fault:
        yield Finding(
            "SPC109",
            f"the schedule is refused when the scheduler starts: {fault}",
            reading.route(KEY),
            stage=FAILS,
            help="begin at 1 and let each range start behind the one before, such as [[1, 8, 3], [9, 64, 0]]",
        )


def _fault(entries: list[list[int]]) -> str | None:
    for first, last, count in entries:
        if first < 1 or last < 1:
            return f"the range {first} to {last} is not positive"
        if first > last:
            return f"the range {first} to {last} begins above its end"
        if count < 0:
            return f"the count {count} is negative"
    for (_, last, _), (first, _, _) in pairwise(entries):
        if first <= last:
            return f"the range that begins at {first} overlaps the one that ends at {last}"
    return f"the first range begins at {entries[0][0]} instead of 1" if entries[0][0] != 1 else None
