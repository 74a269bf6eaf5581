"""The figures of `benchmarks.auto_length`: ratios of paired repeats, and which of them break a bar."""

from __future__ import annotations

import pytest

from benchmarks.auto_length import compared, ratio, told


def test_a_ratio_of_paired_repeats_has_its_interval() -> None:
    found = ratio("eagle3", "math", "plain", [2.0, 2.2, 1.8], [1.0, 1.0, 1.0], 0.95)
    assert found.ratio == pytest.approx((2.0 * 2.2 * 1.8) ** (1 / 3))
    assert found.low < 1.8 < found.ratio < 2.2 < found.high
    same = ratio("eagle3", "math", "plain", [2.0, 4.0], [2.0, 4.0], 0.95)
    assert (same.low, same.ratio, same.high) == pytest.approx((1.0, 1.0, 1.0))


def test_only_an_interval_wholly_beyond_a_bar_breaks_it() -> None:
    times = {
        "plain": [1.00, 1.01, 0.99],
        "auto": [1.20, 1.21, 1.19],
        "k = 1": [2.0, 2.0, 2.0],
        "k = 4": [1.1, 1.1, 1.1],
    }
    plain, best = compared("eagle3", "concurrency 4", times)
    assert not plain.holds
    assert told(plain).endswith("BEYOND 5 % slower")
    assert best.other == "best fixed, k = 4"
    assert best.holds
    assert ratio("eagle3", "math", "plain", [0.7, 1.4], [1.0, 1.0], 0.95).holds
