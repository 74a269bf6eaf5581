"""What sets TensorRT-LLM's two release lines apart beyond names: a schedule's keys are lower bounds in 1.2.1, upper
bounds from 1.3 on."""

from __future__ import annotations

from specctl.spec import ScheduleStep
from specctl.spec.release import Release

NEW = "1.3"  # first release line with the discriminated union of types
# The default of max_batch_size: beyond it no batch grows.
MAX_BATCH = 2048


def is_new(release: str) -> bool:
    """Whether a release belongs to the line with `Draft_Target` and upper-bound schedules."""
    return Release.parse(release) >= Release.parse(NEW + ".0rc0")


def load_schedule(entries: dict[int, int], release: str) -> tuple[ScheduleStep, ...]:
    """A schedule by ranges, out of lower bounds (1.2.1) or upper bounds (1.4; above the last: 0)."""
    keys = sorted(entries)
    if not keys:
        return ()
    if not is_new(release):
        ends = [following - 1 for following in keys[1:]]
        return tuple(ScheduleStep(key, last, entries[key]) for key, last in zip(keys, [*ends, None], strict=True))
    starts = [1, *(key + 1 for key in keys)]
    steps = [ScheduleStep(first, key, entries[key]) for first, key in zip(starts, keys, strict=False)]
    return (*steps, ScheduleStep(keys[-1] + 1, None, 0))


def dump_schedule(steps: tuple[ScheduleStep, ...], release: str) -> dict[int, int]:
    """The schedule in a release's own reading of keys; a last range without an end and without drafts is implied by
    1.4, one with drafts ends at the engine's greatest batch.
    """
    if not is_new(release):
        return {step.first: step.num_speculative_tokens for step in steps}
    found = {step.last: step.num_speculative_tokens for step in steps if step.last is not None}
    tail = steps[-1] if steps else None
    if tail is not None and tail.last is None and tail.num_speculative_tokens > 0:
        found[max(MAX_BATCH, tail.first)] = tail.num_speculative_tokens
    return found
