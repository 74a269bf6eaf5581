"""Trees in the target: one forward scores every path as that path alone would be, and the cache keeps the one that
stands.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from specctl.runtime import Target
from specctl.runtime.acceptance import Relaxed
from specctl.runtime.batch import make_batch
from specctl.runtime.draft import ROOT, Draft, node_depths
from specctl.runtime.kv_cache import Span
from specctl.runtime.models.hf import load_adapted
from specctl.runtime.models.hidden import FINAL
from specctl.runtime.verify import Outcome
from specctl.runtime.verify_tree import relaxed_path, verify_thresholds, verify_tree_greedy, verify_tree_sampled
from tests.runtime.kit import FAMILIES
from tests.runtime.tree_kit import random_parents, standing

PROMPTS = [[random.Random(seed).randrange(256) for _ in range(size)] for seed, size in ((1, 23), (2, 3), (3, 14))]


def forward(model: Any, tokens: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits and states of every row, in one plain forward."""
    span = [Span(0, 0, len(tokens))]
    cache = model.make_cache(1, len(tokens))
    found: tuple[torch.Tensor, torch.Tensor] = model.forward_tapped(tokens, span, cache, range(len(tokens)), (1, FINAL))
    return found


@pytest.mark.parametrize("adapted", [False, True], ids=["native", "adapter"])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_node_is_scored_as_the_end_of_its_own_path(
    family: str, adapted: bool, checkpoint: Callable[..., Path], exact: Callable[..., Target]
) -> None:
    """A chain, two trees and a prefill chunk in one batch; then the paths that stand are decoded on."""
    cpu = torch.device("cpu")
    model: Any = load_adapted(checkpoint(family), torch.float64, cpu) if adapted else exact(family).model
    dice = random.Random(9)
    cache = model.make_cache(4, 96 + 40)
    sequences = [standing(slot, prompt) for slot, prompt in enumerate(PROMPTS)]
    for sequence in sequences:
        rows = range(sequence.num_computed)
        model.forward(sequence.tokens[:-1], [Span(sequence.slot, 0, len(rows))], cache, [0])
    shapes = [random_parents(dice, 9), None, random_parents(dice, 36)]
    drafts = [Draft([dice.randrange(256) for _ in parents or range(4)], parents=parents) for parents in shapes]
    batch = make_batch(sequences, drafts, [])
    batch.add(Span(3, 0, 5), [5, 4, 3, 2, 1], 1)
    logits, states = model.forward_tapped(batch.tokens, batch.spans, cache, batch.logit_rows, (1, FINAL))
    row = 0
    for sequence, draft in zip(sequences, drafts, strict=True):
        paths = draft.paths()
        for node in range(len(paths)):
            whole = forward(model, sequence.tokens + paths[node])
            torch.testing.assert_close(logits[row], whole[0][-1], rtol=1e-6, atol=1e-6)
            torch.testing.assert_close(states[row], whole[1][-1], rtol=1e-6, atol=1e-6)
            row += 1
    for sequence, draft in zip(sequences, drafts, strict=True):
        leaf = dice.choice([i for i in range(len(draft.tokens)) if i not in (draft.parents or range(ROOT, 3))])
        path = [ROOT, *_path(draft, leaf)]
        cache.move(sequence.slot, sequence.num_computed, [node + 1 for node in path])
        tokens = sequence.tokens + draft.paths()[leaf + 1]
        out = model.forward([7], [Span(sequence.slot, len(tokens), 1)], cache, [0])
        torch.testing.assert_close(out[0], forward(model, [*tokens, 7])[0][-1], rtol=1e-6, atol=1e-6)


def _path(draft: Draft, leaf: int) -> list[int]:
    if draft.parents is None:
        return list(range(leaf + 1))
    path = []
    while leaf != ROOT:
        path.append(leaf)
        leaf = draft.parents[leaf]
    return path[::-1]


def test_depths_and_paths() -> None:
    draft = Draft([10, 11, 12, 13, 14], parents=(ROOT, ROOT, 0, 2, 1))
    assert node_depths(draft.parents or ()) == [1, 1, 2, 3, 2]
    assert draft.depth == 3
    assert draft.paths() == [[], [10], [11], [10, 12], [10, 12, 13], [11, 14]]
    assert Draft([1, 2]).paths() == [[], [1], [1, 2]]
    assert Draft([1, 2]).depth == 2
    assert Draft([], parents=()).depth == 0


# Two branches behind the newest token: 5 then 7, and 6; what the target says in each row over eight tokens.
TOKENS, PARENTS = [5, 6, 7], [ROOT, ROOT, 0]


def rows(*weights: dict[int, float]) -> torch.Tensor:
    found = torch.zeros(len(weights), 8, dtype=torch.float64)
    for row, weight in enumerate(weights):
        for token, share in weight.items():
            found[row, token] = share
    return found


