"""Acceptance counters against figures that vLLM published, and their arithmetic."""

from __future__ import annotations

import pytest

from specctl.runtime import SpecStats


def test_published_figures_of_vllm() -> None:
    """MT-bench, EAGLE-3 on Llama-3.1-8B, k = 7: 4816 drafts, 12208 of 33712 drafted tokens accepted."""
    stats = SpecStats(num_verify_steps=4816, num_drafts=4816, num_draft_tokens=33712, num_accepted_tokens=12208)
    assert stats.mean_acceptance_length == pytest.approx(3.535, abs=5e-4)
    assert stats.acceptance_rate == pytest.approx(0.3621, abs=5e-5)


def test_counting_by_hand() -> None:
    stats = SpecStats()
    for drafted, accepted in ((3, 3), (3, 1), (2, 0), (0, 0), (3, 1)):
        stats.record(drafted, accepted)
    assert (stats.num_verify_steps, stats.num_drafts) == (5, 4)
    assert (stats.num_draft_tokens, stats.num_accepted_tokens) == (11, 5)
    assert stats.accepted_per_position == [3, 1, 1]
    assert stats.acceptance_length_histogram == [1, 2, 0, 1]
    assert stats.mean_acceptance_length == 2.25
    assert stats.mean_acceptance_length_all_steps == 2.0
    assert stats.acceptance_per_position == [0.75, 0.25, 0.25]
    assert stats.conditional_acceptance_per_position == [0.75, pytest.approx(1 / 3), 1.0]
    assert sum(stats.acceptance_length_histogram) == stats.num_drafts
    assert 1 + sum(stats.acceptance_per_position) == stats.mean_acceptance_length


def test_what_was_not_measured_is_none() -> None:
    stats = SpecStats()
    assert stats.acceptance_rate is None
    assert stats.mean_acceptance_length is None
    assert stats.mean_acceptance_length_all_steps is None
    stats.record(0, 0)
    assert stats.mean_acceptance_length is None
    assert stats.mean_acceptance_length_all_steps == 1.0
    assert stats.acceptance_per_position == []


def test_windows() -> None:
    stats = SpecStats()
    stats.record(2, 1)
    before = stats.copy()
    stats.record(4, 4)
    window = stats - before
    assert (window.num_drafts, window.accepted_per_position) == (1, [1, 1, 1, 1])
    assert before + window == stats
    before.record(1, 1)
    assert stats.num_drafts == 2, "a copy is independent"
