"""The order of measuring: warm up, then let the runtimes take turns over the same prompts.

A shared machine drifts: the same loop may be 10 % slower a minute later. So no runtime gets a minute of its own.
Prompts are cut into small blocks, every runtime runs a block before the next one starts, and who goes first rotates.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Protocol

from specctl.bench.arrivals import Arrivals
from specctl.bench.conversation import num_requests
from specctl.bench.prompt_rows import Prompt
from specctl.bench.records import Block, Clock, Job, Runner
from specctl.bench.workloads import Workload

if TYPE_CHECKING:
    from specctl.runtime import SamplingParams

# Four rounds keep the level filled for most of a block, and at one stream a block still takes about a second.
ROUNDS_PER_BLOCK = 4
# One runtime alone takes no turns; longer blocks, since at a block's end places run empty.
ROUNDS_ALONE = 16
WARMUP_TOKENS = 32
PILOT_REPEATS = 2


@dataclass(frozen=True)
class Schedule:
    """What to measure: levels of concurrency, how often, how to sample. `warmup` is in prompts a runtime and level.

    `time_limit_s`: no further repeat begins when it would probably end later than this, warm-up included; the first is
    always whole. None: all repeats, however long they take. `num_prompts`: prompts a repeat and level, other ones each
    time while there are any (None: all of them, always). `arrivals` None: a closed loop, a request follows when one has
    ended. `precision`: the first repeats decide how many are needed for intervals of at most this half-width (a share
    of the speed-up), `repeats` being the most. `capped` False: requests that arrive on time are all taken at once, and
    the level says only how many there can be. `alone`: nothing is compared, so blocks are long, and one
    that Ctrl-C ends counts as far as it came.
    """

    concurrency: tuple[int, ...]
    repeats: int
    warmup: int
    seed: int
    sampling: SamplingParams
    time_limit_s: float | None = None
    num_prompts: int | None = None
    arrivals: Arrivals | None = None
    precision: float | None = None
    capped: bool = True
    alone: bool = False


@dataclass(frozen=True)
class Turn:
    """One block of jobs and the runners in the order in which they run it; `number` counts the blocks of a level."""

    repeat: int
    concurrency: int
    jobs: tuple[Job, ...]
    order: tuple[Runner, ...]
    number: int = 0


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

    def seen(self, runner: Runner, concurrency: int, block: Block) -> None:
        """What a runner did with a block that counts."""


class Journal(Protocol):
    """Where blocks are kept so that a stopped run can go on."""

    def known(self, turn: Turn, runner: int) -> Block | None:
        """The block of this turn and runner (its place), if an earlier run finished it."""
        ...

    def keep(self, turn: Turn, runner: int, block: Block) -> None:
        """Note a finished block."""


def measure(
    schedule: Schedule,
    workload: Workload,
    runners: Sequence[Runner],
    progress: Progress,
    clock: Clock = time.perf_counter,
    journal: Journal | None = None,
    needed: Callable[[Measured], int] | None = None,
) -> Measured:
    """Run the schedule. Ctrl-C ends it early with what complete blocks have shown; other errors pass through.

    `needed` says after the pilot's repeats how many are needed in all.
    """
    return _Run(schedule, workload, runners, progress, clock, journal, needed).go()


@dataclass
class _Run:
    schedule: Schedule
    workload: Workload
    runners: Sequence[Runner]
    progress: Progress
    clock: Clock
    journal: Journal | None
    needed: Callable[[Measured], int] | None
    measured: Measured = field(default_factory=Measured)

    def go(self) -> Measured:
        schedule, measured = self.schedule, self.measured
        warm = list(_warmup(schedule, self.workload, self.runners))
        turns = plan_turns(schedule, self.workload, self.runners)
        repeats = [list(found) for _, found in groupby(turns, lambda turn: turn.repeat)]
        self.progress.start(_requests(warm) + sum(map(_requests, repeats)))
        begun = self.clock()
        try:
            self._warm_up(warm)
            start, most = self.clock(), len(repeats)
            for done, found in enumerate(repeats):
                if done == PILOT_REPEATS and self.needed is not None:
                    most = max(done, min(most, self.needed(measured)))
                    self.progress.start(_requests(warm) + sum(map(_requests, repeats[:most])))
                now = self.clock()
                if done >= most or (done and _too_late(schedule, now - begun, (now - start) / done)):
                    break
                for turn in found:
                    self._take(turn, most)
                measured.repeats += 1
        except KeyboardInterrupt:
            measured.interrupted = True
        return measured

    def _warm_up(self, turns: Sequence[Turn]) -> None:
        for turn in turns:
            for runner in turn.order:
                runner.run(turn.jobs, turn.concurrency)
                self.progress.advance(num_requests(job.prompt for job in turn.jobs), "warm-up")

    def _take(self, turn: Turn, repeats: int) -> None:
        doing = f"repeat {turn.repeat + 1}/{repeats}, concurrency {turn.concurrency}"
        for runner in turn.order:
            place = next(place for place, known in enumerate(self.runners) if known is runner)
            block = None if self.journal is None else self.journal.known(turn, place)
            if block is None:
                block = self._run(runner, turn, place)
                if self.journal is not None:
                    self.journal.keep(turn, place, block)
            self.measured.blocks.setdefault((place, turn.concurrency), []).append(block)
            self.progress.seen(runner, turn.concurrency, block)
            self.progress.advance(num_requests(job.prompt for job in turn.jobs), doing)

    def _run(self, runner: Runner, turn: Turn, place: int) -> Block:
        try:
            return runner.run(turn.jobs, turn.concurrency)
        except KeyboardInterrupt:
            rest: Block | None = getattr(runner, "partial", None)
            if self.schedule.alone and rest is not None:
                self.measured.blocks.setdefault((place, turn.concurrency), []).append(rest)
            raise


def _requests(turns: Sequence[Turn]) -> int:
    return sum(num_requests(job.prompt for job in turn.jobs) * len(turn.order) for turn in turns)


def _too_late(schedule: Schedule, passed_s: float, repeat_s: float) -> bool:
    return schedule.time_limit_s is not None and passed_s + repeat_s > schedule.time_limit_s


def plan_turns(schedule: Schedule, workload: Workload, runners: Sequence[Runner]) -> Iterator[Turn]:
    """Every block of every repeat and level. The prompts keep their order, that of the runners rotates."""
    order = list(runners)
    random.Random(schedule.seed).shuffle(order)
    taken = 0
    for repeat in range(schedule.repeats):
        for place, level in enumerate(schedule.concurrency):
            able = [runner for runner in order if runner.max_concurrency is None or level <= runner.max_concurrency]
            jobs = _jobs(schedule, workload, repeat, place)
            # Arrivals are one stream; a closed loop may be cut anywhere. One request at a time leaves no place empty.
            rounds = ROUNDS_ALONE if schedule.alone and level > 1 else ROUNDS_PER_BLOCK
            size = rounds * level if schedule.arrivals is None else len(jobs)
            for number, block in enumerate(_blocks(jobs, size)):
                shift = taken % len(able)
                yield Turn(repeat, level, block, tuple(able[shift:] + able[:shift]), number)
                taken += 1


def _jobs(schedule: Schedule, workload: Workload, repeat: int, level: int = 0) -> list[Job]:
    """The requests of one repeat at the level with this place: prompts that neither had before, while there are any."""
    prompts = workload.prompts
    count = schedule.num_prompts or len(prompts)
    slots = max(1, len(prompts) // count)
    first = (level * schedule.repeats + repeat) % slots * count
    chosen = range(first, first + count)
    seed = request_seed(schedule.seed, repeat, level)
    times = schedule.arrivals.offsets(prompts[first : first + count], seed) if schedule.arrivals else [0.0] * count
    jobs = [
        Job(index, repeat, prompts[index], _sampling(schedule, prompts[index], repeat, index), at_s)
        for index, at_s in zip(chosen, times, strict=True)
    ]
    return sorted(jobs, key=lambda job: job.at_s)


def _sampling(schedule: Schedule, prompt: Prompt, repeat: int, index: int) -> SamplingParams:
    most = min(schedule.sampling.max_tokens, prompt.output_len or schedule.sampling.max_tokens)
    return replace(schedule.sampling, seed=request_seed(schedule.seed, repeat, index), max_tokens=most)


def uses_of_a_prompt(schedule: Schedule, workload: Workload, repeats: int) -> int:
    """How often the most used prompt was sent to one runtime in `repeats` repeats, warm-up left out."""
    count = schedule.num_prompts or len(workload.prompts)
    slots = max(1, len(workload.prompts) // count)
    used = [
        (level * schedule.repeats + repeat) % slots
        for level in range(len(schedule.concurrency))
        for repeat in range(repeats)
    ]
    return max((used.count(slot) for slot in set(used)), default=0)


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
    """The last `count` prompts, used latest, as jobs outside any repeat, answers cut to `max_tokens`, one turn each."""
    short = min(schedule.sampling.max_tokens, max_tokens)
    jobs = [replace(job, at_s=0.0) for job in _jobs(replace(schedule, num_prompts=None), workload, -1)[-count:]]
    return tuple(
        replace(job, prompt=replace(job.prompt, turns=()), sampling=replace(job.sampling, max_tokens=short))
        for job in jobs
    )