def test_greedy_trees_by_hand() -> None:
    assert verify_tree_greedy(TOKENS, PARENTS, [5, 7, 0, 4]) == Outcome(2, 4, (0, 2))
    assert verify_tree_greedy(TOKENS, PARENTS, [6, 0, 3, 0]) == Outcome(1, 3, (1,))
    assert verify_tree_greedy(TOKENS, PARENTS, [1, 0, 0, 0]) == Outcome(0, 1, ())


def test_rejection_over_a_tree_by_hand() -> None:
    target = rows({5: 0.5, 6: 0.3, 1: 0.2}, {7: 0.4, 2: 0.6}, {3: 1.0}, {4: 1.0})
    # Picked: 5 stands below 0.5; then 6 below 0.3 / 0.5; then 1 is all that is left.
    assert verify_tree_sampled(TOKENS, PARENTS, target, None, [0.49, 0.0, 0.39, 0.0]) == Outcome(2, 4, (0, 2))
    assert verify_tree_sampled(TOKENS, PARENTS, target, None, [0.49, 0.0, 0.41, 0.0]) == Outcome(1, 2, (0,))
    assert verify_tree_sampled(TOKENS, PARENTS, target, None, [0.51, 0.59, 0.0, 0.0]) == Outcome(1, 3, (1,))
    assert verify_tree_sampled(TOKENS, PARENTS, target, None, [0.51, 0.61, 0.0, 0.0]) == Outcome(0, 1, ())
    # Drawn from 5: 0.8, 6: 0.2: 5 stands below 0.5 / 0.8; what is left of the target is 6: 0.1, 1: 0.2, and of the
    # draft 6 alone, which stands below 1 / 3.
    drawn = rows({5: 0.8, 6: 0.2}, {5: 0.8, 6: 0.2}, {7: 1.0})
    assert verify_tree_sampled(TOKENS, PARENTS, target, drawn, [0.62, 0.0, 0.41, 0.5]) == Outcome(1, 2, (0,))
    assert verify_tree_sampled(TOKENS, PARENTS, target, drawn, [0.63, 0.33, 0.0, 0.5]) == Outcome(1, 3, (1,))
    assert verify_tree_sampled(TOKENS, PARENTS, target, drawn, [0.63, 0.34, 0.0, 0.5]) == Outcome(0, 1, ())


def test_thresholds_over_a_tree_by_hand() -> None:
    """One number a place: below 0.5 the first sibling stands, below 0.5 + 0.3 the second; 0.9 divides both."""
    target = rows({5: 0.5, 6: 0.3, 1: 0.2}, {7: 0.4, 2: 0.6}, {3: 1.0}, {4: 1.0})
    exact, loose = (1.0, 1.0), (1.0, 0.9)
    assert verify_thresholds(TOKENS, PARENTS, target, *exact, [0.49, 0.41, 0.0, 0.0]) == Outcome(1, 2, (0,))
    assert verify_thresholds(TOKENS, PARENTS, target, *exact, [0.55, 0.0, 0.0, 0.0]) == Outcome(1, 3, (1,))
    assert verify_thresholds(TOKENS, PARENTS, target, *exact, [0.81, 0.0, 0.0, 0.0]) == Outcome(0, 1, ())
    assert verify_thresholds(TOKENS, PARENTS, target, *loose, [0.55, 0.41, 0.0, 0.0]) == Outcome(2, 4, (0, 2))
    assert verify_thresholds(TOKENS, PARENTS, target, 0.3, 1.0, [0.99, 0.99, 0.0, 0.0]) == Outcome(2, 4, (0, 2))


def test_the_longest_relaxed_path_by_hand() -> None:
    scores = rows({5: 0.5, 6: 0.3, 1: 0.2}, {7: 0.1, 2: 0.9}, {3: 1.0}, {4: 1.0}).clamp_min(1e-9).log()
    assert relaxed_path(TOKENS, PARENTS, scores, 1, 9.0) == (0,)
    assert relaxed_path(TOKENS, PARENTS, scores, 2, 9.0) == (0, 2)
    assert relaxed_path(TOKENS, PARENTS, scores, 2, 1.0) == (0,), "0.1 lies log 9 below 0.9"
    assert relaxed_path([6, 5], [ROOT, ROOT], scores[:3], 2, 9.0) == (1,), "of equals the likelier"


def test_relaxed_acceptance_ends_with_the_thinking(exact: Callable[..., Target]) -> None:
    """Of a draft that is the second-best token everywhere all is accepted while the model thinks, and nothing after."""
    verifier = Relaxed(2, 99.0, (250, 251))
    logits = rows({1: 2.0, 5: 1.0}, {1: 2.0}, {1: 2.0})
    for tokens, accepted in (([250, 9], 1), ([250, 9, 251, 9], 0), ([9], 0)):
        outcome = verifier.judge(standing(0, tokens), Draft([5], parents=(ROOT,)), logits[:2], [1, 1])
        assert (outcome.accepted, outcome.next_token) == (accepted, 1)
