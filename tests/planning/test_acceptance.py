"""The formulas of acceptance, against the papers and published tables."""

from __future__ import annotations

from itertools import pairwise

import pytest

from specctl.errors import UsageError
from specctl.planning.acceptance import (
    Acceptance,
    best_length,
    expected_length,
    falling_length,
    from_length,
    from_rate,
    solve_alpha,
    walltime_factor,
)


@pytest.mark.parametrize(
    ("alpha", "k", "length"),
    [
        (0.5, 3, 1.875),
        (0.7, 3, 2.533),
        (0.7, 5, 2.9412),
        (0.8, 5, 3.6893),
        (0.8, 7, 4.1611),
        (0.9, 7, 5.6953),
        (1, 4, 5),
    ],
)
def test_expected_length(alpha: float, k: int, length: float) -> None:
    assert expected_length(alpha, k) == pytest.approx(length, abs=5e-5 if length != 2.533 else 5e-4)


# Leviathan et al., tables 2 and 4: k, alpha, c, the paper's expectation.
LEVIATHAN = [
    (7, 0.75, 0.02, 3.2), (7, 0.80, 0.04, 3.3), (7, 0.82, 0.11, 2.5), (7, 0.62, 0.02, 2.3), (5, 0.68, 0.04, 2.4),
    (3, 0.71, 0.11, 2.0), (5, 0.65, 0.02, 2.4), (5, 0.73, 0.04, 2.6), (3, 0.74, 0.11, 2.0), (5, 0.53, 0.02, 1.9),
    (3, 0.55, 0.04, 1.8), (3, 0.56, 0.11, 1.6),
]  # fmt: skip


@pytest.mark.parametrize(("k", "alpha", "cost", "expected"), LEVIATHAN)
def test_speed_ups_of_the_paper(k: int, alpha: float, cost: float, expected: float) -> None:
    assert walltime_factor(alpha, k, cost) == pytest.approx(expected, abs=0.1)


BEST = {
    0.01: ((5, 1.88), (7, 2.30), (9, 2.97), (14, 4.23), (24, 7.49)),
    0.02: ((4, 1.79), (6, 2.17), (8, 2.76), (11, 3.82), (19, 6.37)),
    0.05: ((3, 1.63), (4, 1.92), (6, 2.35), (8, 3.09), (13, 4.67)),
    0.1: ((2, 1.46), (3, 1.67), (4, 1.98), (6, 2.47), (10, 3.43)),
    0.2: ((1, 1.25), (2, 1.40), (3, 1.58), (4, 1.87), (7, 2.37)),
}


@pytest.mark.parametrize("cost", BEST)
def test_best_lengths(cost: float) -> None:
    for alpha, (k, factor) in zip((0.5, 0.6, 0.7, 0.8, 0.9), BEST[cost], strict=True):
        found = best_length(alpha, cost)
        assert found[0] == k
        assert found[1] == pytest.approx(factor, abs=0.006)


def test_no_gain_without_acceptance_above_the_cost() -> None:
    assert best_length(0.1, 0.2) == (0, 1.0)
    for alpha, cost in ((0.3, 0.2), (0.6, 0.5), (0.9, 0.1)):
        assert best_length(alpha, cost)[1] >= (1 + alpha) / (1 + cost) > 1


def test_a_measured_verify_cost_lowers_the_factor() -> None:
    assert walltime_factor(0.8, 4, 0.05, verify=2.2) == pytest.approx(expected_length(0.8, 4) / 2.4)


@pytest.mark.parametrize(
    ("length", "alpha", "at_seven"),
    [(3.02, 0.815, 4.35), (2.83, 0.772, 3.84), (2.50, 0.691, 3.07), (2.75, 0.754, None), (2.10, 0.576, None)],
)
def test_constant_chance_from_three_drafted_tokens(length: float, alpha: float, at_seven: float | None) -> None:
    found = solve_alpha(3, length)
    assert found == pytest.approx(alpha, abs=6e-4)
    if at_seven is not None:
        assert expected_length(found, 7) == pytest.approx(at_seven, abs=0.006)


# Mean acceptance lengths of k = 1 to 7, the card of RedHat's head for Llama 4 Maverick.
MAVERICK = {
    "HumanEval": (1.83, 2.45, 2.94, 3.26, 3.47, 3.57, 3.62),
    "GSM8K": (1.86, 2.56, 3.08, 3.53, 3.73, 3.91, 4.02),
    "CNN/DailyMail": (1.69, 2.12, 2.37, 2.52, 2.60, 2.63, 2.63),
}


@pytest.mark.parametrize("name", MAVERICK)
def test_falling_chance_meets_a_whole_card_from_one_figure(name: str) -> None:
    card = MAVERICK[name]
    model = Acceptance({3: card[2]}, "")
    for k, length in enumerate(card, 1):
        assert model.length(k) == pytest.approx(length, rel=0.07)
    constant = expected_length(solve_alpha(3, card[2]), 7)
    assert abs(model.length(7) - card[6]) < abs(constant - card[6])


# SpecForge's SpecBundle: lengths at k = 3, 5, 7 (Llama-3.1-8B, then Qwen3-30B-A3B).
CHAINS = [(2.90, 3.52, 3.86), (3.34, 4.32, 4.91), (2.55, 2.85, 2.97), (2.496, 2.831, 2.982), (3.349, 4.384, 5.124)]


@pytest.mark.parametrize("chain", CHAINS)
def test_falling_chance_meets_published_chains(chain: tuple[float, ...]) -> None:
    model = Acceptance({3: chain[0]}, "")
    assert model.length(5) == pytest.approx(chain[1], rel=0.04)
    assert model.length(7) == pytest.approx(chain[2], rel=0.06)


def test_between_two_figures_the_curve_meets_both() -> None:
    model = Acceptance({3: 3.02, 7: 3.89}, "")
    found = [model.length(k) for k in range(1, 9)]
    assert (found[2], found[6]) == (3.02, 3.89)
    assert found == sorted(found)
    steps = [after - before for before, after in pairwise(found)]
    assert steps[2:] == sorted(steps[2:], reverse=True)


def test_lengths_stay_possible() -> None:
    for k in range(1, 9):
        assert 1 <= Acceptance({3: 4.0}, "").length(k) <= k + 1
        assert Acceptance({3: 1.0}, "").length(k) == pytest.approx(1, abs=1e-6)
    assert falling_length(1.0, 3, 1.0) == 4


def test_rates_and_lengths_are_the_same_thing() -> None:
    assert from_rate(0.771, 3, "").length(3) == pytest.approx(3.313)
    assert from_length(2.5, 3, "").length(3) == 2.5


@pytest.mark.parametrize(
    "build", [lambda: from_length(4.5, 3, ""), lambda: from_length(0.9, 3, ""), lambda: from_rate(1.2, 3, "")]
)
def test_impossible_figures(build: object) -> None:
    with pytest.raises(UsageError, match="not possible"):
        build()  # type: ignore[operator]
