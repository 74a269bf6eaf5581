"""Verification is exact: the outcome's distribution is the target's, and a bias of two percent would be noticed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from scipy.stats import chisquare
from transformers import LlamaConfig, LlamaForCausalLM

from specctl.runtime import Engine, EngineOptions, Request, SamplingParams, Target, load_target, make_engine
from specctl.runtime.draft import Draft
from specctl.runtime.kv_cache import Span
from specctl.runtime.sampling import Randomness, draw, probabilities
from specctl.runtime.verify import Outcome, verify_greedy, verify_sampled
from specctl.spec.config import Acceptance, SpecDecodeConfig
from specctl.spec.methods import DraftModel
from tests.runtime.eagle_heads import eagle3
from tests.runtime.kit import SIZES, save

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


VOCAB = 8


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A target and an unrelated draft over eight tokens, without a tokenizer of their own kind."""
    folders = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        sizes = SIZES | {"vocab_size": VOCAB, "eos_token_id": None, "num_hidden_layers": 1, "initializer_range": 0.1}
        folders.append(save(LlamaForCausalLM(LlamaConfig(**sizes)), tmp_path_factory.mktemp(f"tiny-{seed}")))
    return folders[0], folders[1]


def setting(draft: str, way: str, target: Target, tiny: tuple[Path, Path], folder: Path) -> SpecDecodeConfig:
    """``draft``: greedy or probabilistic drafts of the unrelated model, or probabilistic ones of a head that knows six
    of the eight tokens.
    """
    how = {"draft_sample_method": "greedy" if draft == "greedy" else "probabilistic", "acceptance": Acceptance(way)}
    if draft == "head":
        made = eagle3(target, folder / "head", speculators=True, taps=(0, 1), draft_vocab=6)
        return SpecDecodeConfig(made.method, 2, model=str(made.folder), **how)  # type: ignore[arg-type]
    return SpecDecodeConfig(DraftModel(), 2, model=str(tiny[1]), **how)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("how", "way"),
    [
        ("greedy", "standard"),
        ("probabilistic", "standard"),
        ("head", "standard"),
        ("greedy", "block"),
        ("probabilistic", "block"),
        ("greedy", "coupled"),
        ("probabilistic", "coupled"),
    ],
)
@pytest.mark.parametrize(
    "filters", [{}, {"temperature": 0.7, "top_k": 6, "top_p": 0.9, "min_p": 0.03}], ids=["plain", "filtered"]
)
def test_the_engine_samples_from_the_target(
    how: str, way: str, filters: dict[str, float], tiny: tuple[Path, Path], tmp_path: Path
) -> None:
    """The law of the third token given the two before it, over many requests: all of them through the whole engine."""
    target = load_target(str(tiny[0]), device="cpu", dtype="float64")
    target.__dict__["decode"] = lambda *_, **__: ""
    spec = setting(how, way, target, tiny, tmp_path)
    engine = make_engine(target, spec, EngineOptions(max_num_seqs=500, max_model_len=8, max_num_batched_tokens=4000))
    sampling = {"temperature": 1.0, "max_tokens": 3, **filters}
    counts: dict[tuple[int, ...], Counter[int]] = {}
    outputs: dict[str, list[int]] = {}
    for i in range(N):
        engine.add(Request(str(i), [1, 2], SamplingParams(seed=i, **sampling)))
    while engine.has_work():
        for emission in engine.step():
            outputs.setdefault(emission.request_id, []).extend(emission.token_ids)
    for tokens in outputs.values():
        for place in range(3):
            counts.setdefault(tuple(tokens[:place]), Counter())[tokens[place]] += 1
    stats = engine.stats
    assert 0.02 < (stats.acceptance_rate or 0) < 0.98, "both accepting and rejecting must have happened"
    tested = 0
    for prefix, seen in counts.items():
        cache = target.model.make_cache(1, 8)
        tokens = [1, 2, *prefix]
        logits = target.model.forward(tokens, [Span(0, 0, len(tokens))], cache, [len(tokens) - 1])[0]
        law = probabilities(logits, SamplingParams(**{k: v for k, v in sampling.items() if k != "max_tokens"}))
        if sum(seen.values()) * float(law[law > 0].min()) >= 5:
            tested += 1
            assert p_value(seen, law) >= ALARM / 50, prefix
    assert tested >= 5
    assert p_value(counts[()], _biased(target, sampling)) < ALARM, "a bias of two percent must be noticed"


def _biased(target: object, sampling: dict[str, float]) -> torch.Tensor:
    model = target.model  # type: ignore[attr-defined]
    logits = model.forward([1, 2], [Span(0, 0, 2)], model.make_cache(1, 8), [1])[0]
    law = probabilities(logits, SamplingParams(**{k: v for k, v in sampling.items() if k != "max_tokens"}))
    order = law.argsort(descending=True)
    law[order[0]] += 0.02
    law[order[1]] -= 0.02
    return law


def test_a_draft_that_lies_about_its_probabilities_would_be_caught(tiny: tuple[Path, Path]) -> None:
    """The test above can fail: a proposer that reports another distribution than it drew from biases the output."""
    target = load_target(str(tiny[0]), device="cpu", dtype="float64")
    target.__dict__["decode"] = lambda *_, **__: ""
    spec = SpecDecodeConfig(DraftModel(), 1, model=str(tiny[1]), draft_sample_method="probabilistic")
    engine = make_engine(target, spec, EngineOptions(max_num_seqs=500, max_model_len=8, max_num_batched_tokens=4000))
    honest = engine._drafting.proposer.propose  # type: ignore[union-attr]

    def lying(sequences: list[object], limits: list[int]) -> list[Draft]:
        drafts = honest(sequences, limits)  # type: ignore[arg-type]
        return [Draft(d.tokens, None if d.probs is None else torch.full_like(d.probs, 1 / VOCAB)) for d in drafts]

    engine._drafting.proposer.propose = lying  # type: ignore[union-attr,method-assign,assignment]
    second: dict[int, Counter[int]] = {}
    outputs: dict[str, list[int]] = {}
    for i in range(N):
        engine.add(Request(str(i), [1, 2], SamplingParams(seed=i, temperature=1.0, max_tokens=2)))
    while engine.has_work():
        for emission in engine.step():
            outputs.setdefault(emission.request_id, []).extend(emission.token_ids)
    for first, token in outputs.values():
        second.setdefault(first, Counter())[token] += 1
    worst = 1.0
    for first, seen in second.items():
        logits = target.model.forward([1, 2, first], [Span(0, 0, 3)], target.model.make_cache(1, 8), [2])[0]
        worst = min(worst, p_value(seen, probabilities(logits, SamplingParams(temperature=1.0))))
    assert worst < ALARM / 50


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
