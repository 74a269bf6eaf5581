"""Figures against values worked out by hand, numpy's percentiles and published counters."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specctl.bench.metrics import (
    acceptance,
    ended_by,
    percentile,
    pooled,
    repeated_4gram_share,
    repetition,
    run_figures,
    summary_ms,
)
from specctl.runtime import SpecStats
from tests.bench.stand_ins import block, record


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.floats(0, 100))
def test_percentiles_are_numpys(values: list[float], percent: float) -> None:
    assert percentile(values, percent) == pytest.approx(float(np.percentile(values, percent)), abs=1e-6, rel=1e-9)


def test_summary_leaves_out_what_was_not_measured() -> None:
    assert summary_ms([0.001, None, 0.003]) == {"mean": 2.0, "median": 2.0, "p99": pytest.approx(2.98)}
    assert summary_ms([None]) == {"mean": None, "median": None, "p99": None}


def test_vllms_published_counters() -> None:
    """MT-bench, Llama-3.1-8B with EAGLE-3, k = 7: 4816 drafts, 33712 drafted, 12208 accepted."""
    found = acceptance(SpecStats(5000, 4816, 33712, 12208))
    assert found["mean_acceptance_length"] == pytest.approx(3.535, abs=5e-4)
    assert found["acceptance_rate"] == pytest.approx(0.3621, abs=5e-5)
    assert found["mean_acceptance_length_all_steps"] == pytest.approx(1 + 12208 / 5000)


@pytest.mark.parametrize(
    ("rates", "length"),
    [
        ([0.586, 0.299, 0.149, 0.079, 0.042], 2.155),  # an EAGLE-3 head of Qwen3-30B-A3B at k = 5, as published
        ([0.805, 0.632, 0.483], 2.92),  # a line of llama.cpp's log
    ],
)
def test_published_rates_by_place_add_up_to_the_length(rates: list[float], length: float) -> None:
    """Mean acceptance length = 1 + the sum of the unconditional rates; each conditional rate is one over the last."""
    stats = SpecStats()
    reached = [round(1000 * rate) for rate in rates]
    for number in range(1000):
        stats.record(len(rates), sum(number < count for count in reached))
    assert stats.mean_acceptance_length == pytest.approx(length, abs=1e-9)
    assert stats.acceptance_per_position == pytest.approx(rates)
    conditional = [rates[0], *(now / before for before, now in pairwise(rates))]
    assert stats.conditional_acceptance_per_position == pytest.approx(conditional)


def test_acceptance_without_drafts_is_null_not_zero() -> None:
    plain = acceptance(SpecStats(num_verify_steps=40))
    assert (plain["num_drafts"], plain["acceptance_rate"], plain["mean_acceptance_length"]) == (0, None, None)
    assert plain["mean_acceptance_length_all_steps"] == 1.0
    assert set(acceptance(None).values()) == {None}


def counted(drafted_and_accepted: list[tuple[int, int]]) -> SpecStats:
    stats = SpecStats()
    for drafted, accepted in drafted_and_accepted:
        stats.record(drafted, accepted)
    return stats


def test_counters_are_pooled_over_requests_not_averaged() -> None:
    """1 of 4 and 12 of 16 tokens are 13 of 20, not the mean of 0.25 and 0.75."""
    records = [record(stats=counted([(4, 1)])), record(stats=counted([(4, 4), (4, 4), (4, 4), (4, 0)])), record()]
    sums = pooled(records)
    assert sums is not None
    assert (sums.num_drafts, sums.acceptance_rate) == (5, 13 / 20)
    assert acceptance(sums)["acceptance_length_histogram"] == [1, 1, 0, 0, 3]
    assert acceptance(sums)["acceptance_per_position"] == [4 / 5, 3 / 5, 3 / 5, 3 / 5]
    assert acceptance(sums)["conditional_acceptance_per_position"] == [4 / 5, 3 / 4, 1, 1]


def test_run_figures() -> None:
    """Two blocks of 2 s and 3 s with 3 + 3 and 1 output tokens; prompts of one token; one request failed."""
    stats = counted([(4, 2)])
    blocks = [
        block(record(0, tpot_s=0.01, category="coding", stats=stats), record(1, tpot_s=0.03), duration_s=2.0),
        block(record(2, tokens=[7]), record(3, error="died"), duration_s=3.0),
    ]
    found = run_figures(blocks)
    assert (found["requests"], found["failed"], found["output_tokens"]) == (3, 1, 7)
    assert found["tpot_ms"] == {"mean": pytest.approx(20), "median": pytest.approx(20), "p99": pytest.approx(29.8)}
    assert found["ttft_ms"]["mean"] == pytest.approx(100)
    assert found["e2e_ms"]["mean"] == pytest.approx((120 + 160 + 100) / 3)
    assert found["output_throughput"] == pytest.approx(7 / 5)
    assert found["total_throughput"] == pytest.approx(10 / 5)
    assert found["duration_s"] == 5
    assert list(found["by_category"]) == ["coding", "all"]
    assert found["by_category"]["coding"] == {
        "num_drafts": 1,
        "num_draft_tokens": 4,
        "num_accepted_tokens": 2,
        "mean_acceptance_length": 3.0,
        "tpot_ms": {"mean": pytest.approx(10), "median": pytest.approx(10), "p99": pytest.approx(10)},
    }
    assert found["by_category"]["all"]["num_drafts"] is None


def test_figures_of_nothing_are_null() -> None:
    found = run_figures([])
    assert (found["requests"], found["failed"]) == (0, 0)
    assert found["output_tokens"] is found["output_throughput"] is found["duration_s"] is None
    assert run_figures([block(record(error="died"))])["output_throughput"] is None


@pytest.mark.parametrize(
    ("tokens", "share"),
    [
        ([1, 2, 3], None),
        ([1, 2, 3, 4], 0.0),
        ([1, 2, 3, 4, 1, 2, 3, 4], 1 / 5),  # 1234 2341 3412 4123 1234
        ([5] * 10, 6 / 7),
    ],
)
def test_repeated_4grams(tokens: list[int], share: float | None) -> None:
    assert repeated_4gram_share(tokens) == share


def test_repetition_by_category() -> None:
    records = [
        record(tokens=[5] * 5, category="coding"),
        record(tokens=[1, 2, 3, 4], category="coding"),
        record(tokens=[1], category="math"),
    ]
    assert repetition(records) == {"coding": {"max": 0.5, "mean": 0.25}, "math": {"max": None, "mean": None}}


def test_ended_by_eos() -> None:
    records = [record(tokens=[7, 2]), record(tokens=[2, 7]), record(tokens=[3]), record(tokens=[9])]
    assert ended_by(records, frozenset({2, 3})) == 0.5
    assert ended_by([], frozenset({2})) is None
