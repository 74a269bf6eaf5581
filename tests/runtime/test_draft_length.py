"""How many tokens a step drafts: schedules hold at every step, heads stay fresh behind k = 0, measured lengths pay."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from specctl.runtime import Engine, EngineOptions, Target, make_engine
from specctl.runtime.draft_length import DraftLength, Fixed, Scheduled, make_draft_length
from specctl.runtime.measured_length import Measured
from specctl.runtime.models import linear
from specctl.runtime.step_costs import StepCosts
from specctl.spec.config import ScheduleStep, SpecDecodeConfig
from specctl.spec.methods import DraftModel, Ngram
from tests.runtime.head_kit import make_head
from tests.runtime.kit import ask, run
from tests.runtime.schooled import PROMPTS, Oracle, Schooled, chain_of

STEPS = (ScheduleStep(1, 1, 4), ScheduleStep(2, 2, 2), ScheduleStep(3, None, 0))


@pytest.mark.parametrize(
    ("steps", "wanted"),
    [
        (STEPS, [4, 2, 0, 0, 0]),
        ((ScheduleStep(1, 2, 9), ScheduleStep(4, 4, 1)), [5, 5, 5, 1, 1]),  # clamped to k; a gap keeps the length
        ((ScheduleStep(3, 8, 1),), [5, 5, 1, 1, 1]),
    ],
)
def test_a_schedule_is_read_as_the_engines_read_it(steps: tuple[ScheduleStep, ...], wanted: list[int]) -> None:
    assert [Scheduled(steps, 5).choose(size) for size in range(1, 6)] == wanted


def test_which_length_a_setting_asks_for() -> None:
    spec = SpecDecodeConfig(Ngram(), 3)
    assert isinstance(make_draft_length(spec, 3, measured=False), Fixed)
    off = make_draft_length(replace(spec, max_concurrency=2), 3, measured=False)
    assert [off.choose(size) for size in (1, 2, 3, 16)] == [3, 3, 0, 0]
    assert isinstance(make_draft_length(replace(spec, schedule=STEPS), 3, measured=True), Measured)


class Watched:
    """A proposer whose limits are written down: (sequences that decode, tokens that each may draft)."""

    def __init__(self, proposer: Any) -> None:
        self._proposer = proposer
        self.seen: list[tuple[int, int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._proposer, name)

    def propose(self, sequences: list[Any], limits: list[int]) -> Any:
        self.seen.append((len(sequences), max(limits)))
        return self._proposer.propose(sequences, limits)


def waves() -> list[Any]:
    """Requests of different lengths: with four slots, 1 to 4 and back to 1 of them run at once."""
    lengths = {"one": 60, "few": 25, "more": 14}
    return [ask(name, PROMPTS[name], ignore_eos=True, max_tokens=count) for name, count in lengths.items()]


@pytest.mark.parametrize("kind", ["eagle", "eagle3", "mtp-qwen3_next", "medusa-vllm", "dflash", "mlp-speculator"])
def test_heads_are_fresh_behind_steps_without_a_draft(
    kind: str, exact: Callable[..., Target], oracle: Oracle, tmp_path: Path
) -> None:
    """Every draft is that of the reference, whatever the lengths before it were."""
    target, made = exact(), make_head(kind, exact(), tmp_path / "head")
    spec = SpecDecodeConfig(made.method, 4, model=str(made.folder), schedule=STEPS)
    truth = {name: found["tokens"] for name, found in run(Engine(target, None, EngineOptions(4)), waves()).items()}
    engine = make_engine(target, spec, EngineOptions(4))
    schooled = Schooled(engine._drafting.proposer, chain_of(made), oracle, truth)
    watched = Watched(schooled)
    engine._drafting.proposer = watched  # type: ignore[assignment]
    assert {name: found["tokens"] for name, found in run(engine, waves()).items()} == truth
    assert {(size, k) for size, k in watched.seen if k > 0} >= {(1, 4), (2, 2)}
    assert all(k <= {1: 4, 2: 2}.get(size, 0) for size, k in watched.seen)
    assert (3, 0) in watched.seen
    assert schooled.compared > 20


def test_a_draft_model_is_fresh_behind_steps_without_a_draft(
    checkpoint: Callable[..., Path], exact: Callable[..., Target]
) -> None:
    """A draft that is the target itself is always right: a gap in its cache would show."""
    spec = SpecDecodeConfig(DraftModel(), 4, model=str(checkpoint()), schedule=STEPS)
    engine = make_engine(exact(), spec, EngineOptions(4))
    drafted = run(engine, waves())
    plain = run(Engine(exact(), None, EngineOptions(4)), waves())
    assert {n: r["tokens"] for n, r in drafted.items()} == {n: r["tokens"] for n, r in plain.items()}
    assert engine.stats.num_accepted_tokens == engine.stats.num_draft_tokens > 30
    assert engine.stats.num_verify_steps > engine.stats.num_drafts > 10


def test_measured_lengths_change_no_output(checkpoint: Callable[..., Path], exact: Callable[..., Target]) -> None:
    spec = SpecDecodeConfig(DraftModel(), 4, model=str(checkpoint(seed=1)))
    engine = make_engine(exact(), spec, EngineOptions(4, measured_length=True))
    watched = Watched(engine._drafting.proposer)
    engine._drafting.proposer = watched  # type: ignore[assignment]
    plain = run(Engine(exact(), None, EngineOptions(4)), waves())
    assert {n: r["tokens"] for n, r in run(engine, waves()).items()} == {n: r["tokens"] for n, r in plain.items()}
    assert len({k for _, k in watched.seen}) > 1


Cost = Callable[[int, int], float]


def tokens_a_second(length: DraftLength, acceptance: float, cost: Cost, sizes: list[int], seed: int = 1) -> float:
    """A run on a clock that takes exactly ``cost(batch size, k)`` a step."""
    dice, seconds, tokens = random.Random(seed), 0.0, 0
    for size in sizes:
        k = length.choose(size)
        accepted = [next((n for n in range(k) if dice.random() >= acceptance), k) for _ in range(size)]
        took = cost(size, k)
        length.observe(k, accepted, took)
        seconds += took
        tokens += size + sum(accepted)
    return tokens / seconds


def best_rate(acceptance: float, cost: Cost, size: int, most: int) -> float:
    return max(size * sum(acceptance**i for i in range(k + 1)) / cost(size, k) for k in range(most + 1))


def clock(draft: float, verify: float, free: int = 4) -> Cost:
    """A draft step costs ``draft`` of a plain one, each verified row ``verify`` / 8 where more than ``free`` run."""
    return lambda size, k: 1 + draft * k + verify * max(0, size * (k + 1) - free) / 8


@pytest.mark.parametrize("size", [1, 4, 16])
@pytest.mark.parametrize("most", [3, 7])
@pytest.mark.parametrize("acceptance", [0.0, 0.2, 0.4, 0.6, 0.8, 0.95])
def test_a_measured_length_is_close_to_the_best_fixed_one_and_never_worse_than_plain(
    acceptance: float, most: int, size: int
) -> None:
    for draft, verify in itertools.product((0.02, 0.1, 0.3), (0.01, 0.2, 1.0)):
        cost = clock(draft, verify)
        found = tokens_a_second(Measured(most), acceptance, cost, [size] * 1000)
        assert found >= 0.97 * size / cost(size, 0), (draft, verify)
        assert found >= 0.90 * best_rate(acceptance, cost, size, most), (draft, verify)


def test_a_measured_length_follows_the_load_and_the_text() -> None:
    """Concurrency 1 to 16 and back, then text on which the draft fails: each stretch is close to its own best."""
    cost, length = clock(0.1, 1.0), Measured(5)
    for size, acceptance in ((1, 0.8), (16, 0.8), (1, 0.8), (1, 0.05), (1, 0.8)):
        tokens_a_second(length, acceptance, cost, [size] * 1500)  # learns
        found = tokens_a_second(length, acceptance, cost, [size] * 1500)
        assert found >= 0.9 * best_rate(acceptance, cost, size, 5), (size, acceptance)


def test_a_measured_length_bears_a_noisy_clock() -> None:
    dice = random.Random(4)
    cost = clock(0.1, 0.3)

    def noisy(size: int, k: int) -> float:
        return cost(size, k) * dice.lognormvariate(0, 0.15) * (8 if dice.random() < 0.01 else 1)

    found = tokens_a_second(Measured(5), 0.7, noisy, [1] * 3000)
    plain = tokens_a_second(Fixed(0), 0.7, noisy, [1] * 3000)
    best = max(tokens_a_second(Fixed(k), 0.7, noisy, [1] * 3000) for k in range(6))
    assert found >= 0.95 * max(plain, 0.95 * best)


class ColdClock:
    """A clock as machines have it: the first step of each batch size and length takes thrice as long, the first draft
    of a request reads its prompt, and times scatter.
    """

    def __init__(self, cost: Cost, seed: int) -> None:
        self._cost, self._dice = cost, random.Random(seed)
        self._seen: set[tuple[int, int]] = set()

    def __call__(self, size: int, k: int, newcomers: int) -> float:
        first = (size, k) not in self._seen
        self._seen.add((size, k))
        return self._cost(size, k) * self._dice.lognormvariate(0, 0.08) * (3 if first else 1) + 0.4 * newcomers


def served(length: DraftLength, acceptance: float, cost: Cost, requests: int, seed: int) -> float:
    """Tokens a second of short requests, one after the other."""
    clock, dice = ColdClock(cost, seed), random.Random(seed)
    waiting, seconds, tokens = [48] * requests, 0.0, 0
    running: list[list[int]] = []  # tokens left, and whether it has drafted
    while waiting or running:
        while waiting and not running:
            running.append([waiting.pop(), 0])
        k = length.choose(len(running))
        accepted = [next((n for n in range(k) if dice.random() >= acceptance), k) for _ in running]
        took = clock(len(running), k, sum(not each[1] for each in running) if k else 0)
        length.observe(k, accepted, took)
        for each, count in zip(running, accepted, strict=True):
            each[0] -= 1 + count
            each[1] |= k > 0
        seconds, tokens = seconds + took, tokens + len(running) + sum(accepted)
        running = [each for each in running if each[0] > 0]
    return tokens / seconds


@pytest.mark.parametrize("acceptance", [0.1, 0.5, 0.8])
def test_a_measured_length_is_not_misled_by_first_steps(acceptance: float) -> None:
    """A server's first requests, in which nearly everything runs for the first time."""
    cost = clock(0.15, 0.1)
    for seed in range(6):
        fixed = [served(Fixed(k), acceptance, cost, 12, seed) for k in range(7)]
        auto = served(Measured(6), acceptance, cost, 12, seed)
        assert auto >= 0.95 * fixed[0], seed
        assert auto >= 0.88 * max(fixed), seed


