"""Coupled sampling: a seeded request has the same text with any draft, with none, and in any batch."""

from __future__ import annotations

from typing import Any

import pytest

from specctl.runtime import Engine, EngineOptions, Request, make_engine
from specctl.spec.config import Acceptance, SpecDecodeConfig
from specctl.spec.methods import METHODS, DraftModel
from tests.runtime.grid import AXES, PROMPTS, Bench, Forced
from tests.runtime.kit import ask, run
from tests.runtime.tree_kit import DEPTH, DYNAMIC, STATIC

COUPLED = Acceptance("coupled")
SAMPLING: dict[str, Any] = {"top_p": 0.95, "top_k": 40, "frequency_penalty": 0.2, "ignore_eos": True, "max_tokens": 16}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("coupled"))


@pytest.fixture(scope="module")
def requests() -> list[Request]:
    asked = [(name, prompt) for name, prompt in PROMPTS.items() if len(prompt) < 80]
    return [
        ask(name, prompt, seed=3 + i, temperature=0.7 + 0.1 * (i % 3), **SAMPLING)
        for i, (name, prompt) in enumerate(asked)
    ]


@pytest.fixture(scope="module")
def plain(bench: Bench, requests: list[Request]) -> dict[str, list[int]]:
    """What each request says alone and without a draft."""
    found = {}
    for request in requests:
        engine = Engine(bench.target("native"), None, EngineOptions(1, coupled=True))
        found[request.id] = run(engine, [request])[request.id]["tokens"]
    return found


@pytest.mark.parametrize("shape", [None, STATIC, DYNAMIC], ids=["chain", "static tree", "dynamic tree"])
@pytest.mark.parametrize("method", AXES["method"])
def test_every_draft_leaves_the_text_as_it_is(
    method: str, shape: Any, bench: Bench, requests: list[Request], plain: dict[str, list[int]]
) -> None:
    """Methods without trees of their own have a leaf put beside each of their tokens."""
    made, folder = bench.draft(method)
    own = METHODS[made.name].drafts_trees and method != "peagle"
    drawn = "greedy" if method in ("ngram", "suffix") else "probabilistic"
    spec = SpecDecodeConfig(
        made, DEPTH, folder and str(folder), draft_sample_method=drawn, tree=shape if own else None, acceptance=COUPLED
    )
    engine = make_engine(bench.target("native"), spec, EngineOptions(3, None, 11))
    if shape is not None and not own:
        engine._drafting.proposer = Forced(engine.proposer, {}, "own", bush=True)  # type: ignore[assignment]
    assert engine.lossless
    results = run(engine, requests)
    assert {name: result["tokens"] for name, result in results.items()} == plain
    assert engine.stats.num_drafts > 0


def test_the_same_noise_on_the_same_model_is_the_same_token(bench: Bench, requests: list[Request]) -> None:
    """The best that a draft can do; in a tree its first candidate is that token."""
    same = str(bench.target("native").folder)
    asked = [ask(r.id, r.prompt_token_ids, seed=5, temperature=1.0, max_tokens=16, ignore_eos=True) for r in requests]
    for tree in (None, STATIC):
        spec = SpecDecodeConfig(
            DraftModel(), DEPTH, same, draft_sample_method="probabilistic", tree=tree, acceptance=COUPLED
        )
        engine = make_engine(bench.target("native"), spec, EngineOptions(4))
        run(engine, asked)
        assert engine.stats.acceptance_length_histogram[:-1] == [0] * DEPTH
