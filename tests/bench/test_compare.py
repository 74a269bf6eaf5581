"""Pairs, speed-ups and intervals; outputs token by token; when a draft is kept."""

from __future__ import annotations

import math
import random

import pytest

from specctl.bench.compare import compare, pairs, speedup_interval, tpot_speedup
from specctl.bench.noise import BlockNoise
from specctl.bench.outputs import TieRule
from specctl.bench.records import Record
from specctl.runtime import SpecStats
from tests.bench.stand_ins import block, compared, record


def grid(
    base_s: float, other_s: float, noise: float, seed: int, prompts: int = 8, repeats: int = 5
) -> list[tuple[Record, Record]]:
    """Pairs whose TPOTs carry seeded noise of their own; prompts differ among each other."""
    rng = random.Random(seed)
    found = []
    for index in range(prompts):
        for repeat in range(repeats):
            kind = 1 + index / prompts
            left, right = (time * kind * rng.uniform(1 - noise, 1 + noise) for time in (base_s, other_s))
            found.append((record(index, repeat, tpot_s=left), record(index, repeat, tpot_s=right)))
    return found


def test_pairs_match_prompt_and_repeat_and_leave_failures_out() -> None:
    base = [block(record(0, 0), record(1, 0)), block(record(0, 1), record(1, 1, error="died"))]
    other = [block(record(1, 0), record(0, 0)), block(record(0, 1, error="died"), record(1, 1))]
    found = pairs(base, other)
    assert [(a.job.index, a.job.repeat, b.job.index) for a, b in found] == [(1, 0, 1), (0, 0, 0)]


def test_speedup_is_the_ratio_of_means_not_the_mean_of_ratios() -> None:
    matched = [(record(0, tpot_s=0.04), record(0, tpot_s=0.01)), (record(1, tpot_s=0.02), record(1, tpot_s=0.02))]
    assert tpot_speedup(matched) == pytest.approx(2.0)


def test_requests_of_one_token_are_left_out() -> None:
    matched = [(record(0, tpot_s=0.04), record(0, tpot_s=0.02)), (record(1), record(1, tokens=[7]))]
    assert tpot_speedup(matched) == pytest.approx(2.0)
    assert tpot_speedup(matched[1:]) is None
    assert speedup_interval(matched, 0) is None


def test_interval_without_noise_is_the_value_itself() -> None:
    interval = speedup_interval(grid(0.02, 0.01, 0.0, seed=1), 0)
    assert interval == [pytest.approx(2.0), pytest.approx(2.0)]


def test_interval_is_seeded() -> None:
    matched = grid(0.02, 0.01, 0.2, seed=1)
    assert speedup_interval(matched, 3) == speedup_interval(matched, 3)
    assert speedup_interval(matched, 3) != speedup_interval(matched, 4)


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    """95 % intervals over 200 seeded runs with 10 % noise: at least 92 % hold the true 1.25."""
    held = 0
    for seed in range(200):
        interval = speedup_interval(grid(0.01, 0.008, 0.1, seed), seed)
        assert interval is not None
        held += interval[0] <= 1.25 <= interval[1]
    assert held >= 184


def test_drift_of_a_whole_repeat_hits_both_and_cancels() -> None:
    """Repeats that are up to twice as slow for both sides leave the speed-up and its narrow interval alone."""
    slowed = []
    for base, other in grid(0.02, 0.01, 0.0, seed=1):
        factor = 1 + base.job.repeat / 4
        for side in (base, other):
            assert side.first_token_s is not None
            assert side.last_token_s is not None
            side.last_token_s = side.first_token_s + factor * (side.last_token_s - side.first_token_s)
        slowed.append((base, other))
    assert speedup_interval(slowed, 0) == [pytest.approx(2.0), pytest.approx(2.0)]


def never(base: Record, place: int) -> float:
    raise AssertionError(f"nothing differs, yet the margin at {place} of {base.job.prompt.id} was asked")


def stats(drafted: int, accepted: int, empty: int) -> SpecStats:
    found = SpecStats()
    found.record(drafted, accepted)
    for _ in range(empty):
        found.record(0, 0)
    return found


def test_a_whole_comparison() -> None:
    """TPOT 20 ms against 10 ms; 6 tokens in 2 s against 6 in 1.5 s; 3 accepted in 2 steps are 2.5 tokens a step."""
    base = [block(record(0, category="coding", tpot_s=0.03), record(1, tpot_s=0.01), duration_s=2.0)]
    fast = [
        block(
            record(0, category="coding", tpot_s=0.01, stats=stats(4, 3, 0)),
            record(1, tpot_s=0.01, stats=stats(0, 0, 0)),
            duration_s=1.5,
        )
    ]
    found = compare(("baseline", "ngram"), 4, 1, (base, fast), 0, TieRule(never, 1e-3)).as_dict()
    assert found["tpot_speedup"] == pytest.approx(2.0)
    assert found["throughput_ratio"] == pytest.approx(2.0 / 1.5)
    assert found["break_even_acceptance_length"] == pytest.approx(2.5 / 2.0)
    assert found["break_even_basis"] == "all steps"
    # A verify step takes 10 ms * 2.5, 5 ms more than a plain one, and brings 1.5 accepted tokens.
    assert found["cost_per_accepted_token_ms"] == pytest.approx(5 / 1.5)
    assert found["by_context"] == {"0-255": {"tpot_speedup": pytest.approx(2.0)}}
    assert found["by_category"] == {
        "coding": {"tpot_speedup": pytest.approx(3.0)},
        "all": {"tpot_speedup": pytest.approx(1.0)},
    }
    assert (found["outputs"], found["first_divergence"]) == ("identical", None)


