"""Outputs token by token, and what each difference is put down to."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from specctl.bench.outputs import Divergence, TieRule, compare_outputs, first_difference
from specctl.bench.records import Record
from tests.bench.stand_ins import record


@pytest.mark.parametrize(
    ("one", "other", "place"),
    [([], [], None), ([1, 2], [1, 2], None), ([1, 2], [1, 3], 1), ([1, 2], [1, 2, 3], 2), ([], [1], 0)],
)
def test_first_difference(one: list[int], other: list[int], place: int | None) -> None:
    assert first_difference(one, other) == place


class Margins:
    """Answers `at[token]` and notes what it was asked."""

    def __init__(self, at: dict[int, float | None]) -> None:
        self.at = at
        self.asked: list[tuple[str, int]] = []

    def __call__(self, base: Record, place: int) -> float | None:
        self.asked.append((base.job.prompt.id, place))
        return self.at[place]


def seen(matched: Sequence[tuple[Record, Record]], rule: TieRule) -> tuple[str, Divergence | None]:
    found = compare_outputs(matched, rule)
    return found.status, found.first


def outputs(base: Sequence[int], *others: Sequence[int]) -> list[tuple[Record, Record]]:
    return [(record(0, repeat, tokens=base), record(0, repeat, tokens=other)) for repeat, other in enumerate(others)]


def test_identical_outputs_cost_no_forward() -> None:
    margins = Margins({})
    assert seen(outputs([1, 2], [1, 2]), TieRule(margins, 1e-3)) == ("identical", None)
    assert margins.asked == []


def test_a_near_tie_is_told_with_its_margin_and_asked_once() -> None:
    margins = Margins({2: 4e-4})
    found = seen(outputs([7, 8, 9], [7, 8, 3], [7, 8, 4, 4]), TieRule(margins, 1e-3))
    assert found == ("near-tie", Divergence(0, 2, 4e-4, "near-tie"))
    assert margins.asked == [("p0", 2)]


def test_a_margin_at_the_limit_is_still_a_tie() -> None:
    assert seen(outputs([7], [8]), TieRule(Margins({0: 1e-3}), 1e-3))[0] == "near-tie"


def test_without_tolerance_only_an_exact_tie_passes() -> None:
    assert seen(outputs([7], [8]), TieRule(Margins({0: 0.0}), 0.0))[0] == "near-tie"
    assert seen(outputs([7], [8]), TieRule(Margins({0: 1e-9}), 0.0))[0] == "different"


def test_a_real_difference_wins_over_an_earlier_near_tie() -> None:
    matched = [*outputs([7, 8, 9], [7, 8, 3]), (record(5, tokens=[7, 8]), record(5, tokens=[6, 8]))]
    found = seen(matched, TieRule(Margins({2: 1e-6, 0: 2.5}), 1e-3))
    assert found == ("different", Divergence(5, 0, 2.5))


def test_an_output_that_ends_early_differs_whatever_the_margin() -> None:
    margins = Margins({})
    assert seen(outputs([7, 8], [7]), TieRule(margins, 1e9)) == ("different", Divergence(0, 1, None))
    assert margins.asked == []


def test_nothing_to_compare_is_not_identical() -> None:
    assert seen([], TieRule(Margins({}), 1e-3)) == ("not-checked", None)


def test_the_first_of_two_near_ties_is_told() -> None:
    matched = [*outputs([7, 8, 9], [7, 8, 3]), (record(5, tokens=[7, 8]), record(5, tokens=[6, 8]))]
    assert seen(matched, TieRule(Margins({2: 1e-6, 0: 2e-6}), 1e-3)) == (
        "near-tie",
        Divergence(0, 2, 1e-6, "near-tie"),
    )


def test_each_cause_is_counted() -> None:
    """One near-tie, one real difference, one output that was cut, one that is equal; a request each."""
    base = [record(n, tokens=[7, 8, 9]) for n in range(4)]
    other = [record(n, tokens=tokens) for n, tokens in enumerate(([7, 8, 3], [6, 8, 9], [7, 8], [7, 8, 9]))]
    other[2].finish_reason = "length"
    rule = TieRule(Margins({2: 0.1, 0: 3.0}), 0.25, may_truncate=True)
    found = compare_outputs(list(zip(base, other, strict=True)), rule)
    assert found.counts == {"near-tie": 1, "real": 1, "truncation": 1}
    assert (found.status, found.checked) == ("different", 4)
    assert found.first == Divergence(1, 0, 3.0, "real")


def test_sampled_outputs_are_counted_and_never_judged() -> None:
    found = compare_outputs(outputs([7, 8], [7, 9]), TieRule(Margins({}), 1e-3, greedy=False))
    assert (found.status, found.counts) == ("not-checked", {"sampling": 1})


def test_a_cut_output_alone_is_no_wrong_token() -> None:
    matched = outputs([7, 8, 9], [7, 8])
    matched[0][1].finish_reason = "length"
    assert seen(matched, TieRule(Margins({}), 0.25, may_truncate=True)) == (
        "truncated",
        Divergence(0, 2, None, "truncation"),
    )


def test_an_end_that_a_server_leaves_out_was_still_chosen() -> None:
    """The candidate ended by itself after two tokens where the baseline went on: the margin there decides."""
    rule = TieRule(Margins({2: 1.5}), 0.25, may_truncate=True)
    assert seen(outputs([7, 8, 9], [7, 8]), rule) == ("different", Divergence(0, 2, 1.5))


def test_text_alone_is_compared_by_characters() -> None:
    base, other = record(0, tokens=[]), record(0, tokens=[])
    base.text, other.text = "a ride", "a rise"
    assert seen([(base, other)], TieRule(Margins({}), 0.25)) == (
        "different",
        Divergence(0, 4, None, "real", "character"),
    )


def test_a_margin_that_nobody_knows_excuses_nothing() -> None:
    assert seen(outputs([7], [8]), TieRule(Margins({0: None}), 0.25)) == ("different", Divergence(0, 0, None))
