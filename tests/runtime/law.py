"""Sampling from the target, tested through the whole engine: what was emitted against the laws it had to follow.

Each emitted token has a law of its own, which hangs on the text before it. Over many of them the tokens of a *cell* are
counted, and what the laws make one expect of it: by token and the one before, and by the draft's ranking, where a
wrong acceptance or residual shows first. The ordinary tests mix the ways of sampling; each by itself:

    python -m tests.runtime.law
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence as Many
from pathlib import Path
from typing import Any

import torch
from scipy.stats import chi2
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from specctl.runtime import Engine, EngineOptions, Request, SamplingParams, Target, load_target, make_engine
from specctl.runtime.kv_cache import Span
from specctl.runtime.sampling import probabilities
from specctl.spec.config import Acceptance, SpecDecodeConfig, Tree
from specctl.spec.methods import DraftModel
from tests.runtime.kit import SIZES, save

ALARM = 1e-4
VOCAB = 8
PROMPT = [1, 2]
REQUESTS, LENGTH = 700, 30
N = REQUESTS * (LENGTH - 1)  # the first token of each comes from the prefill step

WAYS_TO_SAMPLE: dict[str, dict[str, float]] = {
    "T = 1": {"temperature": 1.0},
    "filters": {"temperature": 0.8, "top_k": 6, "top_p": 0.9, "min_p": 0.03},
    "penalties": {
        "temperature": 1.0,
        "repetition_penalty": 1.3,
        "frequency_penalty": 0.05,
        "presence_penalty": 0.3,
        "top_p": 0.95,
    },
}
STATIC = Tree(choices=((0,), (1,), (2,), (0, 0), (0, 1), (1, 0), (0, 0, 0), (0, 0, 1)))
DYNAMIC = Tree(topk=2, num_nodes=6)
# How the draft picks its tokens, the tree, the acceptance.
MODES: dict[str, tuple[str, Tree | None, str]] = {
    "standard, picked": ("greedy", None, "standard"),
    "standard, drawn": ("probabilistic", None, "standard"),
    "block, picked": ("greedy", None, "block"),
    "block, drawn": ("probabilistic", None, "block"),
    "coupled, picked": ("greedy", None, "coupled"),
    "coupled, drawn": ("probabilistic", None, "coupled"),
    "static tree, picked": ("greedy", STATIC, "standard"),
    "static tree, drawn": ("probabilistic", STATIC, "standard"),
    "dynamic tree, picked": ("greedy", DYNAMIC, "standard"),
    "dynamic tree, drawn": ("probabilistic", DYNAMIC, "standard"),
    "coupled tree, drawn": ("probabilistic", STATIC, "coupled"),
}
OPTIONS = EngineOptions(REQUESTS, 64, 8 * REQUESTS)


def make_pair(folder: Path) -> tuple[Path, Path]:
    """A target over eight tokens and a draft that has some of its opinions."""
    torch.manual_seed(0)
    sizes = SIZES | {"vocab_size": VOCAB, "eos_token_id": None, "num_hidden_layers": 1, "initializer_range": 0.25}
    model = LlamaForCausalLM(LlamaConfig(**sizes))
    target = save(model, folder / "target")
    with torch.no_grad():
        for value in model.parameters():
            value.add_(torch.randn_like(value) * 0.35 * value.std())
    return target, save(model, folder / "draft")


def load(folder: Path) -> Target:
    """A target whose tokens have no text: there is nothing to decode here."""
    target = load_target(str(folder), device="cpu", dtype="float64")
    target.__dict__["decode"] = lambda *_, **__: ""
    return target


def setting(draft: Target, mode: str) -> SpecDecodeConfig:
    """The setting of a mode."""
    how, tree, way = MODES[mode]
    model, acceptance = str(draft.folder), Acceptance(way)
    return SpecDecodeConfig(DraftModel(), 3, model, draft_sample_method=how, tree=tree, acceptance=acceptance)


def sampled(engine: Engine, ways: Many[str]) -> Tensor:
    """The answers [requests, length] to one prompt under different seeds, sampled in ``ways`` by turns."""
    answers: list[list[int]] = [[] for _ in range(REQUESTS)]
    for i in range(REQUESTS):
        how: dict[str, Any] = {"max_tokens": LENGTH, "ignore_eos": True, **WAYS_TO_SAMPLE[ways[i % len(ways)]]}
        engine.add(Request(str(i), PROMPT, SamplingParams(seed=i, **how)))
    while engine.has_work():
        for emission in engine.step():
            answers[int(emission.request_id)] += emission.token_ids
    assert engine.counters.proposer_failures == 0
    return torch.tensor(answers)


def logits_before(target: Target, answers: Tensor) -> Tensor:
    """What the model says before each token [requests, length, vocab], from plain forwards of the whole texts."""
    size = len(PROMPT) + LENGTH - 1
    found = []
    for part in answers.split(100):
        tokens = [token for answer in part.tolist() for token in (*PROMPT, *answer[:-1])]
        spans = [Span(slot, 0, size) for slot in range(len(part))]
        cache = target.model.make_cache(len(part), size)
        logits = target.model.forward(tokens, spans, cache, range(len(tokens)))
        found.append(logits.view(len(part), size, -1)[:, len(PROMPT) - 1 :])
    return torch.cat(found)


def laws(logits: Tensor, answers: Tensor, ways: Many[str]) -> Tensor:
    """The law of each token [requests, length, vocab]."""
    found = torch.empty_like(logits)
    for i, way in enumerate(ways):
        turn = slice(i, None, len(ways))
        found[turn] = _law(logits[turn], answers[turn], WAYS_TO_SAMPLE[way])
    return found


def _law(logits: Tensor, answers: Tensor, how: dict[str, float]) -> Tensor:
    """Penalties written straight from their definition."""
    once = torch.nn.functional.one_hot(answers, VOCAB)
    counts = once.cumsum(1) - once
    prompted = torch.zeros(VOCAB, dtype=torch.bool)
    prompted[PROMPT] = True
    factor = how.get("repetition_penalty", 1.0)
    repeated = torch.where(logits > 0, logits / factor, logits * factor)
    penalised = torch.where(prompted | (counts > 0), repeated, logits)
    penalised = penalised - how.get("frequency_penalty", 0.0) * counts
    penalised = penalised - how.get("presence_penalty", 0.0) * (counts > 0)
    return probabilities(penalised, SamplingParams(**how))  # type: ignore[arg-type]


def biased(law: Tensor) -> Tensor:
    """The laws with two percent moved from the likeliest token to the fourth."""
    order = law.argsort(-1, descending=True)
    share = law.gather(-1, order[..., :1]).clamp_max(0.02)
    return law.scatter_add(-1, order[..., 3:4], share).scatter_add(-1, order[..., :1], -share)


def p_value(answers: Tensor, law: Tensor, cells: Tensor, count: int) -> float:
    """Chi-square over cells; ``cells`` [requests, length, vocab] says in which of ``count`` each token would fall.

    The first tokens of the answers are left out: no draft had a part in them.
    """
    law, cells, taken = law[:, 1:], cells[:, 1:], answers[:, 1:, None]
    assert bool((law.gather(-1, taken) > 0).all()), "a token without a chance came out"
    expected = torch.zeros(count, dtype=torch.float64).index_add_(0, cells.flatten(), law.flatten().double())
    observed = torch.bincount(cells.gather(-1, taken).flatten(), minlength=count)
    kept = expected >= 5
    statistic = float(((observed - expected)[kept] ** 2 / expected[kept]).sum())
    return float(chi2.sf(statistic, int(kept.sum()) - 1))


def by_pair(answers: Tensor) -> tuple[Tensor, int]:
    """Cells of a token and the one before it."""
    before = torch.cat([torch.full_like(answers[:, :1], PROMPT[-1]), answers[:, :-1]], dim=1)
    return before[..., None] * VOCAB + torch.arange(VOCAB), VOCAB * VOCAB


def by_rank(logits: Tensor) -> tuple[Tensor, int]:
    """Cells of a token's rank in ``logits``."""
    ranks = logits.argsort(-1, descending=True).argsort(-1)
    return ranks, VOCAB