def test_a_block_that_only_one_side_ran_does_not_count() -> None:
    base = [block(record(0)), block(record(1), duration_s=100.0)]
    found = compare(("baseline", "ngram"), 4, 1, (base, [block(record(0))]), 0, None)
    assert found.throughput_ratio == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("speedup", "ci", "ratio", "decision"),
    [
        (1.2, [1.01, 1.4], 1.0, "keep"),
        (1.2, [1.0, 1.4], 1.2, "within noise"),
        (1.2, [0.9, 1.4], 1.2, "within noise"),
        (1.2, [1.1, 1.4], 0.999, "within noise"),
        (1.2, [1.1, 1.4], 0.98, "drop"),
        (1.019, [1.01, 1.03], 1.2, "within noise"),
        (1.02, [1.01, 1.03], 1.2, "keep"),
        (0.9, [0.8, 0.99], 1.0, "drop"),
        (0.981, [0.97, 0.99], 0.9, "within noise"),
        (0.9, [0.8, 1.0], 0.9, "within noise"),
        (1.2, None, 1.2, None),
        (1.2, [1.1, 1.4], None, None),
    ],
)
def test_decision(speedup: float, ci: list[float] | None, ratio: float | None, decision: str | None) -> None:
    found = compared(speedup=speedup, ci=ci, ratio=ratio)
    assert found.decision == decision
    assert found.keep is (None if decision is None else decision == "keep")


def test_an_unmeasured_comparison_is_null_throughout() -> None:
    found = compare(("baseline", "ngram"), 4, 1, ([], []), 0, TieRule(never, 1e-3)).as_dict()
    measured = ("tpot_speedup", "tpot_speedup_ci", "throughput_ratio", "break_even_acceptance_length", "keep")
    assert [found[name] for name in measured] == [None] * 5
    assert found["outputs"] == "not-checked"


def test_the_interval_has_the_width_of_the_normal_one() -> None:
    """400 prompts, one repeat, the candidate's TPOT 0.9 or 1.1: standard error 0.005, so 1 ± 1.96 * 0.005."""
    matched = [(record(n, tpot_s=1.0), record(n, tpot_s=0.9 if n % 2 else 1.1)) for n in range(400)]
    interval = speedup_interval(matched, 0)
    assert interval == [pytest.approx(1 / 1.0098, abs=0.001), pytest.approx(1 / 0.9902, abs=0.001)]


def test_the_mix_of_categories_does_not_widen_the_interval() -> None:
    """One category is 3 times, the other 1 time as fast, without noise: every draw of this mix gives 1.5."""
    matched = []
    for n in range(8):
        name, fast = ("coding", 0.01) if n % 2 else ("math", 0.03)
        matched.append((record(n, category=name, tpot_s=0.03), record(n, category=name, tpot_s=fast)))
    assert speedup_interval(matched, 0) == [pytest.approx(1.5), pytest.approx(1.5)]


def test_one_prompt_a_category_still_has_a_spread() -> None:
    """With nothing to draw from inside a category, prompts are drawn from all: 1 and 3 times as fast is no sure 1.5."""
    matched = [
        (record(0, category="coding", tpot_s=0.03), record(0, category="coding", tpot_s=0.01)),
        (record(1, category="math", tpot_s=0.03), record(1, category="math", tpot_s=0.03)),
    ]
    interval = speedup_interval(matched, 0)
    assert interval is not None
    assert interval[0] < 1
    assert interval[1] > 3


def test_noise_of_blocks_widens_the_interval() -> None:
    """Without spread among prompts: 8 degrees of freedom, variance 0.01 over 4 blocks, so e to the 2.306 * 0.05."""
    matched = grid(0.02, 0.01, 0.0, seed=1)
    interval = speedup_interval(matched, 0, 0.95, BlockNoise(0.01, 8), 4)
    width = math.exp(2.306 * 0.05)
    assert interval == [pytest.approx(2 / width, rel=1e-3), pytest.approx(2 * width, rel=1e-3)]


def test_levels_widen_the_interval_by_bonferroni() -> None:
    base, fast = ([block(*(pair[side] for pair in grid(0.02, 0.01, 0.1, seed=1)))] for side in (0, 1))
    one, five = (compare(("baseline", "ngram"), 4, 1, (base, fast), 0, None, levels) for levels in (1, 5))
    assert (one.confidence, five.confidence) == (0.95, pytest.approx(0.99))
    assert one.tpot_speedup_ci is not None
    assert five.tpot_speedup_ci is not None
    assert five.tpot_speedup_ci[1] > one.tpot_speedup_ci[1]
