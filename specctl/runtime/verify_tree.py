"""Verification of a drafted tree: which of its paths stands, and which token follows it. Pure functions.

A tree is ``tokens`` and ``parents`` as in `Draft`; rows of ``target`` and ``best`` are those of a verify step: row 0
scores what follows the newest token, row i + 1 what follows node i.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from torch import Tensor

from specctl.runtime.draft import ROOT
from specctl.runtime.sampling import draw
from specctl.runtime.verify import Outcome


def children_of(parents: Sequence[int]) -> dict[int, list[int]]:
    """The nodes that follow each node, in their order; the first nodes under `ROOT`."""
    found: dict[int, list[int]] = {}
    for node, parent in enumerate(parents):
        found.setdefault(parent, []).append(node)
    return found


def verify_tree_drawn(tokens: Sequence[int], parents: Sequence[int], drawn: Callable[[int, int], int]) -> Outcome:
    """Go along the path that the target draws by itself. ``drawn(row, place)``: its token from a row of the step, which
    scores place ``place`` behind the newest token.
    """
    path: list[int] = []
    children, node = children_of(parents), ROOT
    while True:
        own = drawn(node + 1, len(path))
        following = next((child for child in children.get(node, ()) if tokens[child] == own), None)
        if following is None:
            return Outcome(len(path), own, tuple(path))
        path.append(following)
        node = following


def verify_tree_greedy(tokens: Sequence[int], parents: Sequence[int], best: Sequence[int]) -> Outcome:
    """Go along the argmax. ``best``: [n + 1], the target's argmax in each row."""
    return verify_tree_drawn(tokens, parents, lambda row, _place: best[row])


def verify_tree_sampled(
    tokens: Sequence[int],
    parents: Sequence[int],
    target: Tensor,
    proposal: Tensor | None,
    uniforms: Sequence[float],
) -> Outcome:
    """Multi-round rejection sampling at each node, then on at the child that stood (SpecInfer, Miao et al. 2305.09781;
    EAGLE, Li et al. 2401.15077): the outcome follows ``target`` exactly.

    ``target``: [n + 1, vocab] probabilities; ``proposal``: [n, vocab], what each node and its siblings were drawn from,
    one after the other without replacement, None where they were picked without chance; ``uniforms``: n + 1 numbers in
    [0, 1), one a node and one for the last token.
    """
    path: list[int] = []
    children, node = children_of(parents), ROOT
    while True:
        rest = target[node + 1].double()
        siblings = children.get(node, [])
        offered = None if proposal is None or not siblings else proposal[siblings[0]].double()
        following, rest = _first_accepted(siblings, tokens, rest, offered, uniforms)
        if following is None:
            return Outcome(len(path), draw(rest, uniforms[-1]), tuple(path))
        path.append(following)
        node = following


def _first_accepted(
    siblings: Sequence[int], tokens: Sequence[int], rest: Tensor, offered: Tensor | None, uniforms: Sequence[float]
) -> tuple[int | None, Tensor]:
    """The first of ``siblings`` that stands, or None and what the target still wants after all have been rejected."""
    for child in siblings:
        token = tokens[child]
        rest, given = rest / rest.sum(), None if offered is None else offered / offered.sum()
        if uniforms[child] * (1.0 if given is None else float(given[token])) < float(rest[token]):
            return child, rest
        left = _without(rest, token) if given is None else (rest - given).clamp_min(0)
        # Where target and draft agree but for rounding nothing is left, and the target itself is as good.
        rest = left if bool(left.any()) else rest
        offered = None if offered is None else _without(offered, token)
    return None, rest


def _without(weights: Tensor, token: int) -> Tensor:
    rest = weights.clone()
    rest[token] = 0
    return rest


def verify_thresholds(
    tokens: Sequence[int], parents: Sequence[int], target: Tensor, single: float, acc: float, uniforms: Sequence[float]
) -> Outcome:
    """SGLang's verification (its sampling kernel over trees), lossy where a threshold is below 1: one number a place
    decides among siblings; one of them stands where that is below the target's probability of all tried so far divided
    by ``acc``, or where its own probability reaches ``single``. ``uniforms``: [depth + 1] at least.
    """
    path: list[int] = []
    children, node = children_of(parents), ROOT
    while True:
        rest, tried, following = target[node + 1].clone(), 0.0, None
        for child in children.get(node, ()):
            chance = float(target[node + 1, tokens[child]])
            tried += chance
            if uniforms[len(path)] * acc < tried or chance >= single:
                following = child
                break
            rest[tokens[child]] = 0
        if following is None:
            last = rest if bool(rest.any()) else target[node + 1]
            return Outcome(len(path), draw(last, uniforms[-1]), tuple(path))
        path.append(following)
        node = following


def longest_path(
    tokens: Sequence[int],
    parents: Sequence[int],
    allowed: Callable[[int, int], bool],
    logs: Callable[[int, int], float],
) -> tuple[int, ...]:
    """The longest path all of whose tokens are allowed (Medusa, arXiv 2401.10774); of equals the likeliest, then the
    first. ``allowed(row, token)`` and ``logs(row, token)`` ask about a token in a row of the step.
    """
    reached: dict[int, tuple[int, float]] = {ROOT: (0, 0.0)}
    for node, (token, parent) in enumerate(zip(tokens, parents, strict=True)):
        if parent in reached and allowed(parent + 1, token):
            length, likelihood = reached[parent]
            reached[node] = (length + 1, likelihood + logs(parent + 1, token))
    node = max(reached, key=lambda each: (*reached[each], -each))
    path: list[int] = []
    while node != ROOT:
        path.append(node)
        node = parents[node]
    return tuple(path[::-1])


def verify_typical(
    tokens: Sequence[int],
    parents: Sequence[int],
    target: Tensor,
    threshold: float,
    share: float,
    uniforms: Sequence[float],
) -> Outcome:
    """Medusa's typical acceptance, lossy: a token may stand when its probability exceeds ``threshold`` or, where the
    target is unsure, ``share`` * exp(-entropy); the longest such path does. The next token is drawn from the target.
    """
    rows = target.double()
    entropies = -(rows * (rows + 1e-5).log()).sum(-1)
    bounds = [min(threshold, share * math.exp(-entropy)) for entropy in entropies.tolist()]

    def log(row: int, token: int) -> float:
        return math.log(float(rows[row, token]))

    path = longest_path(tokens, parents, lambda row, token: float(rows[row, token]) > bounds[row], log)
    return Outcome(len(path), draw(target[last_row(path)], uniforms[-1]), path)


def relaxed_path(
    tokens: Sequence[int], parents: Sequence[int], scores: Tensor, topk: int, delta: float
) -> tuple[int, ...]:
    """TensorRT-LLM's relaxed acceptance, lossy: a token may stand when it is among the ``topk`` best of its row and its
    log probability at most ``delta`` below the best one's. ``scores`` [n + 1, vocab]: log probabilities, or logits.
    """
    best = scores.topk(min(topk, scores.shape[-1]), dim=-1)
    bounds = best.values[:, -1].maximum(best.values[:, 0] - delta).tolist()
    return longest_path(
        tokens,
        parents,
        lambda row, token: float(scores[row, token]) >= bounds[row],
        lambda row, token: float(scores[row, token]) - float(best.values[row, 0]),
    )


def last_row(path: Sequence[int]) -> int:
    """The row that scores what follows ``path``."""
    return path[-1] + 1 if path else 0
