"""Every way of verifying that is said to be lossless samples from the target: chains and trees, drafts that were drawn
and drafts that were picked, with filters and with penalties; and what is said to be lossy does not.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from specctl.runtime import Engine, Target, make_engine
from specctl.runtime.draft import Draft
from specctl.spec.config import Acceptance, SpecDecodeConfig, Tree
from specctl.spec.methods import DraftModel
from tests.runtime.eagle_heads import eagle3
from tests.runtime.law import (
    ALARM,
    MODES,
    OPTIONS,
    STATIC,
    WAYS_TO_SAMPLE,
    N,
    check,
    laws,
    load,
    logits_before,
    make_pair,
    sampled,
    setting,
    smallest_p,
)

ALL_WAYS = list(WAYS_TO_SAMPLE)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Target, Target]:
    """Target and draft."""
    target, draft = make_pair(tmp_path_factory.mktemp("pair"))
    return load(target), load(draft)


@pytest.mark.parametrize("mode", MODES)
def test_the_engine_samples_from_the_target(mode: str, pair: tuple[Target, Target]) -> None:
    assert N >= 20_000
    check(pair, mode, ALL_WAYS)


def likelihood_of(engine: Engine, pair: tuple[Target, Target]) -> float:
    answers = sampled(engine, ["T = 1"])
    law = laws(logits_before(pair[0], answers), answers, ["T = 1"])
    return smallest_p(answers, law, logits_before(pair[1], answers))


def test_a_head_with_a_smaller_vocabulary_samples_from_the_target(pair: tuple[Target, Target], tmp_path: Path) -> None:
    torch.manual_seed(5)
    made = eagle3(pair[0], tmp_path / "head", speculators=True, taps=(0, 1), draft_vocab=6)
    spec = SpecDecodeConfig(made.method, 3, str(made.folder), draft_sample_method="probabilistic", tree=STATIC)
    engine = make_engine(pair[0], spec, OPTIONS)
    assert likelihood_of(engine, pair) >= ALARM
    assert 0.02 < (engine.stats.acceptance_rate or 0) < 0.98


@pytest.mark.parametrize("lie", ["other probabilities", "siblings in another order"])
def test_a_draft_that_lies_about_how_it_was_drawn_would_be_caught(lie: str, pair: tuple[Target, Target]) -> None:
    """The test above can fail: so much of what a proposer reports is needed."""
    mode = "standard, drawn" if lie == "other probabilities" else "static tree, drawn"
    engine = make_engine(pair[0], setting(pair[1], mode), OPTIONS)
    honest = engine.proposer.propose  # type: ignore[union-attr]

    def lying(sequences: list[object], limits: list[int]) -> list[Draft]:
        drafts = honest(sequences, limits)  # type: ignore[arg-type]
        if lie == "other probabilities":
            return [Draft(d.tokens, None if d.probs is None else torch.full_like(d.probs, 1 / 8)) for d in drafts]
        return [_reordered(draft) for draft in drafts]

    engine.proposer.propose = lying  # type: ignore[union-attr,method-assign,assignment]
    assert likelihood_of(engine, pair) < ALARM


def _reordered(draft: Draft) -> Draft:
    """Leaves of the root in order of their probability, as if they had been drawn so."""
    assert draft.parents is not None
    roots = [node for node, parent in enumerate(draft.parents) if parent == -1]
    if draft.probs is None or len(roots) < 2:
        return draft
    row = draft.probs[0]
    ordered = sorted(roots, key=lambda node: float(row[draft.tokens[node]]))
    tokens = [draft.tokens[node] for node in ordered]
    return Draft(tokens, draft.probs[roots], tuple([-1] * len(tokens)))


@pytest.mark.parametrize(
    ("acceptance", "tree"),
    [
        (Acceptance("typical", posterior_threshold=0.02), STATIC),
        (Acceptance("relaxed", relaxed_topk=3, relaxed_delta=2.0), None),
        (Acceptance(threshold_single=0.2, threshold_acc=0.5), STATIC),
        (Acceptance("synthetic", synthetic_length=3.0), None),
    ],
    ids=["typical", "relaxed", "thresholds", "synthetic"],
)
def test_what_is_said_to_be_lossy_is(acceptance: Acceptance, tree: Tree | None, pair: tuple[Target, Target]) -> None:
    spec = SpecDecodeConfig(DraftModel(), 3, str(pair[1].folder), acceptance=acceptance, tree=tree)
    engine = make_engine(pair[0], spec, OPTIONS)
    assert not engine.lossless
    assert likelihood_of(engine, pair) < ALARM