def test_what_a_step_takes_is_told_by_its_neighbours() -> None:
    costs = StepCosts()
    assert costs.seconds(4, 2) is None
    costs.add(4, 0, 9.0)
    assert costs.seconds(4, 0) == 9.0  # the first time is slow, but nothing else tells
    for k, seconds in ((0, 1.0), (2, 8.0), (2, 1.4)):
        costs.add(4, k, seconds)
    assert costs.seconds(4, 0) == 1.0
    assert [costs.seconds(4, k) for k in (1, 3)] == [pytest.approx(1.2), pytest.approx(1.6)]
    assert costs.is_told_by_others(3)
    assert costs.is_told_by_others(6)
    assert not costs.is_told_by_others(1)
    assert not costs.is_told_by_others(16)
    for seconds in (5.0, 2.0):
        costs.add(3, 0, seconds)
    assert costs.seconds(3, 2) == pytest.approx(2.8)  # twice as slow as a batch of four, so twice its time


def test_a_pause_of_the_machine_counts_little() -> None:
    costs = StepCosts()
    for seconds in (1.0, 1.0, 1.0, 100.0, 1.0):
        costs.add(1, 0, seconds)
    assert costs.seconds(1, 0) == pytest.approx(1.5)


def test_the_clock_of_steps_stands_still_while_kernels_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the first steps of every length would look several times as slow as they are, and auto would not come back."""
    weight, ticks = torch.ones(4, 4), itertools.count()
    monkeypatch.setattr(linear.time, "perf_counter", lambda: float(next(ticks)))
    product = linear.Linear([weight] * 10)
    before = linear.step_clock()
    product(torch.ones(3, 4), weight)
    spent = linear.step_clock() - before
    assert next(ticks) > 100
    assert spent == 2  # the call's own two readings
