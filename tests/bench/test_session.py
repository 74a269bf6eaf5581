"""Turns: interleaved, rotated, the same prompts for all, warm-up uncounted, interruptible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from specctl.bench.records import Block, Job, Record
from specctl.bench.session import WARMUP_TOKENS, Schedule, measure, plan_turns, request_seed
from specctl.runtime import SamplingParams
from specctl.spec.config import SpecDecodeConfig
from tests.bench.stand_ins import Clock, workload

PROMPTS = workload(*["coding", "math"] * 8)
SCHEDULE = Schedule(concurrency=(1, 4), repeats=3, warmup=2, seed=0, sampling=SamplingParams())


@dataclass
class Runner:
    """Writes down who ran what; raises Ctrl-C at call number `stop_at` of the shared log."""

    name: str
    log: list[tuple[str, int, tuple[Job, ...]]]
    k: int | None = None
    spec: SpecDecodeConfig | None = None
    max_concurrency: int | None = None
    stop_at: int | None = None

    def run(self, jobs: Sequence[Job], concurrency: int, /) -> Block:
        if len(self.log) == self.stop_at:
            raise KeyboardInterrupt
        self.log.append((self.name, concurrency, tuple(jobs)))
        return Block(tuple(Record(job, 0.0) for job in jobs), 1.0)


@dataclass
class Told:
    """A progress display that adds up."""

    total: int = 0
    done: int = 0
    stages: list[str] = field(default_factory=list)

    def start(self, total: int) -> None:
        self.total = total

    def advance(self, done: int, doing: str) -> None:
        self.done += done
        self.stages.append(doing)

    def seen(self, runner: object, concurrency: int, block: Block) -> None:
        pass


def three() -> list[Runner]:
    log: list[tuple[str, int, tuple[Job, ...]]] = []
    return [Runner(name, log) for name in ("baseline", "ngram", "draft_model")]


def test_every_runtime_runs_every_prompt_once_a_repeat_and_level() -> None:
    runners = three()
    measured = measure(SCHEDULE, PROMPTS, runners, Told())
    for place in range(3):
        for level in (1, 4):
            jobs = Counter((r.job.repeat, r.job.index) for block in measured.of(place, level) for r in block.records)
            assert jobs == Counter((repeat, index) for repeat in range(3) for index in range(16))


def test_runtimes_take_turns_over_the_same_block() -> None:
    runners = three()
    measure(replace(SCHEDULE, warmup=0), PROMPTS, runners, Told())
    log = runners[0].log
    for start in range(0, len(log), 3):
        turn = log[start : start + 3]
        assert {name for name, _, _ in turn} == {"baseline", "ngram", "draft_model"}
        assert all(each[1:] == turn[0][1:] for each in turn)


def test_everyone_goes_first_equally_often() -> None:
    turns = list(plan_turns(SCHEDULE, PROMPTS, three()))
    firsts = Counter(turn.order[0].name for turn in turns)
    assert set(firsts) == {"baseline", "ngram", "draft_model"}
    assert max(firsts.values()) - min(firsts.values()) <= 1


def test_blocks_are_small_at_one_stream_and_full_at_a_level() -> None:
    sizes = {
        level: {len(t.jobs) for t in plan_turns(SCHEDULE, PROMPTS, three()) if t.concurrency == level}
        for level in (1, 4)
    }
    assert sizes == {1: {4}, 4: {16}}


@pytest.mark.parametrize("count", [1, 3, 5, 7, 9, 30])
def test_no_block_is_a_short_rest(count: int) -> None:
    sizes = [
        len(t.jobs)
        for t in plan_turns(replace(SCHEDULE, repeats=1, concurrency=(1,)), workload(*["a"] * count), three())
    ]
    assert sum(sizes) == count
    assert max(sizes) - min(sizes) <= 1


def test_the_order_follows_the_seed() -> None:
    def orders(seed: int) -> list[str]:
        return [turn.order[0].name for turn in plan_turns(replace(SCHEDULE, seed=seed), PROMPTS, three())]

    assert orders(1) == orders(1)
    assert len({tuple(orders(seed)) for seed in range(8)}) > 1


def test_sampling_seeds_are_shared_by_runtimes_and_differ_otherwise() -> None:
    runners = three()
    measure(replace(SCHEDULE, warmup=0), PROMPTS, runners, Told())
    seeds: dict[tuple[int, int], set[int | None]] = {}
    for _, _, jobs in runners[0].log:
        for job in jobs:
            seeds.setdefault((job.repeat, job.index), set()).add(job.sampling.seed)
    assert all(len(found) == 1 for found in seeds.values())
    assert len({seed for found in seeds.values() for seed in found}) == 3 * 16
    assert request_seed(0, 0, 0) != request_seed(1, 0, 0)


def test_warmup_fills_the_level_briefly_and_does_not_count() -> None:
    runners = three()
    told = Told()
    measured = measure(replace(SCHEDULE, repeats=1), PROMPTS, runners, told)
    warm = runners[0].log[:6]
    assert [(name, level, len(jobs)) for name, level, jobs in warm[:4:3]] == [("baseline", 1, 2), ("baseline", 4, 4)]
    assert all(job.sampling.max_tokens == WARMUP_TOKENS for _, _, jobs in warm for job in jobs)
    assert sum(len(block.records) for block in measured.of(0, 4)) == 16
    assert told.done == told.total == 3 * (2 + 4) + 3 * 2 * 16
    assert told.stages[0] == "warm-up"
    assert told.stages[-1] == "repeat 1/1, concurrency 4"


def test_a_runtime_that_takes_one_stream_is_left_out_above() -> None:
    runners = three()
    runners[2].max_concurrency = 1
    measured = measure(SCHEDULE, PROMPTS, runners, Told())
    assert measured.of(2, 4) == []
    assert len(measured.of(2, 1)) == 12


def test_ctrl_c_keeps_the_complete_blocks() -> None:
    runners = three()
    for runner in runners:
        runner.stop_at = 6 + 4
    measured = measure(SCHEDULE, PROMPTS, runners, Told())
    assert measured.interrupted
    assert sum(len(measured.of(place, 1)) for place in range(3)) == 4


def test_ctrl_c_during_warmup_leaves_nothing_but_no_traceback() -> None:
    runners = three()
    runners[0].stop_at = 0
    measured = measure(SCHEDULE, PROMPTS, runners, Told())
    assert (measured.interrupted, measured.blocks) == (True, {})


@pytest.mark.parametrize(("limit_s", "repeats"), [(None, 5), (1000.0, 5), (25.0, 2), (29.9, 2), (30.0, 3), (1.0, 1)])
def test_no_repeat_begins_that_would_end_too_late(limit_s: float | None, repeats: int) -> None:
    """A repeat takes 10 s: two runtimes, 16 prompts in blocks of 4 at one stream, 1.25 s a block."""
    clock = Clock()
    log: list[tuple[str, int, tuple[Job, ...]]] = []
    runners = [Runner(name, log) for name in ("baseline", "ngram")]
    told = Told()
    told.advance = lambda done, doing: setattr(clock, "now", clock.now + 1.25)  # type: ignore[method-assign] # noqa: ARG005
    schedule = replace(SCHEDULE, concurrency=(1,), repeats=5, warmup=0, time_limit_s=limit_s)
    measured = measure(schedule, PROMPTS, runners, told, clock)
    assert measured.repeats == repeats
    assert len(measured.of(0, 1)) == 4 * repeats


def test_a_repeat_that_was_cut_does_not_count() -> None:
    runners = three()
    for runner in runners:
        runner.stop_at = 6 + 20
    measured = measure(SCHEDULE, PROMPTS, runners, Told())
    assert (measured.repeats, measured.interrupted) == (1, True)


def test_an_interrupted_run_keeps_the_turns_that_all_finished() -> None:
    from specctl.bench.records import Block
    from specctl.bench.session import Measured

    blocks = [Block((), float(i)) for i in range(3)]
    measured = Measured({(0, 1): blocks[:1], (1, 1): blocks[:2], (2, 1): [], (0, 8): blocks[:3], (1, 8): blocks[:3]})
    measured.trim()
    assert [len(measured.of(*key)) for key in ((0, 1), (1, 1), (2, 1), (0, 8), (1, 8))] == [1, 1, 0, 3, 3]


def test_a_runtime_alone_runs_longer_blocks_where_places_could_run_empty() -> None:
    work = workload(*["math"] * 128)
    alone = Schedule((1, 8), 1, 0, 0, SamplingParams(), alone=True)
    sizes = {
        level: {len(t.jobs) for t in plan_turns(alone, work, three()) if t.concurrency == level} for level in (1, 8)
    }
    assert sizes == {1: {4}, 8: {128}}
    assert {len(turn.jobs) for turn in plan_turns(Schedule((8,), 1, 0, 0, SamplingParams()), work, three())} == {32}
