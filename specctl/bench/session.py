"""The order of measuring: warm up, then let the runtimes take turns over the same prompts.

A shared machine drifts: the same loop may be 10 % slower a minute later. So no runtime gets a minute of its own.
Prompts are cut into small blocks, every runtime runs a block before the next one starts, and who goes first rotates.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Protocol

from specctl.bench.load import Block, Clock, Job, Runner
from specctl.bench.workloads import Workload

if TYPE_CHECKING:
    from specctl.runtime import SamplingParams

# Four rounds keep the level filled for most of a block, and at one stream a block still takes about a second.
ROUNDS_PER_BLOCK = 4
WARMUP_TOKENS = 32


@dataclass(frozen=True)
class Schedule:
    """What to measure: levels of concurrency, how often, how to sample. `warmup` is in prompts a runtime and level.

    `time_limit_s`: no further repeat begins when it would probably end later than this, warm-up included; the first is
    always whole. None: all repeats, however long they take.
    """

    concurrency: tuple[int, ...]
    repeats: int
    warmup: int
    seed: int
    sampling: SamplingParams
    time_limit_s: float | None = None


@dataclass(frozen=True)
class Turn:
    """One block of jobs and the runners in the order in which they run it."""

    repeat: int
    concurrency: int
    jobs: tuple[Job, ...]
    order: tuple[Runner, ...]


@dataclass
class Measured:
    """Blocks by runner (place in the list of runners) and concurrency, and how far the schedule came.

    `repeats`: those that are whole. `interrupted`: the user stopped the run.
    """

    blocks: dict[tuple[int, int], list[Block]] = field(default_factory=dict)
    repeats: int = 0
    interrupted: bool = False

    def of(self, runner: int, concurrency: int) -> list[Block]:
        """The blocks of one runner at one level, in the order of the turns."""
        return self.blocks.get((runner, concurrency), [])

    def trim(self) -> None:
        """Leave each runner of a level the turns that all of them finished, so that their figures are of the same
        requests; a runner that finished none has no figures.
        """
        for level in {level for _, level in self.blocks}:
            places = [key for key in self.blocks if key[1] == level and self.blocks[key]]
            common = min((len(self.blocks[key]) for key in places), default=0)
            for key in places:
                del self.blocks[key][common:]


class Progress(Protocol):
    """Who is told how far the run is."""

    def start(self, total: int) -> None:
        """`total` requests will be made, warm-up included."""

    def advance(self, done: int, doing: str) -> None:
        """`done` more requests are through; `doing` says what comes from."""


def measure(
    schedule: Schedule,
    workload: Workload,
    runners: Sequence[Runner],
    progress: Progress,
    clock: Clock = time.perf_counter,
) -> Measured:
    """Run the schedule. Ctrl-C ends it early with what complete blocks have shown; other errors pass through."""
    measured = Measured()
    warm = list(_warmup(schedule, workload, runners))
    repeats = [list(turns) for _, turns in groupby(plan_turns(schedule, workload, runners), lambda turn: turn.repeat)]
    progress.start(sum(len(turn.jobs) * len(turn.order) for turns in (warm, *repeats) for turn in turns))
    begun = clock()
    try:
        for turn in warm:
            for runner in turn.order:
                runner.run(turn.jobs, turn.concurrency)
                progress.advance(len(turn.jobs), "warm-up")
        start = clock()
        for turns in repeats:
            now = clock()
            if measured.repeats and _too_late(schedule, now - begun, (now - start) / measured.repeats):
                break
            for turn in turns:
                _take(turn, runners, measured, progress, schedule.repeats)
            measured.repeats += 1
    except KeyboardInterrupt:
        measured.interrupted = True
    return measured


def _too_late(schedule: Schedule, passed_s: float, repeat_s: float) -> bool:
    return schedule.time_limit_s is not None and passed_s + repeat_s > schedule.time_limit_s


def _take(turn: Turn, runners: Sequence[Runner], measured: Measured, progress: Progress, repeats: int) -> None:
    for runner in turn.order:
        block = runner.run(turn.jobs, turn.concurrency)
        place = next(place for place, known in enumerate(runners) if known is runner)
        measured.blocks.setdefault((place, turn.concurrency), []).append(block)
        progress.advance(len(turn.jobs), f"repeat {turn.repeat + 1}/{repeats}, concurrency {turn.concurrency}")


def plan_turns(schedule: Schedule, workload: Workload, runners: Sequence[Runner]) -> Iterator[Turn]:
    """Every block of every repeat and level. The prompts keep their order, that of the runners rotates."""
    order = list(runners)
    random.Random(schedule.seed).shuffle(order)
    taken = 0
    for repeat in range(schedule.repeats):
        jobs = _jobs(schedule, workload, repeat)
        for level in schedule.concurrency:
            able = [runner for runner in order if runner.max_concurrency is None or level <= runner.max_concurrency]
            for block in _blocks(jobs, ROUNDS_PER_BLOCK * level):
                shift = taken % len(able)
                yield Turn(repeat, level, block, tuple(able[shift:] + able[:shift]))
                taken += 1


def _jobs(schedule: Schedule, workload: Workload, repeat: int) -> list[Job]:
    return [
        Job(index, repeat, prompt, replace(schedule.sampling, seed=request_seed(schedule.seed, repeat, index)))
        for index, prompt in enumerate(workload.prompts)
    ]


def request_seed(seed: int, repeat: int, index: int) -> int:
    """The seed of one request: the same for every runtime, another for each repeat and prompt."""
    return random.Random(f"{seed}/{repeat}/{index}").getrandbits(62)


def _blocks(jobs: Sequence[Job], size: int) -> Iterator[tuple[Job, ...]]:
    """Blocks of about `size` jobs and of equal length, so that no short last block leaves the level unfilled."""
    count = max(1, len(jobs) // size)
    edges = [round(place * len(jobs) / count) for place in range(count + 1)]
    for start, end in pairwise(edges):
        yield tuple(jobs[start:end])


def _warmup(schedule: Schedule, workload: Workload, runners: Sequence[Runner]) -> Iterator[Turn]:
    """Enough prompts to fill each level once, cut short: loading, compiling and calibrating are over after that."""
    if schedule.warmup == 0:
        return
    for level in schedule.concurrency:
        able = tuple(runner for runner in runners if runner.max_concurrency is None or level <= runner.max_concurrency)
        yield Turn(-1, level, short_jobs(schedule, workload, max(level, schedule.warmup), WARMUP_TOKENS), able)


def short_jobs(schedule: Schedule, workload: Workload, count: int, max_tokens: int) -> tuple[Job, ...]:
    """The first `count` prompts as jobs outside any repeat, answers cut to `max_tokens`."""
    short = min(schedule.sampling.max_tokens, max_tokens)
    jobs = _jobs(schedule, workload, repeat=-1)[:count]
    return tuple(replace(job, sampling=replace(job.sampling, max_tokens=short)) for job in jobs)