def smallest_p(answers: Tensor, law: Tensor, draft_logits: Tensor) -> float:
    """The least likely of the tests."""
    return min(p_value(answers, law, *cells) for cells in (by_pair(answers), by_rank(law), by_rank(draft_logits)))


def check(pair: tuple[Target, Target], mode: str, ways: Many[str]) -> None:
    """Raises AssertionError where the answers, or those of one way of sampling, do not follow their laws, or where a
    bias of two percent in all of them would not be noticed.
    """
    engine = make_engine(pair[0], setting(pair[1], mode), OPTIONS)
    assert engine.lossless
    answers = sampled(engine, ways)
    law = laws(logits_before(pair[0], answers), answers, ways)
    opinions = logits_before(pair[1], answers)
    assert all(engine.stats.acceptance_length_histogram), "every number of accepted tokens must have happened"
    assert smallest_p(answers, law, opinions) >= ALARM
    for i in range(len(ways)):
        turn = slice(i, None, len(ways))
        assert smallest_p(answers[turn], law[turn], opinions[turn]) >= ALARM, ways[i]
    assert smallest_p(answers, biased(law), opinions) < ALARM, "a bias of two percent must be noticed"


def main() -> int:
    """Every mode with every way of sampling by itself."""
    with tempfile.TemporaryDirectory() as folder:
        target, draft = make_pair(Path(folder))
        pair = load(target), load(draft)
        for mode in MODES:
            for way in WAYS_TO_SAMPLE:
                check(pair, mode, [way])
                print(f"{mode}, {way}: {N} tokens follow the target's distribution")
    return 0


if __name__ == "__main__":
    sys.exit(main())
