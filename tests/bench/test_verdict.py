"""Which candidate is kept, and up to where."""

from __future__ import annotations

import pytest

from specctl.bench.compare import Comparison
from specctl.bench.outputs import Divergence, Outputs
from specctl.bench.verdict import judge
from tests.bench.stand_ins import compared


def row(
    name: str, level: int, speedup: float, *, k: int = 4, outputs: str = "identical", ratio: float = 1.1
) -> Comparison:
    ci = [speedup - 0.05, speedup + 0.05]
    where = Divergence(1, 17, 0.5) if outputs == "different" else None
    return compared(name, level, speedup, ci, ratio, k, Outputs(outputs, where))


@pytest.mark.parametrize(
    ("speedups", "level"),
    [
        ({1: 1.5, 8: 1.2}, 8),
        ({1: 1.5, 8: 0.9}, 1),
        ({1: 0.9, 8: 1.5}, 0),
        ({1: 1.5, 2: 1.0, 4: 1.5}, 1),
        ({8: 1.2, 1: 1.5, 4: 1.3}, 8),
    ],
)
def test_kept_with_all_lower_levels(speedups: dict[int, float], level: int) -> None:
    assert judge([row("ngram", at, value) for at, value in speedups.items()]).keep_up_to_concurrency == level


def test_the_best_candidate_decides() -> None:
    rows = [row("ngram", 1, 1.9), row("ngram", 8, 0.8), row("draft_model", 1, 1.2), row("draft_model", 8, 1.1)]
    verdict = judge(rows)
    assert verdict.keep_up_to_concurrency == 8
    assert "draft_model (k=4)" in verdict.text


def test_the_same_method_with_two_k_is_two_candidates() -> None:
    verdict = judge([row("ngram", 1, 1.2, k=2), row("ngram", 1, 1.6, k=6)])
    assert "ngram (k=6)" in verdict.text
    assert "k=2" not in verdict.text


def test_the_text_says_keep_drop_and_plain() -> None:
    assert judge([row("ngram", 1, 1.5), row("ngram", 8, 0.9)]).text == (
        "Keep ngram (k=4) up to concurrency 1 and drop it above: "
        "TPOT changes by 1.50x [1.45, 1.55] at 1, 0.90x [0.85, 0.95] at 8."
    )
    assert judge([row("ngram", 2, 1.5)]).text == (
        "Keep ngram (k=4) at concurrency 2, the only level tested: TPOT is better by 1.50x [1.45, 1.55]."
    )
    assert judge([row("ngram", 1, 0.9)]).text.startswith("Keep plain decoding")


def test_a_throughput_that_falls_is_not_kept() -> None:
    assert judge([row("ngram", 1, 1.5, ratio=0.95)]).keep_up_to_concurrency == 0


def test_different_outputs_come_first() -> None:
    verdict = judge([row("ngram", 1, 1.5), row("draft_model", 1, 1.1, outputs="different")], {1: "math-3"})
    assert verdict.text.startswith("Do not use it: draft_model (k=4) changes the output at concurrency 1")
    assert "request math-3, token 17, margin 0.5" in verdict.text


def test_no_comparison_no_verdict() -> None:
    assert judge([]).keep_up_to_concurrency is None


def test_each_level_names_its_best_candidate_and_decision() -> None:
    rows = [row("ngram", 1, 1.9), row("ngram", 8, 0.8), row("draft_model", 1, 1.2), row("draft_model", 8, 0.9)]
    levels = [(level.concurrency, level.best.candidate, level.best.decision) for level in judge(rows).levels]
    assert levels == [(1, "ngram", "keep"), (8, "draft_model", "drop")]


def test_the_best_k_changes_with_the_level() -> None:
    rows = [row("ngram", level, speed, k=k) for level, k, speed in ((1, 2, 1.3), (1, 6, 1.6), (8, 2, 1.1), (8, 6, 0.9))]
    verdict = judge(rows)
    assert (verdict.keep_up_to_concurrency, verdict.candidate) == (8, ("ngram", 2))
    assert verdict.plan == {1: 6, 8: 2}
    assert verdict.text.endswith("Best k: 6 at 1, 2 at 8.")


def test_a_gain_within_noise_is_not_called_a_loss() -> None:
    text = judge([row("ngram", 1, 1.5), row("ngram", 8, 1.01)]).text
    assert text.startswith("Keep ngram (k=4) up to concurrency 1 and not above, where its gain is within noise:")
    assert "is within noise" in judge([row("ngram", 1, 1.01)]).text
