"""The other ways of judging a draft: block verification and coupled sampling are exact, typical and synthetic are not
and say so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from specctl.errors import SpecctlError
from specctl.runtime import Engine, EngineOptions, Target, make_engine
from specctl.runtime.sampling import CoupledRandomness, Randomness, draw
from specctl.runtime.verify import Outcome, rates_of_length, verify_block, verify_sampled, verify_synthetic
from specctl.runtime.verify_tree import verify_typical
from specctl.spec.config import Acceptance, SpecDecodeConfig
from specctl.spec.methods import DraftModel, Ngram
from tests.runtime.kit import ask, run
from tests.runtime.test_verify import ALARM, N, p_value

PROMPTS = {"one": [97], "repeats": list(b"abcabcabcabc"), "text": list("naïve café".encode()), "long": [7, 5, 3] * 15}


def test_block_verification_by_hand() -> None:
    target = torch.tensor([[0.5, 0.5], [0.2, 0.8], [1.0, 0.0]], dtype=torch.float64)
    proposal = torch.tensor([[0.8, 0.2], [0.1, 0.9]], dtype=torch.float64)
    # Draft [0, 1]: P1 = 0.625; S1 = max(0.125 - 0.1, 0) + max(0.5 - 0.9, 0) = 0.025, h1 = 0.025 / 0.4 = 0.0625;
    # P2 = 0.625 * 8 / 9 = 0.5556 = h2.
    assert verify_block([0, 1], target, proposal, [0.99, 0.55, 0.3]) == Outcome(2, 0), "the last that passes wins"
    assert verify_block([0, 1], target, proposal, [0.06, 0.56, 0.3]) == Outcome(1, 0), "only token 0 is left over"
    assert verify_block([0, 1], target, proposal, [0.07, 0.56, 0.3]) == Outcome(0, 1)
    # One-hot: P1 = 0.5, S1 = 0.5 * 0.2, h1 = 0.1 / 0.6; P2 = 0.4.
    assert verify_block([0, 1], target, None, [0.9, 0.39, 0.3]) == Outcome(2, 0)
    assert verify_block([0, 1], target, None, [0.16, 0.41, 0.3]) == Outcome(1, 0)
    assert verify_block([0, 1], target, None, [0.17, 0.41, 0.3]) == Outcome(0, 1)
    assert verify_block([], target[2:], None, [0.5]) == Outcome(0, 0)


@pytest.mark.parametrize("one_hot", [True, False])
def test_block_verification_follows_the_target_and_accepts_more(one_hot: bool) -> None:
    """The joint law of three tokens; what a block leaves open is drawn from the target, as later steps would."""
    generator = torch.Generator().manual_seed(5)
    target = (2 * torch.rand(4, 3, generator=generator, dtype=torch.float64)).softmax(-1)
    proposal = (3 * torch.rand(3, 3, generator=generator, dtype=torch.float64)).softmax(-1)
    dice = Randomness(17)
    joint: Counter[int] = Counter()
    accepted = {"block": 0, "standard": 0}
    for _ in range(2 * N):
        drafted = [draw(proposal[i], dice.uniforms(1)[0]) for i in range(3)]
        offered = None if one_hot else proposal
        accepted["standard"] += verify_sampled(drafted, target, offered, dice.uniforms(4)).accepted
        outcome = verify_block(drafted, target, offered, dice.uniforms(4))
        accepted["block"] += outcome.accepted
        tokens = [*drafted[: outcome.accepted], outcome.next_token][:3]
        tokens += [draw(target[i], dice.uniforms(1)[0]) for i in range(len(tokens), 3)]
        joint[tokens[0] * 9 + tokens[1] * 3 + tokens[2]] += 1
    law = torch.einsum("a,b,c->abc", *target[:3]).flatten()
    assert p_value(joint, law) >= ALARM
    biased = law.clone()
    biased[0] += 0.02
    biased[1] -= 0.02
    assert p_value(joint, biased) < ALARM, "a bias of two percent must be noticed"
    if one_hot:  # nothing can be gained where the draft left nothing to chance
        assert accepted["block"] == pytest.approx(accepted["standard"], rel=0.02)
    else:
        assert accepted["block"] > 1.01 * accepted["standard"]


def test_coupled_noise_is_a_draw_from_the_distribution() -> None:
    probs = torch.tensor([0.05, 0.0, 0.35, 0.2, 0.4])
    counts = Counter(CoupledRandomness(seed).pick(probs, place) for seed in range(N // 20) for place in range(20))
    assert p_value(counts, probs) >= ALARM
    assert p_value(counts, torch.tensor([0.05, 0.0, 0.35, 0.22, 0.38])) < ALARM


def test_what_coupling_costs_in_acceptance() -> None:
    """Between (1 - d) / (1 + d) and the 1 - d of rejection sampling, d the total variation."""
    generator = torch.Generator().manual_seed(3)
    for spread in (0.5, 2.0, 5.0):
        target, draft = (spread * torch.randn(2, 12, generator=generator, dtype=torch.float64)).softmax(-1)
        distance = float((target - draft).clamp_min(0).sum())
        pairs = [
            (CoupledRandomness(seed).pick(target, 0), CoupledRandomness(seed).pick(draft, 0)) for seed in range(6000)
        ]
        agreed = sum(a == b for a, b in pairs) / len(pairs)
        assert (1 - distance) / (1 + distance) - 0.02 <= agreed <= 1 - distance + 0.02


def test_typical_acceptance_by_hand() -> None:
    """Medusa's rule: p > min(0.09, 0.3 exp(-H)); the rows' entropies are 0.802, 1.386 (uniform) and 0."""
    target = torch.tensor([[0.7, 0.2, 0.1, 0.0], [0.25] * 4, [0.0, 0.0, 1.0, 0.0]])
    assert verify_typical([1, 3], [-1, 0], target, 0.09, 0.3, [0.0]) == Outcome(2, 2, (0, 1))
    assert verify_typical([3, 3], [-1, 0], target, 0.09, 0.3, [0.95]) == Outcome(0, 2, ())
    # 0.3 exp(-1.386) = 0.075 lies below a threshold of 0.5, and 0.25 above it.
    assert verify_typical([0, 1], [-1, 0], target, 0.5, 0.3, [0.0]) == Outcome(2, 2, (0, 1))
    assert verify_typical([2], [-1], target[:2], 0.5, 0.3, [0.0]) == Outcome(0, 0, ()), "0.1 < 0.3 exp(-0.802) = 0.135"


def test_synthetic_rates_by_hand() -> None:
    assert rates_of_length(2.4, 4) == pytest.approx((1, 0.4, 0, 0))
    assert rates_of_length(1, 2) == (0, 0)
    assert rates_of_length(4, 3) == (1, 1, 1)
    assert [verify_synthetic((0.8, 0.4), 3, [u, v, 0.0]) for u, v in ((0.81, 0), (0.79, 0.51), (0.79, 0.49))] == [
        0,
        1,
        2,
    ]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize(
    "acceptance", [Acceptance("synthetic", synthetic_length=2.5), Acceptance("synthetic", (0.9, 0.6))]
)
def test_synthetic_acceptance_has_the_length_that_was_asked_for(
    acceptance: Acceptance, temperature: float, exact: Callable[..., Target], checkpoint: Callable[..., Path]
) -> None:
    spec = SpecDecodeConfig(DraftModel(), 3, str(checkpoint("llama", 1)), acceptance=acceptance)
    engine = make_engine(exact(), spec, EngineOptions(8))
    assert not engine.lossless
    run(engine, [ask(str(i), [i], max_tokens=60, temperature=temperature, ignore_eos=True) for i in range(24)])
    assert engine.stats.mean_acceptance_length == pytest.approx(2.5, abs=0.15)


def test_typical_acceptance_runs_and_is_exact_for_greedy_requests(
    exact: Callable[..., Target], checkpoint: Callable[..., Path]
) -> None:
    spec = SpecDecodeConfig(DraftModel(), 3, str(checkpoint("llama", 1)), acceptance=Acceptance("typical"))
    engine = make_engine(exact(), spec, EngineOptions(2))
    assert not engine.lossless
    greedy = ask("greedy", [1, 2, 3], ignore_eos=True)
    results = run(engine, [greedy, ask("sampled", [1, 2, 3], temperature=1.0, seed=1, ignore_eos=True)])
    assert len(results["sampled"]["tokens"]) == 24
    assert results["greedy"]["tokens"] == run(Engine(exact(), None, EngineOptions()), [greedy])["greedy"]["tokens"]


@pytest.mark.parametrize(
    ("acceptance", "says"),
    [
        (Acceptance("relaxed", relaxed_topk=0), "relaxed_topk is 0"),
        (Acceptance("block", threshold_single=0.5), "do not go with block acceptance"),
        (Acceptance("synthetic"), "no rates"),
        (Acceptance("synthetic", synthetic_length=5.5), "1 to 4"),
    ],
)
def test_ways_that_do_not_run_here_are_refused(acceptance: Acceptance, says: str, exact: Callable[..., Target]) -> None:
    with pytest.raises(SpecctlError, match=says):
        make_engine(exact(), SpecDecodeConfig(Ngram(), 3, acceptance=acceptance), EngineOptions())


def test_plain_decoding_is_lossless(exact: Callable[..., Target]) -> None:
    assert Engine(exact(), None, EngineOptions()).lossless
