# ruff: noqa: E501 (examples stand on one line)
"""TensorRT-LLM's schedule by batch size contradicts itself or the draft length.

In 1.2.1 a key is the first batch size of its range and the key 1 is needed; in 1.4 it is the last one, and above the
last key nothing is drafted. The first entry must equal `max_draft_len`, and none may exceed it.

Bad:

    trtllm: speculative_config: {decoding_type: NGram, max_draft_len: 4, max_matching_ngram_size: 2, draft_len_schedule: {4: 4, 8: 2}}

Good:

    trtllm: speculative_config: {decoding_type: NGram, max_draft_len: 4, max_matching_ngram_size: 2, draft_len_schedule: {1: 4, 8: 2}, is_public_pool: false}
"""

from collections.abc import Iterator
from itertools import pairwise

from specctl.dialects.reading import Finding, Reading
from specctl.dialects.trtllm_line import is_new

ENGINES = ("trtllm",)
KEY, LIMIT = "draft_len_schedule", "max_concurrency"


def check(reading: Reading) -> Iterator[Finding]:
    """The order of checks is the engine's."""
    schedule, new = reading.get(KEY), is_new(reading.release)
    name, limit = reading.notes.get("type"), reading.get(LIMIT)
    if new and limit is not None and (schedule is not None or name == "Eagle"):
        why = (
            f"{LIMIT} and {KEY} exclude each other"
            if schedule is not None
            else (
                f"{LIMIT} does not work under the name Eagle: it is read again as Eagle3 together with its own schedule"
            )
        )
        yield Finding(
            "SPC153",
            why,
            reading.route(LIMIT),
            at_key=True,
            help="keep one of them" if schedule is not None else "write decoding_type: Eagle3",
        )
    if schedule is None:
        return
    fault = _fault(schedule, reading.effective.get("max_draft_len"), new)
    if fault:
        message, help_text = fault
        yield Finding("SPC153", f"{KEY} {message}", reading.route(KEY), help=help_text)
    elif new and len(schedule) > 1 and min(schedule) == 1 and schedule[max(schedule)] == 0:
        yield _of_the_older_release(reading, dict(sorted(schedule.items())))


def _of_the_older_release(reading: Reading, schedule: dict[int, int]) -> Finding:
    """A schedule that reads like one of 1.2.1: it begins at 1 and ends in 0, which 1.4 needs not be told."""
    keys = list(schedule)
    meant = {after - 1: schedule[key] for key, after in pairwise(keys)}
    return Finding(
        "SPC153",
        f"{KEY} drafts {schedule[1]} tokens at batch size 1 alone: in {reading.release} a key is the last batch size of "
        "its range, in 1.2.1 it was the first",
        reading.route(KEY),
        help=f"if it was written for 1.2.1, write {meant}",
        severity="advice",
    )


def _fault(schedule: dict[int, int], length: int | None, new: bool) -> tuple[str, str] | None:
    if not schedule:
        return "is empty", "leave it out"
    if any(key < 1 for key in schedule):
        return "has a batch size below 1", "begin at 1"
    if any(value < 0 for value in schedule.values()):
        return "has a negative length", "write 0 to stop drafting"
    if not new and 1 not in schedule:
        return (
            "lacks the entry for batch size 1 (keys are the first batch size of a range)",
            f"begin with 1: {length or 4}",
        )
    if length is None:
        return None
    first = schedule[min(schedule)]
    if any(value > length for value in schedule.values()):
        return f"has a length above max_draft_len {length}", f"lower it to {length}"
    if first != length:
        return f"begins with {first}, but max_draft_len is {length}", f"write {min(schedule)}: {length}"
    return None
