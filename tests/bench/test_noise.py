"""The noise of whole blocks, told apart from the spread among prompts; Student's factor."""

from __future__ import annotations

import math
import random

import pytest
from scipy import stats

from specctl.bench.noise import PRIOR_FREEDOM, PRIOR_VARIANCE, BlockNoise, block_noise, paired_blocks, student
from specctl.bench.outputs import Pair
from tests.bench.stand_ins import block, record


def blocks(shifts: list[float], spread: float, seed: int, size: int = 16) -> list[list[Pair]]:
    """Blocks whose speed-up is `exp(shift)`, its pairs scattered by `spread`."""
    rng = random.Random(seed)
    return [
        [
            (record(n, place, tpot_s=0.01), record(n, place, tpot_s=0.01 / math.exp(shift + rng.gauss(0, spread))))
            for n in range(size)
        ]
        for place, shift in enumerate(shifts)
    ]


def measured(noise: BlockNoise) -> float:
    """The variance without what was taken for granted."""
    known = noise.freedom - PRIOR_FREEDOM
    return (noise.variance * noise.freedom - PRIOR_VARIANCE * PRIOR_FREEDOM) / known


def test_blocks_that_differ_only_by_chance_have_no_noise_of_their_own() -> None:
    found = [measured(block_noise([blocks([0.0] * 20, 0.1, seed)])) for seed in range(10)]
    assert max(found) < 0.1**2 / 16
    assert sum(found) / 10 < 0.1**2 / 16 / 4


def test_the_noise_of_blocks_is_estimated_from_all_levels() -> None:
    rng = random.Random(3)
    levels = [blocks([rng.gauss(0, 0.08) for _ in range(5)], 0.05, seed) for seed in range(40)]
    noise = block_noise(levels)
    assert noise.freedom == 40 * 4 + PRIOR_FREEDOM
    assert measured(noise) == pytest.approx(0.08**2, rel=0.25)


def test_categories_that_differ_are_no_noise() -> None:
    """Coding is 3 times, math 1 time as fast in every block alike."""
    turns = [
        [
            (record(n, place, category=name, tpot_s=0.03), record(n, place, category=name, tpot_s=fast))
            for n, (name, fast) in enumerate([("coding", 0.01), ("math", 0.03)] * 2)
        ]
        for place in range(6)
    ]
    assert measured(block_noise([turns])) == pytest.approx(0.0, abs=1e-12)


def test_one_block_a_level_leaves_what_is_taken_for_granted() -> None:
    granted = BlockNoise(PRIOR_VARIANCE, PRIOR_FREEDOM)
    assert block_noise([blocks([0.3], 0.1, 1)]) == granted
    assert block_noise([]) == granted


def test_failed_and_single_token_requests_make_no_pair() -> None:
    base = block(record(0), record(1, error="died"), record(2, tokens=[7]))
    other = block(record(0), record(1), record(2))
    assert [[pair[0].job.index for pair in turn] for turn in paired_blocks([base], [other])] == [[0]]


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 8, 20, 100])
@pytest.mark.parametrize("probability", [0.975, 0.995])
def test_students_factor(probability: float, freedom: int) -> None:
    rough = 0.06 if freedom == 3 else 0.02
    assert student(probability, freedom) == pytest.approx(float(stats.t.ppf(probability, freedom)), rel=rough)


def test_without_an_estimate_the_normal_factor_stands() -> None:
    assert student(0.975, 0) == pytest.approx(1.95996, abs=1e-4)
