"""Greedy text is that of plain decoding for every pair of method, target, shape of draft, batch and number of accepted
tokens; `tests.runtime.grid` checks all combinations.
"""

from __future__ import annotations

import pytest

from tests.runtime.grid import AXES, Bench, Case, check, pairwise_cases


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("grid"))


@pytest.mark.parametrize("case", pairwise_cases(), ids=lambda case: "-".join(map(str, case)).replace(" ", "_"))
def test_no_combination_changes_a_token(case: Case, bench: Bench) -> None:
    check(bench, case)


def test_every_pair_of_values_is_among_the_cases() -> None:
    cases = pairwise_cases()
    for first, second in ((0, 2), (0, 4), (1, 2), (2, 4)):
        values = list(AXES.values())
        assert {(case[first], case[second]) for case in cases} == {
            (a, b) for a in values[first] for b in values[second]
        }
    assert len(cases) < 120
