"""When a draft is called broken: certain of it, never of a weak one, never of a method without weights."""

from __future__ import annotations

import random

import pytest

from specctl.planning.alarm import BOUND, RISK, broken_draft, causes, first_position, has_weights, upper_bound
from specctl.spec.methods import METHODS


def test_the_bound_is_the_binomial_one() -> None:
    # Nothing in n: (1 - p)^n = risk. One in n: (1 - p)^n + n p (1 - p)^(n - 1) = risk.
    assert upper_bound(55, 0) == pytest.approx(1 - RISK ** (1 / 55))
    p = upper_bound(80, 1)
    assert (1 - p) ** 80 + 80 * p * (1 - p) ** 79 == pytest.approx(RISK)
    assert upper_bound(7, 7) == 1


def test_fifty_five_drafts_are_the_fewest() -> None:
    assert broken_draft("eagle3", 54, 0) is None
    found = broken_draft("eagle3", 55, 0)
    assert found is not None
    assert found.upper < BOUND
    assert "0 had their first token accepted (0.0 %" in found.text
    assert broken_draft("eagle3", 0, 0) is None


@pytest.mark.parametrize("accepted", [0, 3, 50, 90])
def test_a_thousand_drafts(accepted: int) -> None:
    assert (broken_draft("mtp", 1000, accepted) is not None) == (accepted < 90)


def test_methods_without_weights_are_never_accused() -> None:
    for name in METHODS:
        assert (broken_draft(name, 10_000, 0) is not None) == has_weights(name)
    assert not has_weights("ngram")
    assert not has_weights("suffix")
    assert has_weights("mtp")


def test_twenty_weak_drafts_raise_none() -> None:
    dice = random.Random(4)
    for place in range(20):
        rate, drafts = 0.13 + place * 0.01, 50 * 2 ** (place % 8)
        accepted = sum(dice.random() < rate for _ in range(drafts))
        assert broken_draft("draft_model", drafts, accepted) is None


def test_causes_come_in_order_and_belong_to_the_method() -> None:
    names = [name for name, _ in causes("eagle3")]
    order = ["wrong target", "tap layers", "norm flags", "chat template", "tokenizer", "rope", "dtype"]
    assert [name for name in names if name in order] == order
    assert {name for name, _ in causes("draft_model")}.isdisjoint({"tap layers", "norm flags"})


def test_counts_come_from_a_reports_figures() -> None:
    assert first_position(200, [0.125, 0.1]) == (200, 25)
    assert first_position(200, []) == (200, 0)
    assert first_position(None, [0.5]) is None
    assert first_position(0, None) is None
