"""Verification is exact: the outcome's distribution is the target's, and a bias of two percent would be noticed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from scipy.stats import chisquare

from specctl.runtime import Engine, EngineOptions, Request, SamplingParams, load_target
from specctl.runtime.sampling import Randomness, draw, probabilities
from specctl.runtime.verify import Outcome, verify_greedy, verify_sampled

N = 20_000
ALARM = 1e-4


def p_value(counts: Counter[int], expected: torch.Tensor) -> float:
    total = sum(counts.values())
    observed = [counts[i] for i in range(len(expected))]
    assert not any(seen for seen, share in zip(observed, expected.tolist(), strict=True) if share == 0)
    expected = expected.double() / expected.double().sum()
    kept = [i for i, share in enumerate(expected.tolist()) if share > 0]
    return float(chisquare([observed[i] for i in kept], [float(expected[i]) * total for i in kept]).pvalue)


@pytest.mark.parametrize(
    ("draft", "best", "outcome"),
    [
        ([1, 2, 3], [1, 2, 3, 4], Outcome(3, 4)),
        ([1, 2, 3], [1, 2, 9, 4], Outcome(2, 9)),
        ([1, 2, 3], [7, 2, 3, 4], Outcome(0, 7)),
        ([], [5], Outcome(0, 5)),
    ],
)
def test_greedy_verification(draft: list[int], best: list[int], outcome: Outcome) -> None:
    assert verify_greedy(draft, best) == outcome


def test_rejection_by_hand() -> None:
    target = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [1.0, 0.0, 0.0]])
    proposal = torch.tensor([[0.25, 0.75, 0.0], [0.0, 0.5, 0.5]])
    # 0.3 / 0.75 = 0.4: just below is accepted, 0.4 itself is not; the residual of row 0 is [0.25, 0, 0.2].
    assert verify_sampled([1, 1], target, proposal, [0.39, 0.99, 0.5]) == Outcome(2, 0)
    assert verify_sampled([1, 1], target, proposal, [0.41, 0.0, 0.55]) == Outcome(0, 0)
    assert verify_sampled([1, 1], target, proposal, [0.41, 0.0, 0.56]) == Outcome(0, 2)
    # One-hot: accepted with the target's own probability; the residual leaves the token out.
    assert verify_sampled([2], target[:2], None, [0.19, 0.05]) == Outcome(1, 0)
    assert verify_sampled([2], target[:2], None, [0.21, 0.99]) == Outcome(0, 1)


@pytest.mark.parametrize("one_hot", [True, False])
def test_the_pair_of_first_tokens_follows_the_target(one_hot: bool) -> None:
    """Two drafted places: the joint law of the first two emitted tokens is p(a) p(b)."""
    generator = torch.Generator().manual_seed(5)
    target = torch.rand(3, 5, generator=generator).softmax(-1)
    target[0, 3] = 0
    target[0] /= target[0].sum()
    proposal = (3 * torch.rand(2, 5, generator=generator)).softmax(-1)
    dice = Randomness(17)
    first: Counter[int] = Counter()
    second: Counter[int] = Counter()
    for _ in range(N):
        drafted = [draw(proposal[i], dice.uniforms(1)[0]) for i in range(2)]
        outcome = verify_sampled(drafted, target, None if one_hot else proposal, dice.uniforms(3))
        emitted = [*drafted[: outcome.accepted], outcome.next_token]
        first[emitted[0]] += 1
        if len(emitted) > 1:
            second[emitted[1]] += 1
    assert p_value(first, target[0]) >= ALARM
    assert p_value(second, target[1]) >= ALARM
    biased = target[0].clone()
    biased[0] += 0.02
    biased[1] -= 0.02
    assert p_value(first, biased) < ALARM, "a bias of two percent must be noticed"


def test_filters_by_hand() -> None:
    logits = torch.tensor([0.4, 0.3, 0.2, 0.1]).log()

    def law(**how: float) -> list[float]:
        return [round(x, 4) for x in probabilities(logits, SamplingParams(temperature=1.0, **how)).tolist()]  # type: ignore[arg-type]

    assert law() == [0.4, 0.3, 0.2, 0.1]
    assert law(top_k=2) == [0.5714, 0.4286, 0, 0]
    assert law(top_p=0.69) == [0.5714, 0.4286, 0, 0]
    assert law(top_p=0.71) == [0.4444, 0.3333, 0.2222, 0]
    assert law(top_p=1e-9) == [1, 0, 0, 0]
    assert law(min_p=0.6) == [0.5714, 0.4286, 0, 0]
    assert law(top_k=3, top_p=0.7) == [0.5714, 0.4286, 0, 0], "top-p sees what top-k left, renormalised"


@pytest.mark.parametrize("uniform", [0.0, 0.25, 0.5, 1 - 2**-53])
def test_a_token_without_a_chance_is_never_drawn(uniform: float) -> None:
    assert draw(torch.tensor([0.0, 0.5, 0.0, 0.5, 0.0]), uniform) == (1 if uniform < 0.5 else 3)


def test_seeds(checkpoint: Callable[..., Path]) -> None:
    target = load_target(str(checkpoint()), device="cpu", dtype="float64")
    how = {"temperature": 1.0, "max_tokens": 12, "ignore_eos": True}

    def tokens(engine_seed: int, name: str, seed: int | None) -> list[int]:
        engine = Engine(target, None, EngineOptions(seed=engine_seed))
        engine.add(Request(name, [1, 2, 3], SamplingParams(seed=seed, **how)))  # type: ignore[arg-type]
        return [token for _ in range(13) for emission in engine.step() for token in emission.token_ids]

    assert tokens(0, "a", 5) == tokens(1, "b", 5) != tokens(0, "a", 6)
    assert tokens(0, "a", None) == tokens(0, "a", None) != tokens(1, "a", None)
    assert tokens(0, "a", None) != tokens(0, "b", None)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1),
        ("temperature", float("nan")),
        ("top_k", -1),
        ("top_p", 0.0),
        ("top_p", 1.1),
        ("min_p", 2.0),
        ("max_tokens", 0),
        ("seed", 2**64),
        ("stop", ("",)),
    ],
)
def test_sampling_values_out_of_range_are_named(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=field):
        SamplingParams(**{field: value})  # type: ignore[arg-type]
