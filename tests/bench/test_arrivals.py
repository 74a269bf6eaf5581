"""Arrivals on time: their distribution, their rate, a trace; in process they count from when they were due."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.bench.arrivals import Arrivals, check_trace, gamma_offsets
from specctl.bench.load import EngineRunner
from specctl.bench.prompt_rows import Prompt
from specctl.bench.session import Schedule, plan_turns
from specctl.bench.workloads import Workload, choose
from specctl.errors import UsageError
from specctl.runtime import SamplingParams
from tests.bench.stand_ins import Clock, ScriptedEngine, job, workload
from tests.bench.test_session import three


@pytest.mark.parametrize(("burstiness", "spread"), [(1.0, 1.0), (4.0, 0.5), (0.25, 2.0)])
def test_gaps_have_the_spread_of_their_shape(burstiness: float, spread: float) -> None:
    """Standard deviation over mean of a gamma distribution is 1 / sqrt(shape); the whole lasts count / rate."""
    times = gamma_offsets(5.0, burstiness, 20_000, seed=1)
    gaps = [after - before for before, after in zip([0.0, *times], times, strict=False)]
    mean = sum(gaps) / len(gaps)
    deviation = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert times[-1] == pytest.approx(20_000 / 5.0)
    assert deviation / mean == pytest.approx(spread, rel=0.05)
    assert times == sorted(times)


def test_the_seed_decides() -> None:
    assert gamma_offsets(2.0, 1.0, 5, 1) == gamma_offsets(2.0, 1.0, 5, 1) != gamma_offsets(2.0, 1.0, 5, 2)


def test_a_trace_keeps_its_gaps_from_its_first_row_on() -> None:
    prompts = [Prompt(str(n), "all", (), (1,), at_s=at) for n, at in enumerate((10.0, 10.5, 14.0))]
    assert Arrivals(trace=True).offsets(prompts, 0) == [0.0, 0.5, 4.0]
    assert Arrivals(trace=True, speed=2.0).offsets(prompts, 0) == [0.0, 0.25, 2.0]
    check_trace(prompts)
    with pytest.raises(UsageError, match="row 1 has no timestamp"):
        check_trace([prompts[0], replace(prompts[1], at_s=None)])


@pytest.mark.parametrize("wrong", [{"request_rate": 0.0}, {"request_rate": 1.0, "burstiness": -1.0}, {"speed": 0.0}])
def test_rates_that_are_none(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="must be a number above 0"):
        Arrivals(**wrong)  # type: ignore[arg-type]


def test_arrivals_are_one_stream_for_all_runners() -> None:
    schedule = Schedule((16,), 2, 0, 0, SamplingParams(), arrivals=Arrivals(4.0), capped=False)
    turns = list(plan_turns(schedule, workload(*["all"] * 16), three()))
    assert [len(turn.jobs) for turn in turns] == [16, 16]
    times = [[job.at_s for job in turn.jobs] for turn in turns]
    assert times[0] != times[1]
    assert all(each == sorted(each) and each[-1] == pytest.approx(4.0) for each in times)


def test_a_request_that_comes_in_the_middle_of_a_step_counts_from_then() -> None:
    """Steps of 10 ms; the second request is due at 15 ms, is seen at 20 ms and has its token at 30."""
    clock = Clock()
    engine = ScriptedEngine(clock, {1: [[5], [6], [7]], 2: [[8]]})
    runner = EngineRunner(
        "baseline", None, None, engine, clock, lambda seconds: setattr(clock, "now", clock.now + seconds)
    )  # type: ignore[arg-type]
    jobs = [job(0, prompt=(1,)), replace(job(1, prompt=(2,)), at_s=0.015)]
    first, second = runner.run(jobs, 2).records
    assert first.e2e_s == pytest.approx(0.03)
    assert second.submitted_s == pytest.approx(0.015)
    assert second.ttft_s == pytest.approx(0.015)


def test_waiting_for_an_arrival_takes_no_steps() -> None:
    clock = Clock()
    engine = ScriptedEngine(clock, {1: [[5]]})
    runner = EngineRunner(
        "baseline", None, None, engine, clock, lambda seconds: setattr(clock, "now", clock.now + seconds)
    )  # type: ignore[arg-type]
    [only] = runner.run([replace(job(), at_s=3.0)], 1).records
    assert (engine.steps, only.submitted_s, only.ttft_s) == (1, 3.0, pytest.approx(0.01))


def test_a_request_held_back_by_the_cap_counts_from_its_place() -> None:
    """As vLLM's client: time in the queue before --max-concurrency is no latency."""
    clock = Clock()
    engine = ScriptedEngine(clock, {1: [[5], [6]]})
    runner = EngineRunner("baseline", None, None, engine, clock)  # type: ignore[arg-type]
    _, second = runner.run([job(0), replace(job(1), at_s=0.005)], 1).records
    assert second.submitted_s == pytest.approx(0.02)
    assert second.ttft_s == pytest.approx(0.01)


def test_a_replayed_trace_keeps_its_order_whatever_the_categories() -> None:
    times = {"a": ("math", 3.0), "b": ("math", 0.5), "c": ("chat", 9.0), "d": ("math", 1.0)}
    prompts = [Prompt(name, category, (), at_s=at_s) for name, (category, at_s) in times.items()]
    found = choose(Workload("trace", tuple(prompts)), None, 3, replayed=True)
    assert [prompt.id for prompt in found.prompts] == ["b", "d", "a"]
