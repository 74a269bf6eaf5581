"""The closed loop: how many are in flight, and what the clock says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.bench.load import EngineRunner
from specctl.bench.records import Record
from specctl.runtime import SpecStats
from tests.bench.stand_ins import Clock, ScriptedEngine, job


def runner(engine: ScriptedEngine) -> EngineRunner:
    return EngineRunner("baseline", None, None, engine, clock=engine.clock)  # type: ignore[arg-type]


def test_times_are_those_of_the_steps() -> None:
    """Prefill at 0.01, then chunks at 0.02, 0.03, 0.04: TTFT 20 ms, TPOT (40 - 20) / (6 - 1) = 4 ms."""
    engine = ScriptedEngine(Clock(), {1: [None, [5], [6, 7, 8], [9, 2]]})
    [done] = runner(engine).run([job()], 1).records
    assert done.token_ids == [5, 6, 7, 8, 9, 2]
    assert done.ttft_s == pytest.approx(0.02)
    assert done.tpot_s == pytest.approx(0.004)
    assert done.e2e_s == pytest.approx(0.04)
    assert done.finish_reason == "stop"


def test_a_single_token_has_no_tpot() -> None:
    [done] = runner(ScriptedEngine(Clock(), {1: [[5]]})).run([job()], 1).records
    assert (done.tpot_s, done.failed) == (None, False)


def test_the_level_is_reached_kept_and_never_passed() -> None:
    """Six requests of 1, 2 or 3 steps, three at a time; a free place is taken in the very next step."""
    engine = ScriptedEngine(Clock(), {1: [[1]], 2: [[1], [1]], 3: [[1], [1], [1]]})
    jobs = [job(place, prompt=(kind,)) for place, kind in enumerate([1, 2, 3, 3, 2, 1])]
    done = runner(engine).run(jobs, 3)
    assert engine.peak == 3
    assert engine.steps == 4  # 12 token steps over three places
    assert [each.job.index for each in done.records] == [0, 1, 2, 3, 4, 5]
    assert done.duration_s == pytest.approx(0.04)


def test_ttft_counts_from_submission_not_from_the_start_of_the_block() -> None:
    engine = ScriptedEngine(Clock(), {1: [[1], [1]]})
    first, second = runner(engine).run([job(0), job(1)], 1).records
    assert [first.ttft_s, second.ttft_s] == [pytest.approx(0.01), pytest.approx(0.01)]
    assert second.submitted_s == pytest.approx(0.02)


def test_a_refused_request_is_a_failed_record_and_the_others_run() -> None:
    engine = ScriptedEngine(Clock(), {1: [[5], [6]]})
    engine.refused = 9
    refused, done = runner(engine).run([job(0, prompt=(9,)), job(1)], 1).records
    assert refused.error == "the prompt does not fit"
    assert (refused.ttft_s, refused.tpot_s, refused.e2e_s) == (None, None, None)
    assert done.token_ids == [5, 6]


def test_a_block_of_refused_requests_ends() -> None:
    engine = ScriptedEngine(Clock(), {})
    engine.refused = 1
    done = runner(engine).run([job(0), job(1)], 2)
    assert all(each.failed for each in done.records)
    assert done.duration_s == 0


def test_an_error_of_the_engine_is_kept_with_its_reason() -> None:
    engine = ScriptedEngine(Clock(), {1: [[5]], 2: [[5]]})
    engine.broken = 2
    good, bad = runner(engine).run([job(0), job(1, prompt=(2,))], 2).records
    assert (good.failed, bad.error) == (False, "the weights melted")


def test_an_interrupted_block_leaves_the_engine_empty() -> None:
    engine = ScriptedEngine(Clock(), {1: [[5], [6], [7]]})
    engine.interrupt_at = 1
    with pytest.raises(KeyboardInterrupt):
        runner(engine).run([job(0), job(1), job(2)], 2)
    assert sorted(engine.aborted) == ["bench-0", "bench-1"]
    assert not engine.has_work()


def test_an_engine_that_forgets_a_request_is_found_out() -> None:
    engine = ScriptedEngine(Clock(), {1: [[5]]})
    engine.add = lambda _: None  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="no work"):
        runner(engine).run([job()], 1)


def test_counters_come_with_the_last_emission() -> None:
    stats = SpecStats(num_verify_steps=3)
    [done] = runner(ScriptedEngine(Clock(), {1: [[5], [6]]}, stats=stats)).run([job()], 1).records
    assert done.stats is stats


def test_tokens_of_an_empty_chunk_leave_the_times_alone() -> None:
    fresh = Record(job(), 0.0)
    fresh.take([], 5.0)
    assert fresh.ttft_s is None


def test_an_engine_forgets_between_repeats_and_levels() -> None:
    """The same prompts come again then; within a repeat a method may profit from what it has seen."""
    engine = ScriptedEngine(Clock(), {1: [[5]]})
    own = runner(engine)
    for repeat, level in ((0, 1), (0, 1), (0, 2), (1, 1)):
        own.run([replace(job(), repeat=repeat)], level)
    assert engine.forgotten == 3
